"""A session log in memory that keeps its messages and their sizes as it grows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harness.core.messages import Message
from harness.core.rows import Row, TurnEndRow, TurnStartRow
from harness.loops.turn.config import TEXTS, Texts
from harness.loops.turn.derive import Derivation
from harness.loops.turn.policy import SAFE, Policy
from harness.loops.turn.tokens import Estimate
from harness.loops.turn.trim import Ledger

_TURN_ID = re.compile("turn-([0-9]{1,18})")


class MemoryLog:
    """Rows in order; implements `harness.core.ports.SessionLog`.

    A row is read once: what it means as messages, and how large they are, is kept. `turns` is how
    many turn ids were given before `rows`; those that stand in rows count as given.
    """

    def __init__(
        self,
        policy: Policy = SAFE,
        texts: Texts = TEXTS,
        *,
        rows: Iterable[Row] = (),
        turns: int = 0,
    ) -> None:
        self._policy = policy
        self._texts = texts
        self._turns = turns
        self._rows: list[Row] = []
        self._derivation = Derivation(policy, texts)
        self._ledger = Ledger()
        for row in rows:
            self.append(row)

    def append(self, row: Row) -> None:
        """Write a row."""
        self._rows.append(row)
        self._derivation.add(row)
        if isinstance(row, TurnStartRow | TurnEndRow):
            found = _TURN_ID.fullmatch(row.id)
            if found:
                self._turns = max(self._turns, int(found[1]) + 1)

    def rows(self) -> Sequence[Row]:
        """All rows so far, as a copy."""
        return tuple(self._rows)

    def derive_messages(self) -> tuple[Message, ...]:
        """The conversation that the rows mean."""
        return (*self._derivation.messages, *self._derivation.tail())

    def ledger(self, estimate: Estimate) -> Ledger:
        """The same conversation with its sizes; a message is estimated once for an `estimate`."""
        if self._ledger.estimate is not estimate:
            self._ledger = Ledger(estimate)
        self._ledger.extend(self._derivation.messages[len(self._ledger) :])
        return self._ledger.extended(self._derivation.tail())

    def next_turn_id(self) -> str:
        """A fresh id, never one that was given before."""
        turn_id = f"turn-{self._turns}"
        self._turns += 1
        return turn_id

    def clear(self) -> None:
        """Forget all rows; turn ids go on."""
        self._rows = []
        self._derivation = Derivation(self._policy, self._texts)
        self._ledger = Ledger()
