"""Cancels a run at every point at which it can be cancelled, and says what came of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar, get_args

from msgspec import Struct

from harness.core.choices import Tape
from harness.core.errors import NoPoints, UsageError, unknown
from harness.exploration.attempts import Attempt, Many, one_by_one
from harness.exploration.book import Book, missed
from harness.exploration.budget import MEANS, Budget, Means, Meter
from harness.exploration.losses import Losses
from harness.exploration.points import Point, Survey
from harness.exploration.prng import Sample, Stream
from harness.exploration.probe import ROLES, Mode, Probe, Role, Run, Whom
from harness.exploration.same import again, confirm, steady
from harness.exploration.sweep_report import SweepMode, SweepReport

MODES: tuple[SweepMode, ...] = get_args(SweepMode)

SWEEP_BUDGET = Budget(runs=20_000, seconds=None)
"""Enough for what is swept in full, however slow the machine is."""

EXHAUSTIVE_TO = 5_000
"""Up to how many ``mid`` and ``double`` points each are all tried; of more, so many are drawn."""

_SINGLE: tuple[Mode, ...] = ("start", "early", "late")

_T = TypeVar("_T")


def sweep(  # noqa: PLR0913 - an argument for each thing that can be asked of a sweep
    probe: Probe,
    modes: Sequence[SweepMode] = MODES,
    roles: Sequence[Role] | None = None,
    whom: Sequence[Whom] | None = None,
    budget: Budget = SWEEP_BUDGET,
    *,
    tape: Tape = (),
    exhaustive_to: int = EXHAUSTIVE_TO,
    means: Means = MEANS,
    excuse: str | None = None,
) -> SweepReport:
    """Cancel `probe`'s run, with the choices of `tape`, at every point of these `modes`.

    `roles` (None: all) are those of the tasks at whose sites it is cancelled, `whom` (None: all
    that the probe knows) is who is told. ``double`` alone is with the single cancels that come
    first in its pairs: all runs are judged. `excuse` is why it is tolerated that a later cancel
    leaves less (None: it is not). NoPoints where all is well and there is nothing to sweep,
    NotDeterministic where the same choices give different runs, UsageError for names that are not
    known.
    """
    modes = chosen("mode", modes, MODES)
    if modes == ("double",):
        modes = (*_SINGLE, "double")
    roles = chosen("role", ROLES if roles is None else roles, ROLES)
    meter = Meter(budget, means)
    baseline = steady(probe, tape)  # a probe may know whom to tell only then
    whom = chosen("addressee", probe.whom if whom is None else whom, probe.whom)
    asked = _Asked(modes, roles, whom)
    meter.note_run()
    meter.note_run()
    survey = Survey(baseline, asked.whom, asked.roles)
    singles, sampled = _singles(survey, asked.modes, exhaustive_to)
    if not (singles or baseline.findings or baseline.unresolved):
        raise NoPoints(_no_points(probe, baseline, asked))
    book, losses = Book(), Losses()
    book.note((), "early", baseline)
    runner = _Runner(meter, tape, means.many or one_by_one(probe))
    doubles: Sample[tuple[Point, ...]] = Sample(exhaustive_to, Stream.named("double"))
    for points, run in runner.each("single", [(single,) for single in singles]):
        meter.found = book.note(points, points[0].shot.mode, run)
        losses.note(points[0], run)
        if "double" in asked.modes and not missed(run):
            for second in Survey(run, asked.whom, ROLES).again(points[0]):
                doubles.show((*points, second))
    if doubles.shown > len(doubles):
        sampled.append(_too_many("double", doubles))
    for points, run in runner.each("double", list(doubles)):
        meter.found = book.note(points, "double", run)
    failed, tolerated = book.failed.groups(), book.tolerated.groups()
    for group in failed:
        confirm(probe, group.run, group.shots)
        meter.note_run()
    for lost in losses.found():
        meter.found += excuse is None
        for cancelled in (lost.loss.earlier, lost.loss.later):
            run = again(probe, Attempt(tape, (cancelled.point.shot,)), cancelled.digest)
            meter.note_run()
        book.lose(lost, run, excuse)
    if excuse is None:
        failed += tuple(book.lost)
    else:
        tolerated += tuple(book.lost)
    return SweepReport(
        name=probe.name,
        modes=asked.modes,
        roles=asked.roles,
        whom=asked.whom,
        tape=tape,
        baseline=baseline,
        runs=meter.runs,
        points=tuple(book.points),
        absent=tuple(survey.absent),
        failed=failed,
        tolerated=tolerated,
        sampled=tuple(sampled),
        spent=runner.spent,
    )


class _Asked(Struct, frozen=True):
    """What a sweep was asked to do, checked."""

    modes: tuple[SweepMode, ...]
    roles: tuple[Role, ...]
    whom: tuple[Whom, ...]


def chosen(kind: str, names: Sequence[_T], known: Sequence[_T]) -> tuple[_T, ...]:
    """The names, each once; UsageError where there is none, or one that is not known."""
    if not names:
        raise UsageError(f"no {kind} is chosen; known: {', '.join(map(str, known))}")
    for name in names:
        if name not in known:
            raise UsageError(unknown(kind, str(name), map(str, known)))
    return tuple(dict.fromkeys(names))


def _singles(
    survey: Survey, modes: Sequence[SweepMode], most: int
) -> tuple[list[Point], list[str]]:
    """The points for one cancel, in the order in which to try them, and what there is too much
    of.
    """
    points = _diverse(survey.points([mode for mode in _SINGLE if mode in modes]))
    if "mid" not in modes:
        return points, []
    mids: Sample[Point] = Sample(most, Stream.named("mid"))
    for point in survey.points(("mid",)):
        mids.show(point)
    sampled = [_too_many("mid", mids)] if mids.shown > len(mids) else []
    return [*points, *mids], sampled


def _diverse(points: Iterator[Point]) -> list[Point]:
    """First a point of each line of code and role, told in each way, then the others.

    A budget that is spent early has then seen most of what there is to see.
    """
    new: list[Point] = []
    others: list[Point] = []
    seen = set()
    for point in points:
        kind = (point.where, point.role, point.shot.mode, point.shot.whom)
        (others if kind in seen else new).append(point)
        seen.add(kind)
    return new + others


def _too_many(mode: SweepMode, sample: Sample[_T]) -> str:
    return f"{mode} is sampled: {len(sample):,} of {sample.shown:,} points"


def _no_points(probe: Probe, baseline: Run, asked: _Asked) -> str:
    if not baseline.sites:
        return (
            f"{probe.name}: there is no point to cancel at; the run has no task that starts or "
            "waits, so a sweep of it would show nothing"
        )
    found = ", ".join(dict.fromkeys([site.role for site in baseline.sites]))
    return (
        f"{probe.name}: there is no point to cancel at for the modes {', '.join(asked.modes)}, "
        f"the roles {', '.join(asked.roles)} and whom {', '.join(asked.whom)}; the run has "
        f"{len(baseline.sites)} sites, of the roles {found}"
    )


class _Runner:
    """Makes the runs of a sweep while the budget lasts."""

    def __init__(self, meter: Meter, tape: Tape, many: Many) -> None:
        self.spent: str | None = None
        self._meter = meter
        self._tape = tape
        self._many = many

    def each(
        self, doing: str, tries: Sequence[tuple[Point, ...]]
    ) -> Iterator[tuple[tuple[Point, ...], Run]]:
        """The points of each try, and its run; ends early where the budget is spent."""
        meter = self._meter
        meter.doing, meter.planned = doing, meter.runs + len(tries)
        runs = self._many([Attempt(self._tape, tuple([p.shot for p in one])) for one in tries])
        for points in tries:
            self.spent = meter.spent()
            if self.spent is not None:
                return
            run = next(runs)
            meter.note_run()
            yield points, run
