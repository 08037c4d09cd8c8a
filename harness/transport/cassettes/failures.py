"""Requests that a provider gave no answer to, or none to their key: they are asked again, since to
play them ever after would help nobody who records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from harness.core.wording import counted
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.matching import canonical
from harness.transport.rules import Rules

KEY_REFUSED: Final = (401, 403, 407)
"""Statuses by which providers, and proxies before them, refuse a key."""
_NOT_REACHED: Final = ("refused", "dropped", "reset", "timeout")


def failure(given: Interaction) -> str:
    """How an interaction failed at the provider, in a word or two; "" where it did not."""
    if given.status in KEY_REFUSED:
        return f"status {given.status}"
    return given.ended if given.status is None and given.ended in _NOT_REACHED else ""


def unanswered(given: Sequence[Interaction], rules: Rules) -> frozenset[int]:
    """The places of those that failed, and that no equal request behind them had an answer to."""
    failed = [at for at, each in enumerate(given) if failure(each)]
    if not failed:
        return frozenset()
    marks = [_mark(each, rules) for each in given]
    answered = {mark: at for at, mark in enumerate(marks) if not failure(given[at])}
    return frozenset([at for at in failed if answered.get(marks[at], -1) < at])


def renewed(
    before: Sequence[Interaction],
    failed: Collection[int],
    recorded: Sequence[Interaction],
    rules: Rules,
) -> tuple[Interaction, ...]:
    """What was there, with what was recorded behind it; but what asks again for something that
    failed, by its place, stands in the place of that.
    """
    again: dict[bytes, deque[Interaction]] = {}
    for each in recorded if failed else ():
        again.setdefault(_mark(each, rules), deque()).append(each)
    kept: list[Interaction] = []
    later = 0  # what takes longer now has those behind it begin later
    for at, old in enumerate(before):
        found = again.get(_mark(old, rules)) if at in failed else None
        if found is None:
            kept.append(replace(old, begun=old.begun + later))
        elif found:
            new = found.popleft()
            kept.append(replace(new, begun=old.begun + later))
            later += max(new.ended_at - old.ended_at, 0)
    placed = {id(each) for each in recorded} if failed else set()
    placed -= {id(each) for left in again.values() for each in left}
    over = max([each.begun + each.ended_at for each in kept], default=0)
    rest = [replace(each, begun=each.begun + over) for each in recorded if id(each) not in placed]
    return (*kept, *rest)


def failures_told(given: Sequence[Interaction], places: Collection[int]) -> str:
    """Words for those that failed; "" where none did."""
    if not places:
        return ""
    how = ", ".join(dict.fromkeys([failure(given[at]) for at in sorted(places)]))
    return f"; {counted(len(places), 'request')} failed at the provider: {how}"


def _mark(given: Interaction, rules: Rules) -> bytes:
    """What equal requests have in common."""
    return canonical(given.request, rules).digest
