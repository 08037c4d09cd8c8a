"""What a sweep found, as plain data."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.choices import Tape
from harness.core.verdict import Status
from harness.exploration.attempts import tape_of
from harness.exploration.points import Absent
from harness.exploration.probe import Role, Run, Shot, Whom

SweepMode: TypeAlias = Literal["start", "early", "late", "mid", "double"]
"""The mode of a cancel, or ``double`` for a cancel that is followed by a second one."""

Came: TypeAlias = Literal["clean", "tolerated", "failed", "unresolved", "missed"]
"""What a point came to. ``unresolved``: nothing can be said of its run. ``missed``: a cancel was
not reached or refused, so that nothing was tried."""


class Swept(Struct, frozen=True):
    """A point and what came of it; `keys` are its findings', `why` says what is not known."""

    shots: tuple[Shot, ...]
    mode: SweepMode
    role: Role
    came: Came
    landings: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    why: str = ""


class Tally(Struct, frozen=True):
    """How many points of a mode or role came to what; `absent` ones do not exist, or count."""

    name: str
    clean: int = 0
    tolerated: int = 0
    failed: int = 0
    unresolved: int = 0
    missed: int = 0
    absent: int = 0

    @property
    def points(self) -> int:
        """How many points were tried."""
        return self.clean + self.tolerated + self.failed + self.unresolved + self.missed


class Group(Struct, frozen=True):
    """A finding, the smallest point that shows it with its run, and all points that do.

    Without shots, the run shows it that nobody cancelled. Where no run shows it alone, `against` is
    the cancel of the run that the smallest was held against.
    """

    key: str
    message: str
    shots: tuple[Shot, ...]
    run: Run
    points: tuple[tuple[Shot, ...], ...]
    against: Shot | None = None

    @property
    def tape(self) -> Tape:
        """The tape that gives `run` again, together with `shots`."""
        return tape_of(self.run)

    @property
    def count(self) -> int:
        """How many points show it."""
        return len(self.points)


class SweepReport(Struct, frozen=True):
    """A finished sweep. `tape` are the choices that all its runs had in common.

    `sampled` names what there was too much of to try it all; `spent` says what of the budget was.
    """

    name: str
    modes: tuple[SweepMode, ...]
    roles: tuple[Role, ...]
    whom: tuple[Whom, ...]
    tape: Tape
    baseline: Run
    runs: int
    points: tuple[Swept, ...]
    absent: tuple[Absent, ...]
    failed: tuple[Group, ...]
    tolerated: tuple[Group, ...]
    sampled: tuple[str, ...]
    spent: str | None

    @property
    def status(self) -> Status:
        """PASS only where all points that exist were tried, and all are clean or tolerated."""
        if self.failed:
            return "FAIL"
        return "INCOMPLETE" if self.incomplete else "PASS"

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Why the sweep says less than it was meant to, a sentence each."""
        why = list(self.sampled)
        if self.baseline.unresolved is not None and not self.baseline.findings:
            why.append(f"the run without a cancel is not resolved: {self.baseline.unresolved}")
        if self.spent is not None:
            why.append(self.spent)
        for came, says in _GAPS.items():
            points = [point for point in self.points if point.came == came]
            if points:
                first = points[0]
                at = ", ".join(map(str, first.shots))
                noun = "point" if len(points) == 1 else "points"
                why.append(f"{len(points):,} {noun} {says}; the first is {at} ({first.why})")
        return tuple(why)

    @property
    def by_mode(self) -> tuple[Tally, ...]:
        """What the points came to, for each mode."""
        absent = _count([each.mode for each in self.absent])
        return self._tallies(self.modes, absent, by_role=False)

    @property
    def by_role(self) -> tuple[Tally, ...]:
        """What the points came to, for each role that was swept."""
        absent = _count([each.site.role for each in self.absent])
        return self._tallies(self.roles, absent, by_role=True)

    def _tallies(
        self, names: tuple[str, ...], absent: dict[str, int], *, by_role: bool
    ) -> tuple[Tally, ...]:
        counts: dict[str, dict[str, int]] = {name: {} for name in names}
        for point in self.points:
            count = counts[point.role if by_role else point.mode]
            count[point.came] = count.get(point.came, 0) + 1
        return tuple([Tally(name, absent=absent.get(name, 0), **counts[name]) for name in names])


_GAPS: dict[Came, str] = {"unresolved": "not resolved", "missed": "missed"}


def _count(names: list[str]) -> dict[str, int]:
    return {name: names.count(name) for name in dict.fromkeys(names)}
