"""Keeps what came of each point, and groups the findings by what they are."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from harness.core.monotonic import MONOTONIC
from harness.exploration.losses import Lost
from harness.exploration.points import Point
from harness.exploration.probe import MISSED, NOT_REACHED, Finding, Run, Shot
from harness.exploration.sweep_report import Came, Group, SweepMode, Swept


class Book:
    """What a sweep has seen so far."""

    def __init__(self) -> None:
        self.points: list[Swept] = []
        self.failed = Groups()
        self.tolerated = Groups()
        self.lost: list[Group] = []
        """What only several runs show."""

    def note(self, points: tuple[Point, ...], mode: SweepMode, run: Run) -> int:
        """Note the run that was cancelled at `points`; gives the number of different findings."""
        shots = tuple([point.shot for point in points])
        size = (len(points), *[point.moment for point in points])
        if run.findings:
            self.failed.note(run.findings, shots, size, run)
        if run.tolerated:
            self.tolerated.note(run.tolerated, shots, size, run)
        if points:
            self.points.append(_swept(points, shots, mode, run))
        return len(self.failed)

    def lose(self, lost: Lost, run: Run, excuse: str | None) -> None:
        """Note what runs lack that others have; `run` is the smallest of them. Where there is an
        `excuse`, it is tolerated.
        """
        message = lost.message if excuse is None else f"{MONOTONIC}, {excuse}"
        points = tuple([(shot,) for shot in lost.shots])
        against = lost.loss.earlier.point.shot
        self.lost.append(Group(lost.key, message, points[0], run, points, against))
        which = set(points)
        self.points = [
            _losing(point, lost.key, excuse) if point.shots in which else point
            for point in self.points
        ]


def _losing(point: Swept, key: str, excuse: str | None) -> Swept:
    """A point that comes to less than an earlier one."""
    came: Came = "failed" if excuse is None else "tolerated"
    return replace(point, came=came, keys=(*point.keys, key))


def _swept(points: tuple[Point, ...], shots: tuple[Shot, ...], mode: SweepMode, run: Run) -> Swept:
    came_to = {landing.shot: landing.came_to for landing in run.landings}
    landings = tuple([came_to.get(shot, NOT_REACHED) for shot in shots])
    came, why = _came(run, landings)
    keys = tuple([finding.key for finding in run.findings or run.tolerated])
    return Swept(shots, mode, points[0].role, came, landings, keys, why)


def _came(run: Run, landings: Sequence[str]) -> tuple[Came, str]:
    """What came of a run, and why it is not known where it is not."""
    if run.findings:
        return "failed", ""
    if run.unresolved is not None:
        return "unresolved", run.unresolved
    for landing in landings:
        if landing in MISSED:
            return "missed", landing
    return ("tolerated" if run.tolerated else "clean"), ""


def missed(run: Run) -> bool:
    """Whether a cancel of the run came to nothing."""
    return any(landing.came_to in MISSED for landing in run.landings)


class Groups:
    """Findings by key, each with all points that show it and the smallest of their runs."""

    def __init__(self) -> None:
        self._groups: dict[str, _Growing] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def note(
        self,
        findings: Sequence[Finding],
        shots: tuple[Shot, ...],
        size: tuple[int, ...],
        run: Run,
    ) -> None:
        """Note that `run`, with these shots, has these findings; lesser `size` is preferred."""
        for key, finding in {finding.key: finding for finding in reversed(findings)}.items():
            group = self._groups.get(key)
            if group is None:
                self._groups[key] = _Growing(finding, shots, size, run, [shots])
                continue
            group.points.append(shots)
            if size < group.size:
                group.finding, group.shots, group.size, group.run = finding, shots, size, run

    def groups(self) -> tuple[Group, ...]:
        """The groups, the one with the smallest representative first."""
        return tuple(
            [
                Group(key, group.finding.message, group.shots, group.run, tuple(group.points))
                for key, group in sorted(self._groups.items(), key=lambda item: item[1].size)
            ]
        )


class _Growing(Struct):
    finding: Finding
    shots: tuple[Shot, ...]
    size: tuple[int, ...]
    run: Run
    points: list[tuple[Shot, ...]]
