"""Holds a trace against the invariants, in one pass."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.trace import Trace
from harness.core.verdict import Verdict, Violation
from harness.invariants.invariant import EventType, Facts, Fold, Invariant
from harness.invariants.step_reader import Steps
from harness.invariants.steps import StepFold


def judge(trace: Trace, invariants: Sequence[Invariant], facts: Facts | None = None) -> Verdict:
    """The verdict on `trace`: what breaks which invariant, and which had nothing to read."""
    known = facts or Facts()
    folds = [invariant(known) for invariant in invariants]
    readers: dict[EventType, list[Fold]] = {}
    for fold in folds:
        for kind in fold.reads:
            readers.setdefault(kind, []).append(fold)
    takers = [fold for fold in folds if isinstance(fold, StepFold)]
    steps = Steps()
    steppers = frozenset(Steps.reads if takers else ())
    seen: set[EventType] = set()
    for index, entry in enumerate(trace.entries):
        kind = type(entry.event)
        seen.add(kind)
        for fold in readers.get(kind, ()):
            fold.step(index, entry)
        if kind in steppers:
            for step in steps.take(index, entry):
                for taker in takers:
                    taker.take(step)
    for step in steps.finish():
        for taker in takers:
            taker.take(step)
    for fold in folds:
        fold.finish()
    found = [violation for fold in folds for violation in fold.violations]
    found.sort(key=_place)
    not_judged = tuple(fold.id for fold in folds if not (fold.judged or _met(fold, seen)))
    return Verdict(tuple(found), not_judged)


def _place(violation: Violation) -> float:
    return float("inf") if violation.entry is None else violation.entry


def _met(fold: Fold, seen: set[EventType]) -> bool:
    return any(kind in seen for kind in fold.needs)
