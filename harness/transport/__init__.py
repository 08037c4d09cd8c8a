"""The same over HTTP: a scripted provider, and what carries its answers to a client."""
