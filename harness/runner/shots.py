"""What the runs of every probe have in common: their choices are noted, their shots are armed, and
what the kernel saw of each task is told as sites.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.core.choices import Picker, Tape
from harness.exploration.probe import Asked, Role, Shot, Site
from harness.sim.cancel import Point
from harness.sim.sites import SiteKernel, Suspension


class Notes:
    """What one run is asked: `pick` is the picker of its choices, beside `tape`.

    `kernel` is set once there is one, and let go of in the end: a circle of references to it would
    cost as much as ten steps to collect.
    """

    def __init__(self, tape: Tape, picker: Picker | None) -> None:
        self.kernel: SiteKernel | None = None
        self._asked = [Asked(draw.source, draw.label, draw.bound, draw.value) for draw in tape]
        self._picker = picker

    def pick(self, source: str, label: str, bound: int) -> int:
        """Decide as the picker does, else 0, and note it with the run's step."""
        value = 0 if self._picker is None else self._picker(source, label, bound)
        step = 0 if self.kernel is None else self.kernel.steps
        self._asked.append(Asked(source, label, bound, value, step))
        return value

    def close(self) -> tuple[Asked, ...]:
        """What the run was asked: first what the tape said, then the rest in order."""
        self.kernel = None
        return tuple(self._asked)


def arm(kernel: SiteKernel, shot: Shot, fire: Callable[[], object]) -> None:
    """Have `fire` called once, when the run comes to the place of `shot`."""
    if shot.mode == "mid":
        assert shot.step is not None, "a mid shot has its step"
        kernel.after_step(shot.step, fire)
    else:
        kernel.plan(Point(shot.path, shot.k, shot.mode), lambda _task: fire())


def site(each: Suspension, role: Role) -> Site:
    """A suspension as the place that it is for explorers."""
    last = None if each.last is None else each.last + 1
    # Of what plays a turn, nothing has been called before its first step.
    where = "" if role == "turn" and each.k == 0 else each.where
    beside = (each.waits, each.label, each.thread)
    return Site(each.path, each.k, role, where, each.first, last, *beside)
