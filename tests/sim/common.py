"""What several test files of the simulation use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def never() -> bool:
    """Run until nothing more can happen."""
    return False


def as_stock(main: Callable[[], Coroutine[Any, Any, Any]], play: Callable[..., Any]) -> Any:
    """What `main` gives in a run, which is what it gives under asyncio itself."""
    here = play(main)
    assert here == asyncio.run(main())
    return here
