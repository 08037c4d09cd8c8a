"""What runs in a thread before a kernel does, and goes on after it."""

from __future__ import annotations

import asyncio
import sys
from asyncio import events

from harness.sim.actors import become, current


class Outer:
    """A loop and its task, or nothing; a thread of a run; the hooks for async generators."""

    __slots__ = ("_actor", "_hooks", "_loop", "_task")

    def __init__(self) -> None:
        self._loop = events._get_running_loop()
        self._actor = current()
        self._hooks = sys.get_asyncgen_hooks()
        self._task = None if self._loop is None else asyncio.current_task(self._loop)

    def leave(self) -> None:
        """Let the thread have no running loop and no current task."""
        if self._loop is not None and self._task is not None:
            asyncio.tasks._leave_task(self._loop, self._task)
        events._set_running_loop(None)
        become(None)

    def enter(self) -> None:
        """Put all back as it was."""
        events._set_running_loop(self._loop)
        become(self._actor)
        sys.set_asyncgen_hooks(*self._hooks)
        if self._loop is not None and self._task is not None:
            asyncio.tasks._enter_task(self._loop, self._task)
