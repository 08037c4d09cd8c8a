"""Secrets in what goes over the wire: where they stand in texts and bodies, whatever the coding."""
