"""What shows why a sweep fails: each failing run in full, the passing run beside it, its token."""

from __future__ import annotations

import shlex
from bisect import bisect_left
from collections.abc import Iterator

from harness.explore.book import missed
from harness.explore.points import moment_of
from harness.explore.probe import Probe, Run, Shot
from harness.explore.sweep_report import Group, SweepReport, Swept
from harness.report.sweep import Beside, Failed
from harness.report.text import untimed_diff
from harness.runner.agents import Subject
from harness.runner.probe import AgentProbe
from harness.runner.scenario import Scenario
from harness.runner.token import Token


def evidence(report: SweepReport, scenario: Scenario, subject: Subject) -> tuple[Failed, ...]:
    """The failing runs of a sweep, the smallest first; what one run shows stands together."""
    probe = AgentProbe(scenario, subject, keep_lines=True)
    together: dict[tuple[Shot, ...], list[Group]] = {}
    for group in report.failed:
        together.setdefault(group.shots, []).append(group)
    failed = []
    for shots, groups in together.items():
        run = probe.run(report.tape, shots)
        beside = _beside(probe, report, shots, run)
        token = str(Token.of(scenario, report.tape, shots))
        rerun = replay_line(token, scenario, subject)
        failed.append(Failed(tuple(groups), run, beside, token, rerun))
    return tuple(failed)


def replay_line(token: str, scenario: Scenario, subject: Subject) -> str:
    """The command that replays `token`; where no command can, the call that does."""
    if not subject.options or not scenario.source:
        return f"replay({token!r}, {scenario.name or 'the scenario'}, {subject.name})"
    return shlex.join(["harness", "replay", token, scenario.source, *subject.options])


def _beside(probe: Probe, report: SweepReport, shots: tuple[Shot, ...], run: Run) -> Beside | None:
    """The passing run whose text is most like that of the failing `run`, times aside."""
    beside: Beside | None = None
    least = 0
    for changed, others in _changes(report, shots):
        other = probe.run(report.tape, others)
        if other.findings or other.unresolved is not None or missed(other):
            continue
        size = len(untimed_diff(other.lines, run.lines))
        if beside is None or size < least:
            beside, least = Beside(changed, other), size
    return beside


def _changes(
    report: SweepReport, shots: tuple[Shot, ...]
) -> Iterator[tuple[str, tuple[Shot, ...]]]:
    """Other cancels, and what they are: the last clean point before, the first after, one less."""
    if len(shots) == 1:
        for point in _neighbours(report, shots[0]):
            yield f"cancelled at {point.shots[0]}", point.shots
    for at, shot in enumerate(shots):
        yield f"without the cancel {shot}", shots[:at] + shots[at + 1 :]


def _neighbours(report: SweepReport, shot: Shot) -> list[Swept]:
    """The clean points for the same addressee next to `shot` in time, before it and after it."""
    sites = {(site.path, site.k): site for site in report.baseline.sites}

    def moment(shot: Shot) -> int:
        return moment_of(sites[shot.path, shot.k], shot.mode, shot.step)

    points = sorted(
        [
            (moment(point.shots[0]), index)
            for index, point in enumerate(report.points)
            if len(point.shots) == 1 and point.came == "clean" and point.shots[0].whom == shot.whom
        ]
    )
    here = bisect_left(points, (moment(shot),))
    return [report.points[index] for _, index in points[max(here - 1, 0) : here + 1]]
