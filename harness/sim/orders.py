"""In which order what can run at one instant does: fixed as in stock asyncio, or a choice.

A choice says which of those that wait goes first: value v is the v-th in the order in which they
came to wait, so that 0 everywhere is stock asyncio's order. Labels number the decisions.
"""

from __future__ import annotations

from asyncio import Handle
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Literal, TypeAlias, get_args

from harness.core.choices import Choices
from harness.sim.schedule import Schedule
from harness.sim.tasks import is_step

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


class Ties:
    """Has the timers of one instant fire in the order that is chosen."""

    __slots__ = ("_choices", "_numbers", "_schedule")

    def __init__(self, schedule: Schedule, choices: Choices) -> None:
        self._schedule = schedule
        self._choices = choices
        self._numbers = count(1)

    def release(self, ready: deque[Handle]) -> None:
        """Move the timers that are due to the end of `ready`, as many as are chosen by now.

        Those of the past all go, in their order. What is ready already is the last that can be
        chosen: the timers that are left then wait until it has run.
        """
        due = deque(self._schedule.take_due())
        while due and due[0][0] < self._schedule.now:
            ready.append(due.popleft()[2])
        while due:
            bound = len(due) + (1 if ready else 0)
            at = 0
            if bound > 1:
                at = self._choices.choose("tie", str(next(self._numbers)), bound)
            if at == len(due):
                self._schedule.put_back(due)
                return
            ready.append(due[at][2])
            del due[at]


class Lanes:
    """Has the ready callback run next that is chosen.

    With `promised`, what asyncio promises is kept for callbacks: only the first of those that are
    no steps of tasks may be chosen. Costs as much a step as there are callbacks ready.
    """

    __slots__ = ("_choices", "_numbers", "_promised")

    def __init__(self, choices: Choices, *, promised: bool) -> None:
        self._choices = choices
        self._promised = promised
        self._numbers = count(1)

    def bring_forward(self, ready: deque[Handle]) -> None:
        """Make the callback that is chosen the first of `ready`; the others keep their order."""
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
    others = [place for place, handle in enumerate(ready) if not is_step(handle)]
    if len(others) < 2:
        return range(len(ready))
    later = set(others[1:])
    return [place for place in range(len(ready)) if place not in later]
