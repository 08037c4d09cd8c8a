"""What is due when: virtual time, and the timers that move it.

Stock asyncio leaves open in which order timers of one instant fire (its heap compares deadlines
only); here it is the order in which they were set, unless it is a choice (see `orders`).
"""

from __future__ import annotations

import heapq
import math
from asyncio import Handle, TimerHandle
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, TypeAlias, TypeVarTuple

from harness.core.durations import SECOND
from harness.sim.boundary import Boundary
from harness.sim.handles import QuickHandle, QuickTimer

_Args = TypeVarTuple("_Args")

Due: TypeAlias = tuple[int, int, Any]
"""When a timer is due, its number in the order in which they were set, and the timer."""

EPOCH = 1_000 * SECOND
"""What `VirtualTime.time` shows when a run begins; not 0, which careless code takes for no time."""

_PURGE_FROM = 64
"""Cancelled timers are swept out once there are this many and they are more than half."""


class Held:
    """Timers of one instant that wait for others of it to be done with; one entry of the heap."""

    __slots__ = ("timers",)

    def __init__(self, timers: list[Due]) -> None:
        self.timers = timers

    def cancelled(self) -> bool:
        """Whether none of them counts any more."""
        return all(entry[2].cancelled() for entry in self.timers)


class Schedule:
    """The timers of one run, and its time in whole nanoseconds.

    `heap` holds the timers, the next one first; cancelled ones may linger in it. The kernel
    moves `now` on.
    """

    __slots__ = ("_cancelled", "_sequence", "heap", "now")

    def __init__(self) -> None:
        self.now = 0
        self.heap: list[Due] = []
        self._sequence = 0
        self._cancelled = 0

    def add(self, when: int, timer: Any) -> None:
        """Set a timer for the instant `when`; one in the past is due now."""
        self._sequence += 1
        heapq.heappush(self.heap, (when, self._sequence, timer))
        timer._scheduled = True

    def note_cancelled(self) -> None:
        """Count one more cancelled timer, and sweep when they are the greater part.

        The sweep costs as much as the timers cancelled since the last one, so a cancel costs
        the same however many timers there are.
        """
        self._cancelled += 1
        if self._cancelled >= _PURGE_FROM and self._cancelled * 2 > len(self.heap):
            self.part()
            self.heap[:] = [entry for entry in self.heap if not entry[2].cancelled()]
            heapq.heapify(self.heap)
            self._cancelled = 0

    def next(self) -> int | None:
        """The instant of the next timer that still counts, None without one."""
        heap = self.heap
        while heap:
            when, _, timer = heap[0]
            if not timer.cancelled():
                return when
            heapq.heappop(heap)
            self._cancelled -= 1
        return None

    def release(self, ready: deque[Handle]) -> None:
        """Move all timers that are due to the end of `ready`."""
        heap, now = self.heap, self.now
        while heap and heap[0][0] <= now:
            timer = heapq.heappop(heap)[2]
            timer._scheduled = False
            if timer.cancelled():
                self._cancelled -= 1
            else:
                ready.append(timer)

    def take_due(self) -> list[Due]:
        """Take out all timers that are due, in the order in which they would be released."""
        heap, now = self.heap, self.now
        due: list[Due] = []
        while heap and heap[0][0] <= now:
            entry = heapq.heappop(heap)
            timer = entry[2]
            if type(timer) is Held:
                held = self._living(timer.timers)
                due = due + held if due else held
            elif timer.cancelled():
                self._cancelled -= 1
            else:
                due.append(entry)
        return due

    def _living(self, timers: list[Due]) -> list[Due]:
        if not self._cancelled:
            return timers
        living = [entry for entry in timers if not entry[2].cancelled()]
        self._cancelled -= len(timers) - len(living)
        return living

    def put_back(self, due: list[Due]) -> None:
        """Put timers that were taken out back, all as one: they are taken out together again."""
        heapq.heappush(self.heap, (*due[0][:2], Held(due)))

    def part(self) -> None:
        """Give all timers that were put back their own places again."""
        for _, _, held in [entry for entry in self.heap if type(entry[2]) is Held]:
            self.heap.extend(held.timers)
        self.heap[:] = [entry for entry in self.heap if type(entry[2]) is not Held]
        heapq.heapify(self.heap)

    def clear(self) -> None:
        """Forget all timers."""
        self.heap.clear()
        self._cancelled = 0


class VirtualTime(Boundary):
    """The part of an event loop that decides when a callback is called: all time is virtual."""

    def __init__(self) -> None:
        super().__init__()
        self._schedule = Schedule()
        self.first = False
        """Whether the next callback is to be called before all that are ready."""

    def now(self) -> int:
        """Virtual nanoseconds since the run began."""
        return self._schedule.now

    def time(self) -> float:
        """Virtual seconds, as asyncio asks for them; 1000.0 when the run begins."""
        return (EPOCH + self._schedule.now) / SECOND

    def call_soon(
        self,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> Handle:
        """Call back after what is ready already."""
        if self._closed or self._debug:
            return super().call_soon(callback, *args, context=context)
        handle = QuickHandle(callback, args, self, context)
        if self.first:
            self.first = False
            self._ready.appendleft(handle)
        else:
            self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> TimerHandle:
        """Call back after `delay` seconds, rounded to a nanosecond; infinity is never."""
        return self._set_timer(self._schedule.now, delay, callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> TimerHandle:
        """Call back when `time` shows `when`, rounded to a nanosecond; infinity is never."""
        return self._set_timer(-EPOCH, when, callback, args, context)

    def _set_timer(
        self,
        start: int,
        seconds: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> TimerHandle:
        if self._closed:
            self._check_closed()
        make: type[TimerHandle] = QuickTimer
        if self._debug:
            self._check_callback(callback, "call_at")
            make = TimerHandle
        length = seconds * SECOND
        if length == math.inf:
            return make(seconds, callback, args, self, context)
        when = start + round(length)
        timer = make((EPOCH + when) / SECOND, callback, args, self, context)
        now = self._schedule.now
        # Stock asyncio's clock has moved on by when it looks: a timer for now is one of the past.
        self._schedule.add(when if when > now else min(when, now - 1), timer)
        return timer

    def call_in(
        self,
        nanoseconds: int,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> TimerHandle:
        """Call back in so much time, which may be none, as when something outside is over.

        Nobody can say how long that takes to the instant, so it fires with the timers of its own.
        """
        when = self._schedule.now + nanoseconds
        timer = QuickTimer((EPOCH + when) / SECOND, callback, args, self, context)
        self._schedule.add(when, timer)
        return timer

    def _timer_handle_cancelled(self, handle: Any) -> None:
        if handle._scheduled:
            self._schedule.note_cancelled()
