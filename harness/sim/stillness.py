"""Whether a thread waits for something that nobody of the run will give it."""

from __future__ import annotations

import sys
from time import monotonic, process_time  # noqa: TID251 - it watches real threads
from types import FrameType

from harness.sim import where

PATIENCE = 2.0
"""Real seconds that a thread may stand still in one place."""
LOOK = 0.2
"""Real seconds from one look to the next."""
_BUSY = 0.25
"""From which share of a processor on the process is busy: the thread may be at work in C code."""
_LONGEST = 10.0
"""So many times its patience a thread may stand still in a process that is busy with whatever."""


class Stillness:
    """Watches a real thread from another one, by looking at it again and again.

    A thread at work moves on, or keeps the process busy. One that imports a module, or that a
    debugger holds, is not still.
    """

    def __init__(self, ident: int) -> None:
        self._ident = ident
        self._place: tuple[int, int] | None = None
        self._since = self._work = 0.0

    def start(self) -> None:
        """Begin to watch: it has moved until now."""
        self._look()

    def frame(self) -> FrameType | None:
        """Where the thread is."""
        return sys._current_frames().get(self._ident)

    def found(self) -> bool:
        """Look; whether the thread has stood still for too long."""
        still, work = self._look()
        busy = work > still * _BUSY
        if still < (PATIENCE * _LONGEST if busy else PATIENCE):
            return False
        frame = self.frame()
        if where.debugged(frame):
            return False
        return where.waits_to_import(frame) or not where.importing(frame)

    def _look(self) -> tuple[float, float]:
        """How long the thread has been in one place, and how long the process worked meanwhile."""
        frame = self.frame()
        place = None if frame is None else (id(frame), frame.f_lasti)
        now, work = monotonic(), process_time()
        if place is None or place != self._place:
            self._place, self._since, self._work = place, now, work
        return now - self._since, work - self._work
