"""What has happened is in the conversation: effects, answers, and what the consumer was told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from harness.core.events import LogRow, LoopEvent, ReplyEnded, TurnEnded, TurnStarted
from harness.core.json_text import Json
from harness.core.messages import Message
from harness.core.outcome import Completed
from harness.core.rows import AssistantRow, Row, ToolCallRow, TurnEndRow
from harness.core.trace import Entry
from harness.invariants.conversation import holds_text, said
from harness.invariants.invariant import EventType, Facts, Fold
from harness.invariants.requests import RequestFold, Sent
from harness.invariants.steps import Step, StepFold


class EffectKept(RequestFold):
    """What a tool has done is in the next request of the conversation, as the call and its result,
    unless the loop says that something is gone.

    What was shown once may be cut away with old messages; a turn that was cut short may not be
    forgotten as a whole. A call that is shown without a result is PAIR's to judge.
    """

    id = "EFFECT-KEPT"

    def request(self, sent: Sent) -> None:
        """Tell of the effects that the model does not hear of."""
        self.judged = self.judged or sent.watched
        for called in sent.lost:
            if called.effect:
                call = f"the call {called.call_id} of {called.name}"
                self.tell(sent, f"does not show {call}, which took effect")


class Durable(RequestFold, StepFold):
    """What was whole and acted on is in the next request: the answer that completed a turn, a reply
    whose tools ran, and what it said beside its calls.

    A reply that had effects is EFFECT-KEPT's to judge, and what was said beside calls
    NO-SILENT-DROP's where the turn goes on.
    """

    id = "DURABLE"
    reads: ClassVar[tuple[EventType, ...]] = (ReplyEnded, TurnEnded)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.reply = ""
        """The last reply of the main conversation, by its place."""
        self.said: str | None = None
        """What it said, where it asked for nothing."""
        self.answer: str | None = None
        """The answer that completed the turn before."""
        self.length = 0
        self.last: Sequence[Message] = ()
        """The last message of the main conversation's last request."""

    def step(self, index: int, entry: Entry) -> None:  # noqa: ARG002
        """Remember the answers of completed turns."""
        match entry.event:
            case ReplyEnded(reply=reply, end="complete", message=Message() as message) if (
                reply == self.reply
            ):
                self.said = None if message.calls else said(message)
            case TurnEnded(outcome=outcome):
                self.answer = self.said if isinstance(outcome, Completed) else None
            case _:
                pass

    def request(self, sent: Sent) -> None:
        """Look for the calls that were run, and the answer that completed the turn before."""
        for called in sent.lost:
            if not called.effect:
                call = f"the call {called.call_id} of {called.name}"
                self.tell(sent, f"does not show {call}, whose tool ran")
        if sent.main:
            conversation = sent.conversation
            if self.answer and self.goes_on(sent):
                self.judged = True
                if not holds_text(conversation.added, self.answer):
                    self.tell(sent, "does not show the answer of the turn before")
            self.reply, self.said, self.answer = sent.event.reply, None, None
            self.length, self.last = len(conversation.messages), conversation.messages[-1:]

    def goes_on(self, sent: Sent) -> bool:
        """Whether a request still holds what the answer followed."""
        conversation = sent.conversation
        if conversation.kept == self.length:
            return sent.voices.speaks_now(conversation.added)
        return not sent.stands_in and any(each in conversation.added for each in self.last)

    def take(self, step: Step) -> None:
        """Look for what was said beside the calls of a turn's last reply."""
        text = said(step.message)
        ran = any(slot.runs for slot in step.slots)
        if text and ran and step.structured and step.outcome is not None:
            self.judged = True
            if not holds_text(step.shown or (), text):
                lost = f"the request after reply {step.reply} does not show what it said"
                self.report(f"{lost} beside its calls", step.answered_at, step.turn)


class LogHistory(Fold):
    """Of what the consumer was told as whole, text and calls are in the log when the turn ends, and
    the turn's end is told only when its last row is written.

    A row that comes after the log's own end of the turn is ONE-TERMINAL's to judge.
    """

    id = "LOG-HISTORY"
    reads: ClassVar[tuple[EventType, ...]] = (TurnStarted, LogRow, LoopEvent, TurnEnded)
    needs: ClassVar[tuple[EventType, ...]] = ()

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.turn = 0
        self.logs = False
        """Whether the loop reports rows at all."""
        self.reset()

    def reset(self) -> None:
        """Forget the turn before."""
        self.texts: list[str] = []
        self.calls: set[str] = set()
        self.ended = False
        self.told_end = False
        self.done: list[tuple[str, list[str]]] = []

    def step(self, index: int, entry: Entry) -> None:
        """Hold what is told against what is written."""
        event = entry.event
        if type(event) is LogRow:
            self.logs = True
            if self.told_end and not self.ended:
                self.report(f"the turn's end was told before its {event.subject}", index, self.turn)
            self.write(event.row)
        elif type(event) is LoopEvent:
            if event.name == "done":
                self.told(event.payload)
            elif event.name == "turn_end":
                self.told_end = True
        elif isinstance(event, TurnStarted):
            self.turn = event.turn
            self.reset()
        elif self.logs and isinstance(event, TurnEnded):
            self.judged = self.judged or bool(self.done) or self.told_end
            for lost in self.lost():
                self.report(f"the consumer was told {lost}", index, event.turn)

    def write(self, row: Row) -> None:
        """Take in a row."""
        if type(row) is AssistantRow:
            self.texts.append(row.text)
        elif type(row) is ToolCallRow:
            self.calls.add(row.id)
        elif type(row) is TurnEndRow:
            self.ended = True

    def told(self, payload: Json) -> None:
        """Take in what the consumer was told of a whole reply."""
        match payload:
            case {"text": str(text), "tool_calls": list(calls)}:
                self.done.append((text, [one for call in calls for one in _id(call)]))
            case _:
                pass

    def lost(self) -> Iterator[str]:
        """What was told as whole and never written."""
        for text, calls in self.done:
            if text and not any(text in written for written in self.texts):
                yield "of a reply whose text is not in the log"
            for call_id in calls:
                if call_id not in self.calls:
                    yield f"of the call {call_id}, which is not in the log"


def _id(call: Json) -> tuple[str, ...]:
    """The id of a call that was told; none where the loop spells calls in its own way."""
    match call:
        case {"id": str(call_id)}:
            return (call_id,)
        case _:
            return ()
