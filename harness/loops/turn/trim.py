"""Cutting a history that has outgrown its budget, at a user's message, with a note in its place."""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from harness.core.messages import Message, Text
from harness.loops.turn.config import TEXTS
from harness.loops.turn.tokens import Estimate, message_tokens


class TrimOutcome(Struct, frozen=True):
    """What a trim took away."""

    removed_messages: int = 0
    removed_tokens: int = 0
    trimmed: bool = False


UNTRIMMED = TrimOutcome()

Trimmed: TypeAlias = tuple[tuple[Message, ...], TrimOutcome]

Trim: TypeAlias = Callable[[Sequence[Message], int, int, float, int], Trimmed]
"""(messages, system tokens, window, threshold, keep) -> what to send, and what was taken away."""


def token_budget(window: int, threshold: float) -> int:
    """How many tokens a request may have: a share of the window, at least 1.

    >>> token_budget(100, 0.29)
    28
    """
    if math.isnan(threshold):
        return 1
    return max(1, math.floor(window * min(max(threshold, 0.0), 1.0)))


def trim(
    messages: Sequence[Message],
    system_tokens: int,
    window: int,
    threshold: float,
    keep: int,
    *,
    estimate: Estimate = message_tokens,
    marker: str = TEXTS.trim_marker,
) -> Trimmed:
    """Cut `messages` to the budget that `window` and `threshold` give (window 0: never).

    The cut is made before a user's message, so calls stay with their results: before the first
    that lies within the last `keep` messages, or a later one if that is what fits. Where no such
    message fits, the last `keep` are sent although they are too many. System messages stay, in
    front. Messages are used again, never changed.
    """
    if window == 0:
        return tuple(messages), UNTRIMMED
    ledger = Ledger(estimate)
    ledger.extend(messages)
    return ledger.cut(system_tokens, window, threshold, keep, marker)


class Ledger:
    """A growing list of messages with the sums that a cut needs, so that nothing is read twice."""

    def __init__(self, estimate: Estimate = message_tokens) -> None:
        self.estimate = estimate
        self._messages: list[Message] = []
        self._systems: list[Message] = []
        self._system_sum = 0
        self._rest: list[Message] = []
        self._sums = [0]
        """`_sums[i]` is the size of `_rest[:i]`."""
        self._cuts: list[int] = []
        """Where `_rest` may be cut: the indices of users' messages."""

    def __len__(self) -> int:
        return len(self._messages)

    def extend(self, messages: Iterable[Message]) -> None:
        """Take in more messages; each is estimated once."""
        estimate = self.estimate
        rest, sums = self._rest, self._sums
        total = sums[-1]
        for message in messages:
            self._messages.append(message)
            role = message.role
            if role == "system":
                self._systems.append(message)
                self._system_sum += estimate(message)
                continue
            if role == "user":
                self._cuts.append(len(rest))
            rest.append(message)
            total += estimate(message)
            sums.append(total)

    def extended(self, messages: Sequence[Message]) -> Ledger:
        """This ledger with more messages; itself where there are none, else a copy."""
        if not messages:
            return self
        other = copy.copy(self)
        for name in ("_messages", "_systems", "_rest", "_sums", "_cuts"):
            setattr(other, name, getattr(self, name).copy())
        other.extend(messages)
        return other

    def cut(
        self, system_tokens: int, window: int, threshold: float, keep: int, marker: str
    ) -> Trimmed:
        """What `trim` gives for these messages, from the sums at hand."""
        if window == 0:
            return tuple(self._messages), UNTRIMMED
        budget = token_budget(window, threshold)
        size = system_tokens + self._system_sum + self._sums[-1]
        if size <= budget:
            return tuple(self._messages), UNTRIMMED
        places = (self._recent(keep), self._fitting(size, budget, marker))
        last = self._cuts[-1] if self._cuts else 0
        cut = max([place for place in places if place is not None], default=last)
        if cut == 0:
            return (*self._systems, *self._rest), UNTRIMMED
        kept = (*self._systems, self._note(cut, marker), *self._rest[cut:])
        return kept, TrimOutcome(cut, self._sums[cut], trimmed=True)

    def sent(self, outcome: TrimOutcome, marker: str) -> int:
        """The size of what is left after a cut that gave `outcome`."""
        size = self._system_sum + self._sums[-1] - outcome.removed_tokens
        if outcome.trimmed:
            size += self.estimate(self._note(outcome.removed_messages, marker))
        return size

    def _recent(self, keep: int) -> int | None:
        """The first cut that leaves no more than the last `keep` messages."""
        at = bisect_left(self._cuts, max(0, len(self._rest) - max(1, keep)))
        return self._cuts[at] if at < len(self._cuts) else None

    def _fitting(self, size: int, budget: int, marker: str) -> int | None:
        """The first cut that leaves no more than the budget, its note included."""
        first = bisect_left(self._cuts, size - budget, key=self._sums.__getitem__)
        for cut in self._cuts[first:]:
            if size - self._sums[cut] + self.estimate(self._note(cut, marker)) <= budget:
                return cut
        return None

    def _note(self, cut: int, marker: str) -> Message:
        text = marker.replace("{messages}", str(cut)).replace("{tokens}", str(self._sums[cut]))
        return Message("system", (Text(text),))
