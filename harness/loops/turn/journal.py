"""Where a turn's rows and events go, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from harness.core.events import InsideEvent, LogRow, LoopEvent, ResultSynthesized
from harness.core.messages import Message, Thinking, ToolCall
from harness.core.outcome import Outcome
from harness.core.ports import SessionLog
from harness.core.rows import Row, TurnStartRow, UserRow
from harness.loops.turn import events, sse
from harness.loops.turn.events import TextTold, ThinkingTold, TurnEvent
from harness.loops.turn.registry import ToolOutput

Sink: TypeAlias = Callable[[TurnEvent], None]
Observe: TypeAlias = Callable[[InsideEvent], None]


class Journal:
    """Writes rows to the log and tells events to the consumer, both at once and in order.

    `observe`, where given, is told of every row, of every event and of every synthesized result.
    """

    def __init__(self, log: SessionLog, sink: Sink | None, observe: Observe | None) -> None:
        self._log = log
        self._sink = sink
        self._observe = observe

    def started(self, turn_id: str, text: str | None) -> None:
        """The turn began; a resume (None) has no user row."""
        self._write(TurnStartRow(turn_id))
        if text is not None:
            self._write(UserRow(text))

    def text(self, delta: str) -> None:
        """A piece of text came."""
        self._tell(TextTold(delta))

    def thinking(self, delta: str) -> None:
        """A piece of reasoning came."""
        self._tell(ThinkingTold(delta))

    def burst(self, deltas: Iterable[str]) -> None:
        """A burst of reasoning is over."""
        self._write(events.burst(deltas))

    def done(self, message: Message) -> None:
        """The reply is whole."""
        self._tell(events.done(message))

    def reply(self, texts: Iterable[str], signed: Sequence[Thinking]) -> None:
        """The reply's text counts, and so does the reasoning that was signed."""
        self._write(events.reply(texts, signed))

    def called(self, call: ToolCall) -> None:
        """The model asked for a tool."""
        row, event = events.called(call)
        self._write(row)
        self._tell(event)

    def answered(self, call_id: str, output: ToolOutput) -> None:
        """A tool answered."""
        row, event = events.answered(call_id, output)
        self._tell(event)
        self._write(row)

    def synthesized(self, call: ToolCall, error: str) -> None:
        """The loop answers in the tool's place."""
        row, event = events.answered(call.id, ToolOutput(call.id, error=error))
        self._write(row)
        self._tell(event)
        if self._observe is not None:
            self._observe(ResultSynthesized(call.id, call.name, error))

    def ended(self, turn_id: str, outcome: Outcome) -> None:
        """The turn came to its terminal state."""
        row, event = events.ended(turn_id, outcome)
        self._write(row)
        self._tell(event)

    def _write(self, row: Row) -> None:
        self._log.append(row)
        if self._observe is not None:
            self._observe(LogRow(row))

    def _tell(self, event: TurnEvent) -> None:
        if self._sink is not None:
            self._sink(event)
        if self._observe is not None:
            self._observe(LoopEvent(*sse.frame(event)))
