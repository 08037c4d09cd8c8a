"""In which order what can run at one instant does: fixed as in stock asyncio, or a choice.

A choice says which of those that wait goes first: value v is the v-th in the order in which they
came to wait, so that 0 everywhere is stock asyncio's order. Labels number the decisions.
"""

from __future__ import annotations

from asyncio import Handle
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from heapq import merge
from itertools import count
from operator import itemgetter
from typing import Literal, TypeAlias, get_args

from harness.core.choices import Choices
from harness.sim.schedule import Due, Schedule
from harness.sim.tasks import STEP, is_step

Order: TypeAlias = Literal["fifo", "completions", "tasks", "all"]
"""How much of the order is a choice.

``fifo``: nothing; the order is that of stock asyncio. ``completions``: in which order timers of
one instant fire, and whether what is ready runs before the next of them; stock asyncio promises
neither, and on a real clock no two things end at the same time. A timer that was set for a time
that had come is none of them: it fires at once. ``tasks``: also which task makes
its next step; callbacks keep their order among themselves. ``all``: any callback may go first,
though asyncio promises that callbacks run in the order in which they were scheduled: what is found
so may never happen.
"""

ORDERS: tuple[Order, ...] = get_args(Order)

_MANY = 16
"""In a batch of fewer it costs less to look at all that is ready than to keep it sorted."""


class Ties:
    """Has the timers of one instant fire in the order that is chosen."""

    __slots__ = ("_choices", "_numbers", "_schedule")

    def __init__(self, schedule: Schedule, choices: Choices) -> None:
        self._schedule = schedule
        self._choices = choices
        self._numbers = count(1)

    def release(self, ready: deque[Handle]) -> None:
        """Move the timers that are due to the end of `ready`, as many as are chosen by now.

        Those of the past all go, in their order, and so do those that were set for now, but others
        of the instant may go between them. What is ready already is the last that can be chosen:
        the timers that are left then wait until it has run.
        """
        now, due = self._schedule.now, self._schedule.take_due()
        past, present = bisect_left(due, (now - 1,)), bisect_left(due, (now,))
        for entry in due[:past]:
            _wake(entry, ready)
        for_now = deque(due[past:present])
        if present:
            due = due[present:]
        while due or for_now:
            bound = len(due) + bool(for_now or ready)
            at = 0
            if bound > 1:
                at = self._choices.choose("tie", str(next(self._numbers)), bound)
            if for_now and at == 0:
                _wake(for_now.popleft(), ready)
                continue
            at -= bool(for_now)
            if at == len(due):
                self._schedule.put_back(due)
                return
            _wake(due.pop(at), ready)


def _wake(entry: Due, ready: deque[Handle]) -> None:
    timer = entry[2]
    timer._scheduled = False
    ready.append(timer)


class Lanes:
    """Has the ready callback run next that is chosen.

    With `promised`, what asyncio promises is kept for callbacks: only the first of those that are
    no steps of tasks may be chosen.
    """

    __slots__ = ("_choices", "_numbers", "_promised")

    def __init__(self, choices: Choices, *, promised: bool) -> None:
        self._choices = choices
        self._promised = promised
        self._numbers = count(1)

    def run(
        self,
        ready: deque[Handle],
        batch: int,
        run_first: Callable[[int], object],
        paused: Callable[[], bool],
    ) -> int:
        """Have so many callbacks of `ready` run, one by one; the others keep their order.

        `run_first` runs the first of `ready`, which gets what becomes ready meanwhile. Gives how
        many were left, since there was to be a pause.
        """
        left = batch
        if batch < _MANY or not self._promised:
            while left and not paused():
                left -= 1
                if len(ready) > 1:
                    self._bring_forward(ready)
                run_first(1)
            return left
        waiting = _Waiting()
        try:
            while left and not paused():
                left -= 1
                waiting.take(ready)
                ready.append(waiting.pop(self._choose(waiting.bound)))
                run_first(1)
            return left
        finally:
            waiting.take(ready)
            ready.extend(waiting.rest())

    def _choose(self, bound: int) -> int:
        if bound == 1:
            return 0
        return self._choices.choose("ready", str(next(self._numbers)), bound)

    def _bring_forward(self, ready: deque[Handle]) -> None:
        """Make the callback that is chosen the first of `ready`; looks at all of them."""
        places = _first_of_lanes(ready) if self._promised else range(len(ready))
        if len(places) == 1:
            return
        label = str(next(self._numbers))
        place = places[self._choices.choose("ready", label, len(places))]
        if place:
            chosen = ready[place]
            del ready[place]
            ready.appendleft(chosen)


def _first_of_lanes(ready: deque[Handle]) -> Sequence[int]:
    """Where the steps of tasks are, and the first of all other callbacks."""
    # A step is what `is_step` says; most are of the first kind.
    others = [
        place
        for place, handle in enumerate(ready)
        if type(handle._callback) is not STEP and not is_step(handle)  # type: ignore[attr-defined]
    ]
    if len(others) < 2:
        return range(len(ready))
    later = set(others[1:])
    return [place for place in range(len(ready)) if place not in later]


class _Waiting:
    """The callbacks that are ready where they are many: each is taken out without a look at all.

    Both the steps of tasks and the others are numbered in the order in which they came.
    """

    __slots__ = ("_count", "_numbers", "_others", "_steps")

    def __init__(self) -> None:
        self._count = 0
        self._steps: deque[Handle] = deque()
        self._numbers: deque[int] = deque()
        self._others: deque[tuple[int, Handle]] = deque()

    def take(self, ready: deque[Handle]) -> None:
        """Take over all that has become ready."""
        for number, handle in enumerate(ready, self._count):
            if is_step(handle):
                self._steps.append(handle)
                self._numbers.append(number)
            else:
                self._others.append((number, handle))
        self._count += len(ready)
        ready.clear()

    @property
    def bound(self) -> int:
        """How many may go next: all steps, and the first of the others."""
        return len(self._steps) + bool(self._others)

    def pop(self, at: int) -> Handle:
        """Take out one of those that may go next, counted in the order in which they came."""
        if self._others:
            place = bisect_left(self._numbers, self._others[0][0])
            if at == place:
                return self._others.popleft()[1]
            at -= at > place
        chosen = self._steps[at]
        del self._steps[at], self._numbers[at]
        return chosen

    def rest(self) -> list[Handle]:
        """Those that are left, in order."""
        steps = zip(self._numbers, self._steps, strict=True)
        return [handle for _, handle in merge(steps, self._others, key=itemgetter(0))]
