"""What every invariant does, whatever it judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import cleandoc
from typing import get_args

from msgspec import Struct

from harness.core.trace import Trace
from harness.core.verdict import Severity, Verdict
from harness.invariants import INVARIANTS
from harness.invariants.invariant import Fold, Invariant
from harness.invariants.judge import judge
from harness.runner.result import Result
from harness.runner.run import facts_of
from harness.testing.conformance.laws import Law, expect, hold

BEGINNINGS = 40
"""How many beginnings of each run are judged, at most."""


def check_invariant(
    invariant: Invariant, *, broken: Sequence[Result], kept: Sequence[Result]
) -> None:
    """Hold an invariant against what all of them do; NotConforming tells of all that does not hold.

    `broken` are runs that break it, `kept` runs that do not; some of each are needed, since an
    invariant that nothing shows to work judges nothing. UsageError for what is no invariant, and
    for what are no runs.
    """
    expect(
        invariant,
        "an invariant, a subclass of Fold with an id",
        fits=_is(invariant, type) and Fold in invariant.__mro__ and hasattr(invariant, "id"),
    )
    for runs in (broken, kept):
        fits = _is(runs, Sequence) and all(_is(each, Result) for each in runs)
        expect(runs, "a list of results, as harness.run gives them", fits=fits)
    hold(f"the invariant {invariant.id}", _Tried(invariant, tuple(broken), tuple(kept)), LAWS)


def _is(given: object, kind: type) -> bool:
    """Whether a value is what its annotation says, which who calls may not have checked."""
    return isinstance(given, kind)


class _Tried(Struct, frozen=True):
    """An invariant, and runs that show what it does."""

    invariant: Invariant
    broken: tuple[Result, ...]
    kept: tuple[Result, ...]

    @property
    def runs(self) -> tuple[Result, ...]:
        """All of them."""
        return (*self.broken, *self.kept)

    def judge(self, result: Result, trace: Trace | None = None) -> Verdict:
        """What the invariant alone finds in a run, or in another trace of the same scenario."""
        facts = facts_of(result.scenario, result.subject)
        return judge(result.trace if trace is None else trace, [self.invariant], facts)


def is_named(tried: _Tried) -> Iterator[str]:
    """It has a name of its own in capitals, and says in one sentence what must hold."""
    invariant = tried.invariant
    if invariant.id != invariant.id.upper() or not invariant.id.replace("-", "").isalnum():
        yield f"the name {invariant.id!r} is not of capitals, digits and hyphens"
    if any(each.id == invariant.id and each is not invariant for each in INVARIANTS):
        yield f"there is another invariant that is called {invariant.id}"
    says, _, _more = cleandoc(invariant.__doc__ or "").partition("\n\n")
    if not says.endswith("."):
        yield f"its docstring does not begin with the rule in a sentence: {says!r}"
    if invariant.severity not in get_args(Severity):
        yield f"the severity {invariant.severity!r} is none of {get_args(Severity)}"


def is_shown_to_work(tried: _Tried) -> Iterator[str]:
    """There are runs that break it and runs that keep it."""
    if not tried.broken:
        yield "no run is given that breaks it"
    if not tried.kept:
        yield "no run is given that keeps it"


def finds_what_is_broken(tried: _Tried) -> Iterator[str]:
    """It reports each run that breaks it."""
    for result in tried.broken:
        if not tried.judge(result).violations:
            yield f"{result!r} is not reported"


def leaves_alone_what_is_kept(tried: _Tried) -> Iterator[str]:
    """It reports nothing in runs that keep it, and judges one of them at least."""
    for result in tried.kept:
        for violation in tried.judge(result).violations:
            yield f"{result!r} is reported: {violation.message}"
    if tried.kept and all(tried.judge(result).not_judged for result in tried.kept):
        yield "none of the runs that keep it is judged"


def points_where_it_is(tried: _Tried) -> Iterator[str]:
    """What it reports is its own, judged, told once, and at an entry and a turn that there is."""
    for result in tried.broken:
        turns = len(result.outcomes)
        verdict = tried.judge(result)
        if verdict.violations and verdict.not_judged:
            yield f"{result!r} is reported, and said to be not judged: nothing that it needs came"
        if len(set(verdict.violations)) < len(verdict.violations):
            yield f"{result!r}: the same is reported twice"
        for violation in verdict.violations:
            if violation.invariant != tried.invariant.id or not violation.message:
                yield f"{violation} is not its own, or says nothing"
            if violation.entry is not None and not 0 <= violation.entry < len(result.trace):
                yield f"{violation.message}: there is no entry {violation.entry}"
            if violation.severity not in get_args(Severity):
                yield f"the severity {violation.severity!r} is none of {get_args(Severity)}"
            if violation.turn is not None and not 0 <= violation.turn <= turns + 1:
                yield f"{violation.message}: there is no turn {violation.turn}"


def judges_any_beginning(tried: _Tried) -> Iterator[str]:
    """It judges a run that ends anywhere, and finds nothing where nothing has happened."""
    for result in tried.runs:
        entries = result.trace.entries
        for end in range(0, len(entries), 1 + len(entries) // BEGINNINGS):
            try:
                tried.judge(result, Trace(entries[:end]))
            except Exception as error:
                yield f"{result!r} up to entry {end}: {type(error).__name__}: {error}"
                break
        for violation in tried.judge(result, Trace(())).violations:
            yield f"of a run without any event: {violation.message}"


def judges_the_same_every_time(tried: _Tried) -> Iterator[str]:
    """It finds the same again, also beside all others, and changes nothing in the run."""
    others = [each for each in INVARIANTS if each is not tried.invariant]
    for result in tried.runs:
        lines = result.trace.lines()
        found = tried.judge(result).violations
        if tried.judge(result).violations != found:
            yield f"{result!r} is judged otherwise the second time"
        facts = facts_of(result.scenario, result.subject)
        beside = judge(result.trace, [*others, tried.invariant], facts)
        own = [each for each in beside.violations if each.invariant == tried.invariant.id]
        if own != list(found):
            yield f"{result!r} is judged otherwise beside the other invariants"
        if result.trace.lines() != lines:
            yield f"{result!r} is changed by being judged"


LAWS: tuple[Law[_Tried], ...] = (
    is_named,
    judges_the_same_every_time,  # before the others, which show it all runs
    is_shown_to_work,
    finds_what_is_broken,
    leaves_alone_what_is_kept,
    points_where_it_is,
    judges_any_beginning,
)
"""What `check_invariant` holds an invariant against."""
