"""When things happen: a deterministic asyncio event loop in virtual time."""
