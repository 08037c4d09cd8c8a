"""What has happened is in the conversation: effects, answers, and what the consumer was told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.core.events import Compacted, LogRow, LoopEvent, ReplyEnded, TurnEnded, TurnStarted
from harness.core.json_text import Json
from harness.core.messages import Message
from harness.core.outcome import Completed
from harness.core.rows import AssistantRow, ToolCallRow, TurnEndRow
from harness.invariants.conversation import holds_text, said
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import Here, on
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

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.reply = ""
        """The last reply of the main conversation, by its place."""
        self.said: str | None = None
        """What it said, where it asked for nothing."""
        self.answer: str | None = None
        """The answer that completed the turn before."""
        self.length = 0
        self.last: Sequence[Message] = ()
        """The last message of the main conversation's last request."""

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Remember what a whole reply said."""
        message = event.message
        if event.reply == self.reply and event.end == "complete" and message is not None:
            self.said = None if message.calls else said(message)

    @on(TurnEnded)
    def ended(self, event: TurnEnded) -> None:
        """Remember the answer of a completed turn."""
        self.answer = self.said if isinstance(event.outcome, Completed) else None

    @on(Compacted)
    def compacted(self, event: Compacted) -> None:
        """What was summed up is COMPACT-HONEST's to judge."""
        if event.failed is None:
            self.answer = None

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
        """Whether a request still holds what the answer followed, or an older reply of the model:
        what is cut away goes with all that is older.
        """
        conversation = sent.conversation
        if conversation.kept == self.length:
            return sent.voices.speaks_now(conversation.added)
        if sent.stands_in:
            return False
        if any(each in conversation.added for each in self.last):
            return True
        older = conversation.messages[: conversation.kept]
        replies = [message for message in older if message.role == "assistant"]
        return not all(map(sent.voices.made_by_the_loop, replies))

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

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.logs = False
        """Whether the loop reports rows at all."""
        self.texts: list[str] = []
        self.calls: set[str] = set()
        self.ended = False
        self.told_end = False
        self.done: list[tuple[str, list[str]]] = []

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """Forget the turn before."""
        self.texts, self.calls, self.done = [], set(), []
        self.ended = self.told_end = False

    @on(LogRow)
    def write(self, event: LogRow) -> None:
        """Take in a row."""
        self.logs = True
        if self.told_end and not self.ended:
            self.report_here(f"the turn's end was told before its {event.subject}")
        row = event.row
        if type(row) is AssistantRow:
            self.texts.append(row.text)
        elif type(row) is ToolCallRow:
            self.calls.add(row.id)
        elif type(row) is TurnEndRow:
            self.ended = True

    @on(LoopEvent)
    def told(self, event: LoopEvent) -> None:
        """Take in what the consumer was told: a whole reply, the turn's end."""
        if event.name == "turn_end":
            self.told_end = True
        elif event.name == "done":
            match event.payload:
                case {"text": str(text), "tool_calls": list(calls)}:
                    self.done.append((text, [one for call in calls for one in _id(call)]))

    @on(TurnEnded)
    def end(self, event: TurnEnded) -> None:
        """Hold what was told against what is written."""
        if self.logs:
            self.judged = self.judged or bool(self.done) or self.told_end
            for lost in self.lost():
                self.report(f"the consumer was told {lost}", self.here.index, event.turn)

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
