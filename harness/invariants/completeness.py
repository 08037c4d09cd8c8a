"""Whole replies only, and the whole of them."""

from __future__ import annotations

from collections import defaultdict

from harness.core.events import ReplyEnded, ToolStarted
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import Here, on
from harness.invariants.steps import Step, StepFold


class CompleteOnly(Fold):
    """No tool runs for a reply that broke after it had asked for it."""

    id = "COMPLETE-ONLY"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.whole: defaultdict[tuple[str, str], int] = defaultdict(int)
        """How many calls of whole replies there were, by id and name."""
        self.broken: dict[tuple[str, str], ReplyEnded] = {}
        self.starts: dict[tuple[str, str], list[tuple[int, int]]] = {}
        """The entry and the turn of each start."""

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Count calls; what a broken reply asked for may have been started already."""
        message, whole = event.message, event.end == "complete"
        self.judged = self.judged or not whole
        calls = [(call.id, call.name) for call in message.calls] if message is not None else []
        if whole:
            for call in calls:
                self.whole[call] += 1
            return
        for call in calls:
            self.broken[call] = event
            for started, turn in self.starts.get(call, [])[self.whole[call] :]:
                self.tell(call, started, turn)

    @on(ToolStarted)
    def started(self, event: ToolStarted) -> None:
        """Count starts against calls of whole replies, once a reply with the call has broken."""
        call, here = (event.call_id, event.name), self.here
        starts = self.starts.setdefault(call, [])
        starts.append((here.index, here.turn))
        if call in self.broken and len(starts) > self.whole[call]:
            self.tell(call, here.index, here.turn)

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

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
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
            if slot.runs or slot.shared or slot.bad_arguments or self.unknown(step, slot):
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
