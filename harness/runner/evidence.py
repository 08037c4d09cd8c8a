"""What shows why runs fail: each failing run in full, the passing run beside it, its token."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

from msgspec.structs import replace

from harness.core.choices import Tape
from harness.exploration.attempts import Attempt
from harness.exploration.book import missed
from harness.exploration.explain import hottest
from harness.exploration.points import moment_of
from harness.exploration.probe import Finding, Run, Shot
from harness.exploration.search_report import Found, SearchReport
from harness.exploration.sweep_report import Group, SweepReport, Swept
from harness.report.decisions import decision_texts
from harness.report.search import Discovery, Open
from harness.report.sweep import Beside, Failed
from harness.report.text import untimed_diff
from harness.runner.explored import Explored, OnAgent
from harness.runner.token import Token
from harness.sim.orders import Order

_KEPT = 64
"""How many runs are kept, since they stand beside several: the one without a cancel does."""

_TOKEN_MAX = 10_000
"""A run that was not made simple may have decided so much that no line should hold its token."""

_Changes: TypeAlias = Iterator[tuple[str, Attempt]]
"""Other attempts, and in what they are different."""


def of_sweep(report: SweepReport, explored: Explored) -> tuple[Failed, ...]:
    """The failing runs of a sweep, the smallest first; what one run shows stands together."""
    again = _Again(explored, "fifo")
    together: dict[tuple[tuple[Shot, ...], Shot | None], list[Group]] = {}
    for group in report.failed:
        together.setdefault((group.shots, group.against), []).append(group)
    failed = []
    for (shots, against), groups in together.items():
        run = again.run(Attempt(report.tape, shots))
        if against is not None:
            failed.append(_of_two(report, explored, again, run, groups))
            continue
        beside = again.beside(run, _other_cancels(report, shots))
        failed.append(Failed(tuple(groups), run, beside, *again.lines(report.tape, shots)))
    return tuple(failed)


def _of_two(
    report: SweepReport, explored: Explored, again: _Again, run: Run, groups: list[Group]
) -> Failed:
    """What `run` lacks, beside the run that has it. As no run shows it alone, the line that does
    makes the whole sweep again.
    """
    assert isinstance(explored, OnAgent), "only an agent keeps a conversation"
    assert run.kept is not None, "what is not known is not compared"
    found = [Finding(group.key, group.message, run.kept.line) for group in groups]
    shots, against = groups[0].shots, groups[0].against
    assert against is not None, "it is held against another run"
    other = again.run(Attempt(report.tape, (against,)))
    token, _line = again.lines(report.tape, shots)
    return Failed(
        tuple(groups),
        replace(run, findings=tuple(found)),
        Beside(f"cancelled at {against}", other),
        token,
        explored.sweep_line(report),
    )


def of_search(report: SearchReport, explored: Explored, order: Order) -> tuple[Discovery, ...]:
    """The failing runs of a search, made simple; what one run shows stands together."""
    again = _Again(explored, order)
    together: dict[tuple[Tape, tuple[Shot, ...]], list[Found]] = {}
    for found in report.found:
        together.setdefault((found.shrunk.tape, found.shrunk.shots), []).append(found)
    failed = []
    for (tape, shots), all_found in together.items():
        run = again.run(Attempt(tape, shots))
        beside = again.beside(run, _one_less(run, tape, shots))
        failed.append(Discovery(tuple(all_found), run, beside, *again.lines(tape, shots)))
    return tuple(failed)


def of_open(report: SearchReport, explored: Explored, order: Order) -> Open | None:
    """The first run of a search of which nothing can be said, and where it was busy."""
    first = report.undecided_first
    if first is None:
        return None
    again = _Again(explored, order)
    busy = hottest(again.run(Attempt(first.tape, first.shots)))
    token, line = again.lines(first.tape, first.shots)
    return Open(busy, token, line if len(token) <= _TOKEN_MAX else "")


class _Again:
    """Makes runs again, with their text."""

    def __init__(self, explored: Explored, order: Order) -> None:
        self._explored = explored
        self._order = order
        probe = explored.probe(order, keep_lines=True)
        self.run = lru_cache(maxsize=_KEPT)(lambda attempt: attempt.run(probe))

    def lines(self, tape: Tape, shots: tuple[Shot, ...]) -> tuple[str, str]:
        """The token of a run, and the line that replays it."""
        token = str(Token.of(self._explored.digest, tape, shots, self._order))
        return token, self._explored.replay_line(token)

    def beside(self, run: Run, changes: Iterable[tuple[str, Attempt]]) -> Beside | None:
        """The passing run whose text is most like that of the failing `run`, times aside."""
        beside: Beside | None = None
        least = 0
        for changed, attempt in changes:
            other = self.run(attempt)
            if other.findings or other.unresolved is not None or missed(other):
                continue
            size = len(untimed_diff(other.lines, run.lines))
            if beside is None or size < least:
                beside, least = Beside(changed, other), size
        return beside


def _one_less(run: Run, tape: Tape, shots: tuple[Shot, ...]) -> _Changes:
    """One cancel less than `run` has, and one decision less."""
    texts = decision_texts(run)
    for at, shot in enumerate(shots):
        yield f"without the cancel {shot}", Attempt(tape, shots[:at] + shots[at + 1 :])
    for at, draw in enumerate(tape):
        changed = f"without {texts[draw.source, draw.label]}"
        yield changed, Attempt(tape[:at] + tape[at + 1 :], shots)


def _other_cancels(report: SweepReport, shots: tuple[Shot, ...]) -> _Changes:
    """The last clean point before, the first after, and one cancel less."""
    if len(shots) == 1:
        for point in _neighbours(report, shots[0]):
            yield f"cancelled at {point.shots[0]}", Attempt(report.tape, point.shots)
    for at, shot in enumerate(shots):
        others = shots[:at] + shots[at + 1 :]
        yield f"without the cancel {shot}", Attempt(report.tape, others)


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
