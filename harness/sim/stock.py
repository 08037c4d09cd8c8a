"""The parts of stock asyncio's event loop that the kernel builds on, written down once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import AsyncGenerator, Callable

    class StockLoop(asyncio.BaseEventLoop):
        """asyncio's loop with the private names that its type stubs leave out."""

        _ready: deque[asyncio.Handle]
        _debug: bool
        _closed: bool
        _stopping: bool
        _thread_id: int | None
        _task_factory: Callable[..., Any] | None
        _asyncgens: Any

        def _check_closed(self) -> None: ...
        def _check_running(self) -> None: ...
        def _check_callback(self, callback: object, method: str) -> None: ...
        def _set_coroutine_origin_tracking(self, enabled: object) -> None: ...
        def _asyncgen_firstiter_hook(self, agen: AsyncGenerator[Any, Any]) -> None: ...

else:
    StockLoop = asyncio.BaseEventLoop
