"""Holds a trace against the invariants, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from harness.core.events import TurnStarted
from harness.core.trace import Trace
from harness.core.verdict import Verdict, Violation
from harness.invariants.invariant import Facts, Invariant
from harness.invariants.reader import EventType, Here, Reader
from harness.invariants.requests import RequestFold, Requests
from harness.invariants.step_reader import Steps
from harness.invariants.steps import StepFold

Listener: TypeAlias = Callable[[Any], None]


def judge(trace: Trace, invariants: Sequence[Invariant], facts: Facts | None = None) -> Verdict:
    """The verdict on `trace`: what breaks which invariant, and which had nothing to read."""
    known, here = facts or Facts(), Here()
    folds = [invariant(known, here) for invariant in invariants if invariant.applies(known)]
    steps = Steps(here, [fold.take for fold in folds if isinstance(fold, StepFold)])
    requests = Requests(here, [fold.request for fold in folds if isinstance(fold, RequestFold)])
    readers = (*folds, requests, steps)
    table = _methods(tuple(map(type, readers)))
    seen: dict[EventType, list[Listener]] = {}
    for here.index, here.entry in enumerate(trace.entries):
        event = here.entry.event
        kind = type(event)
        if isinstance(event, TurnStarted):
            here.turn = event.turn
        listeners = seen.get(kind)
        if listeners is None:
            listeners = seen[kind] = [
                getattr(readers[number], name) for number, name in table.get(kind, ())
            ]
        for listen in listeners:
            listen(event)
    steps.finish()
    for fold in folds:
        fold.finish()
    judged = {fold.id for fold in folds if fold.judged or not seen.keys().isdisjoint(fold.needs)}
    found = [violation for fold in folds for violation in fold.violations]
    found.sort(key=_place)
    return Verdict(tuple(found), tuple([each.id for each in invariants if each.id not in judged]))


@cache
def _methods(readers: tuple[type[Reader], ...]) -> dict[EventType, list[tuple[int, str]]]:
    """The readers of each kind of event, by their places, with the method that reads it."""
    methods: dict[EventType, list[tuple[int, str]]] = {}
    for number, reader in enumerate(readers):
        for kind, name in reader.reads.items():
            methods.setdefault(kind, []).append((number, name))
    return methods


def _place(violation: Violation) -> float:
    return float("inf") if violation.entry is None else violation.entry
