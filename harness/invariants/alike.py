"""Calls of one reply that nothing tells apart: which of their runs is whose, the answers say."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from harness.core.json_text import dumps
from harness.invariants.steps import Run, Slot, shows_failure, spellings


def tell_apart(slots: Sequence[Slot]) -> None:
    """Where calls have the same id, name and arguments, deal their runs out anew: each to a call
    whose answer shows it, the others to the calls that are left, in order.

    A run is dealt once, so that a result that stands at two such calls is still found.
    """
    groups: dict[tuple[str, str, str | None, str], list[Slot]] = {}
    for slot in slots:
        if slot.shared:
            call = slot.call
            alike = (call.id, call.name, call.raw, dumps(call.args))
            groups.setdefault(alike, []).append(slot)
    for group in groups.values():
        if len(group) > 1:
            _deal(group)


def _deal(group: Sequence[Slot]) -> None:
    left = dict(enumerate([slot.runs for slot in group]))
    dealt: dict[int, list[Run]] = {}
    results = _results(group)
    for at, slot in enumerate(group):
        told = results.get(slot.answer.text, deque()) if slot.answer is not None else deque()
        while told and at not in dealt:
            place = told.popleft()
            if place in left:  # not dealt for another way to write its result
                dealt[at] = left.pop(place)
    for at, slot in enumerate(group):
        if at not in dealt and slot.answer is not None:
            for place, runs in left.items():
                ended = runs[-1].ended if runs else None
                came_to_nothing = ended is None or ended.end != "returned"
                error = None if ended is None else ended.error
                if came_to_nothing and shows_failure(slot.answer, error):
                    dealt[at] = left.pop(place)
                    break
    rest = iter(left.values())
    for at, slot in enumerate(group):
        slot.runs = dealt[at] if at in dealt else next(rest)


def _results(group: Sequence[Slot]) -> dict[str, deque[int]]:
    """The calls by how what they returned may be written; those with fewer ways come first, since
    what may also be written in another way can wait.
    """
    ways = [spellings(slot) for slot in group]
    results: dict[str, deque[int]] = {}
    for place in sorted(range(len(group)), key=lambda place: len(ways[place])):
        for text in ways[place]:
            results.setdefault(text, deque()).append(place)
    return results
