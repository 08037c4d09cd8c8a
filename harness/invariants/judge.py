"""Holds a trace against the invariants, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from harness.core.trace import Entry, Trace
from harness.core.verdict import Verdict, Violation
from harness.invariants.invariant import EventType, Facts, Invariant
from harness.invariants.requests import RequestFold, Requests
from harness.invariants.step_reader import Steps
from harness.invariants.steps import StepFold

Listener: TypeAlias = Callable[[int, Entry], None]


def judge(trace: Trace, invariants: Sequence[Invariant], facts: Facts | None = None) -> Verdict:
    """The verdict on `trace`: what breaks which invariant, and which had nothing to read."""
    known = facts or Facts()
    folds = [invariant(known) for invariant in invariants]
    takers = [fold for fold in folds if isinstance(fold, StepFold)]
    senders = [fold for fold in folds if isinstance(fold, RequestFold)]
    steps, requests = Steps(), Requests()

    def read_request(index: int, entry: Entry) -> None:
        sent = requests.take(index, entry)
        if sent is not None:
            for sender in senders:
                sender.request(sent)

    def read_step(index: int, entry: Entry) -> None:
        for step in steps.take(index, entry):
            for taker in takers:
                taker.take(step)

    readers = _readers(tuple(invariants))
    seen: dict[EventType, list[Listener]] = {}
    for index, entry in enumerate(trace.entries):
        kind = type(entry.event)
        listeners = seen.get(kind)
        if listeners is None:
            listeners = seen[kind] = [folds[number].step for number in readers.get(kind, ())]
            if senders and kind in Requests.reads:
                listeners.append(read_request)
            if takers and kind in Steps.reads:
                listeners.append(read_step)
        for listen in listeners:
            listen(index, entry)
    for step in steps.finish():
        for taker in takers:
            taker.take(step)
    for fold in folds:
        fold.finish()
    found = [violation for fold in folds for violation in fold.violations]
    found.sort(key=_place)
    not_judged = tuple(
        [fold.id for fold in folds if not (fold.judged or any(k in seen for k in fold.needs))]
    )
    return Verdict(tuple(found), not_judged)


@cache
def _readers(invariants: tuple[Invariant, ...]) -> dict[EventType, list[int]]:
    """The invariants that read each kind of event, by their places."""
    readers: dict[EventType, list[int]] = {}
    for number, invariant in enumerate(invariants):
        for kind in invariant.reads:
            readers.setdefault(kind, []).append(number)
    return readers


def _place(violation: Violation) -> float:
    return float("inf") if violation.entry is None else violation.entry
