"""What tools did, and how often."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from msgspec import Struct

from harness.core.events import ReplyEnded, RequestSent, ToolEffect, TurnStarted
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold


class _Effect(Struct, frozen=True):
    """An effect that no ended reply asked for, yet: the `nth` of its call."""

    call_id: str
    name: str
    nth: int
    index: int
    turn: int


class EffectOnce(Fold):
    """No tool takes effect more often than the model called it."""

    id = "EFFECT-ONCE"
    reads: ClassVar[tuple[EventType, ...]] = (TurnStarted, RequestSent, ReplyEnded, ToolEffect)
    needs: ClassVar[tuple[EventType, ...]] = (ToolEffect,)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.asked: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.turn = 0
        self.open: set[str] = set()
        """Replies that may still turn out to have asked: a loop may run tools before it has read a
        reply to its end.
        """
        self.held: list[_Effect] = []

    def step(self, index: int, entry: Entry) -> None:
        """Count calls against effects."""
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn = turn
            case RequestSent(reply=reply):
                self.open.add(reply)
            case ReplyEnded(reply=reply, message=message):
                self.open.discard(reply)
                if message is not None:
                    self.asked.update(call.id for call in message.calls)
                if self.held:
                    self.settle()
            case ToolEffect(call_id=call_id, name=name):
                self.done[call_id] += 1
                if self.done[call_id] > self.asked[call_id]:
                    effect = _Effect(call_id, name, self.done[call_id], index, self.turn)
                    self.held.append(effect)
                    self.settle()

    def settle(self) -> None:
        """Tell of the effects that nothing can excuse any more."""
        self.held = [each for each in self.held if each.nth > self.asked[each.call_id]]
        if not self.open:
            self.finish()

    def finish(self) -> None:
        """Tell of the effects that were never asked for."""
        for each in self.held:
            self.report(
                f"{each.name} took effect {each.nth} times for call {each.call_id}, "
                f"which was asked for {self.asked[each.call_id]} time(s)",
                each.index,
                each.turn,
            )
        self.held = []
