"""Virtual time as loops and fakes see it."""

from __future__ import annotations

import asyncio

from harness.core.durations import SECOND
from harness.sim.kernel import Kernel


class VirtualClock:
    """The `Clock` of a run under a kernel; it moves only when nothing else can happen."""

    __slots__ = ("_kernel",)

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def now(self) -> int:
        """Nanoseconds since the run began."""
        return self._kernel.now()

    async def sleep(self, nanoseconds: int) -> None:
        """Wait; exact to the nanosecond for up to a month, and 0 still lets others run."""
        await asyncio.sleep(nanoseconds / SECOND)
