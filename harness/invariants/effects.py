"""What tools did, and how often."""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar

from msgspec import Struct

from harness.core.events import ReplyEnded, RequestSent, ToolEffect
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import EventType, Here, on


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
    needs: ClassVar[tuple[EventType, ...]] = (ToolEffect,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.asked: defaultdict[str, int] = defaultdict(int)
        self.done: defaultdict[str, int] = defaultdict(int)
        self.open: set[str] = set()
        """Replies that may still turn out to have asked: a loop may run tools before it has read a
        reply to its end.
        """
        self.held: list[_Effect] = []

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Its reply may ask for anything."""
        self.open.add(event.reply)

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Count calls."""
        self.open.discard(event.reply)
        if event.message is not None:
            for call in event.message.calls:
                self.asked[call.id] += 1
        if self.held:
            self.settle()

    @on(ToolEffect)
    def took_effect(self, event: ToolEffect) -> None:
        """Hold effects against calls."""
        call_id, here = event.call_id, self.here
        nth = self.done[call_id] = self.done[call_id] + 1
        if nth > self.asked[call_id]:
            self.held.append(_Effect(call_id, event.name, nth, here.index, here.turn))
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
