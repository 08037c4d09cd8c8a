"""What happened: frozen values and the seams between them. No asyncio, no clock, no I/O."""
