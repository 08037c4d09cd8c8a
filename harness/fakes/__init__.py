"""What a loop talks to: a scripted model and scripted tools, verified stand-ins."""
