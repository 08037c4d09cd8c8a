"""What runs in a thread before a kernel does, and goes on after it."""

from __future__ import annotations

import asyncio
import sys
from asyncio import events


class Outer:
    """A loop and its task, or nothing; and the thread's hooks for async generators."""

    __slots__ = ("_hooks", "_loop", "_task")

    def __init__(self) -> None:
        self._loop = events._get_running_loop()
        self._hooks = sys.get_asyncgen_hooks()
        self._task = None if self._loop is None else asyncio.current_task(self._loop)

    def leave(self) -> None:
        """Let the thread have no running loop and no current task."""
        if self._loop is not None and self._task is not None:
            asyncio.tasks._leave_task(self._loop, self._task)
        events._set_running_loop(None)

    def enter(self) -> None:
        """Put all back as it was."""
        events._set_running_loop(self._loop)
        sys.set_asyncgen_hooks(*self._hooks)
        if self._loop is not None and self._task is not None:
            asyncio.tasks._enter_task(self._loop, self._task)
