"""Handles and timers that cost less to make than asyncio's, and are the same otherwise.

A loop makes one a step. asyncio's own ask the loop for its debug mode each time; the kernel uses
them where that mode is on.
"""

from __future__ import annotations

from asyncio import Handle, TimerHandle
from contextvars import Context, copy_context
from typing import Any


class QuickHandle(Handle):
    """A handle without a source traceback."""

    __slots__ = ()

    def __init__(self, callback: Any, args: Any, loop: Any, context: Context | None) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None


class QuickTimer(TimerHandle):
    """A timer without a source traceback."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Any, args: Any, loop: Any, context: Context | None
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = False

    def cancel(self) -> None:
        """Keep it from firing."""
        if not self._cancelled:
            self._cancelled = True
            self._callback, self._args = None, ()
            if self._scheduled:
                self._loop._timer_handle_cancelled(self)
