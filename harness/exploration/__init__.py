"""Which choices and cancels to try next: knows no asyncio, only runs and what came of them."""
