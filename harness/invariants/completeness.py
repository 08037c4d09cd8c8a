"""Whole replies only, and the whole of them."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from harness.core.events import ReplyEnded, ToolStarted, TurnStarted
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold
from harness.invariants.steps import Step, StepFold


class CompleteOnly(Fold):
    """No tool runs for a reply that broke after it had asked for it."""

    id = "COMPLETE-ONLY"
    reads: ClassVar[tuple[EventType, ...]] = (TurnStarted, ReplyEnded, ToolStarted)
    needs: ClassVar[tuple[EventType, ...]] = ()

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.turn = 0
        self.whole: Counter[tuple[str, str]] = Counter()
        """How many calls of whole replies there were, by id and name."""
        self.broken: dict[tuple[str, str], ReplyEnded] = {}
        self.starts: dict[tuple[str, str], list[tuple[int, int]]] = {}
        """The entry and the turn of each start."""

    def step(self, index: int, entry: Entry) -> None:
        """Count starts against calls of whole replies, once a reply with the call has broken."""
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn = turn
            case ReplyEnded(end=end, message=message) as reply:
                if message is None:
                    self.judged = self.judged or end != "complete"
                    return
                calls = [(call.id, call.name) for call in message.calls]
                if end == "complete":
                    self.whole.update(calls)
                    return
                self.judged = True
                for call in calls:
                    self.broken[call] = reply
                    for started, turn in self.starts.get(call, [])[self.whole[call] :]:
                        self.tell(call, started, turn)
            case ToolStarted(call_id=call_id, name=name):
                call = (call_id, name)
                starts = self.starts.setdefault(call, [])
                starts.append((index, self.turn))
                if call in self.broken and len(starts) > self.whole[call]:
                    self.tell(call, index, self.turn)

    def tell(self, call: tuple[str, str], index: int, turn: int) -> None:
        """Report a tool that ran."""
        call_id, name = call
        reply = self.broken[call]
        why = f" ({reply.error})" if reply.error else ""
        self.report(
            f"{name} ran for call {call_id}, though reply {reply.reply} {reply.end}{why} after it "
            "had asked for that",
            index,
            turn,
        )


class NoSilentDrop(StepFold):
    """What a whole reply says and asks for is in the next request: its text, and each call that
    no tool ran for.

    A call that is shown without an answer is PAIR's to judge, one whose tool ran EFFECT-KEPT's; a
    shared id is SLOT's, a tool that there is not UNKNOWN-TOOL's, arguments that are none BAD-ARGS'.
    """

    id = "NO-SILENT-DROP"

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.structured = False
        self.plain: list[tuple[Step, str]] = []
        """What is missing in requests that show no call and no answer: an agent that writes both
        as plain text shows none ever.
        """

    def take(self, step: Step) -> None:
        """Look for text and calls in the request that follows."""
        if step.structured:
            self.structured = True
        if not step.went_on:
            return
        self.judged = True
        said = _spaced(step.message.text)
        if said and not any(said in _spaced(message.text) for message in step.shown or ()):
            self.tell(step, f"does not show what reply {step.reply} said beside its calls")
        for slot in step.slots:
            name, tools = slot.call.name, self.facts.tools
            known = tools is None or name in tools or name in step.offered
            if slot.runs or slot.shared or slot.bad_arguments or not known:
                continue
            if slot.shown is None and slot.answer is None:
                missing = f"has no trace of {slot.name}, which no tool ran for"
                if step.structured:
                    self.tell(step, missing)
                else:
                    self.plain.append((step, missing))

    def finish(self) -> None:
        """Tell of requests without any call or answer, where the agent knows the form."""
        if self.structured:
            for step, missing in self.plain:
                self.tell(step, missing)

    def tell(self, step: Step, missing: str) -> None:
        """Report what the next request lacks."""
        self.report(f"the request after reply {step.reply} {missing}", step.answered_at, step.turn)


def _spaced(text: str) -> str:
    return " ".join(text.split())
