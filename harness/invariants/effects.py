"""What tools did, and how often."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from harness.core.events import ReplyEnded, ToolEffect, TurnStarted
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold


class EffectOnce(Fold):
    """No tool takes effect more often than the model called it."""

    id = "EFFECT-ONCE"
    reads: ClassVar[tuple[EventType, ...]] = (TurnStarted, ReplyEnded, ToolEffect)
    needs: ClassVar[tuple[EventType, ...]] = (ToolEffect,)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.asked: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.turn = 0

    def step(self, index: int, entry: Entry) -> None:
        """Count calls against effects."""
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn = turn
            case ReplyEnded(message=message) if message is not None:
                self.asked.update(call.id for call in message.calls)
            case ToolEffect(call_id=call_id, name=name):
                self.done[call_id] += 1
                if self.done[call_id] > self.asked[call_id]:
                    self.report(
                        f"{name} took effect {self.done[call_id]} times for call {call_id}, "
                        f"which was asked for {self.asked[call_id]} time(s)",
                        index,
                        self.turn,
                    )
