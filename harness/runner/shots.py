"""What the runs of every probe have in common: their choices are noted, their shots are armed, and
what the kernel saw of each task is told as sites.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.core.choices import Choices, Picker, Tape
from harness.explore.probe import Asked, Role, Shot, Site
from harness.sim.cancel import Point
from harness.sim.sites import SiteKernel, Suspension


class Notes:
    """The choices of one run, and what it was asked.

    `steps` says how many steps the run has made by now.
    """

    def __init__(self, tape: Tape, picker: Picker | None, steps: Callable[[], int]) -> None:
        self.choices = Choices(tape, self._pick)
        self._asked = [Asked(draw.source, draw.label, draw.bound, draw.value) for draw in tape]
        self._picker = picker
        self._steps = steps

    def _pick(self, source: str, label: str, bound: int) -> int:
        value = 0 if self._picker is None else self._picker(source, label, bound)
        self._asked.append(Asked(source, label, bound, value, self._steps()))
        return value

    def asked(self) -> tuple[Asked, ...]:
        """What the run was asked: first what the tape said, then the rest in order.

        ReplayMismatch where the tape decides what the run never asked.
        """
        self.choices.check_used()
        return tuple(self._asked)


def arm(kernel: SiteKernel, shot: Shot, fire: Callable[[], object]) -> None:
    """Have `fire` called once, when the run comes to the place of `shot`."""
    if shot.mode == "mid":
        assert shot.step is not None, "a mid shot has its step"
        kernel.after_step(shot.step, fire)
    else:
        kernel.plan(Point(shot.path, shot.k, shot.mode), lambda _task: fire())


def site(each: Suspension, role: Role, where: str) -> Site:
    """A suspension as the place that it is for explorers."""
    last = None if each.last is None else each.last + 1
    return Site(each.path, each.k, role, where, each.first, last, each.waits, each.label)
