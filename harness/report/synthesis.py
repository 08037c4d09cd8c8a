"""Which calls were answered in the tool's place: what became of each, and what was said instead."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.events import (
    LogRow,
    ReplyEnded,
    RequestSent,
    ResultSynthesized,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    TurnStarted,
)
from harness.core.rows import ToolResultRow
from harness.core.trace import Trace
from harness.report.values import call_text, message_text, quote, word

_BY_TOOL = ("returned", "error", "raised")
"""The ends of a tool that are an answer of its own."""


class _Call:
    """A call, what has become of it so far, and who answered it with what."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fate = "never started"
        self.heading = ""
        self.report: str | None = None
        self.row: str | None = None
        self.sent: str | None = None

    def found(self, turn: int) -> None:
        """It was answered in the tool's place; what had become of it by then is what counts."""
        self.heading = self.heading or f"turn {turn}: {self.text}, {self.fate}"

    def lines(self) -> Iterator[str]:
        yield self.heading
        for name, said in (("report", self.report), ("row", self.row), ("sent", self.sent)):
            if said is not None:
                yield f"  {name:<6} {said}"


class _Calls:
    """Follows the calls of a run; an id that is given again belongs to the newer call."""

    def __init__(self) -> None:
        self.turn = 0
        self.every: list[_Call] = []
        self._by_id: dict[str, _Call] = {}

    def asked(self, call_id: str, text: str) -> _Call:
        call = self._by_id[call_id] = _Call(text)
        self.every.append(call)
        return call

    def fate(self, call_id: str, fate: str) -> None:
        if call_id in self._by_id:
            self._by_id[call_id].fate = fate

    def row(self, row: ToolResultRow) -> None:
        call = self._by_id.get(row.id)
        if call is not None:
            call.row = quote(row.value) if row.error is None else f"error {quote(row.error)}"

    def reported(self, event: ResultSynthesized) -> None:
        text = f"{word(event.name)} {word(event.call_id)}"
        call = self._by_id.get(event.call_id) or self.asked(event.call_id, text)
        call.report = quote(event.error)
        call.found(self.turn)

    def sent(self, event: RequestSent) -> None:
        for message in event.added:
            call = self._by_id.get(message.tool_call_id or "")
            if message.role == "tool" and call is not None and call.sent is None:
                call.sent = message_text(message)
                if call.fate not in _BY_TOOL:
                    call.found(self.turn)


def synthesis(trace: Trace) -> Iterator[str]:
    """The calls that were answered in the tool's place, each with who said what.

    A loop may report it. Of any agent the next request shows it: the result of a call whose tool
    never started, was cancelled or still runs is not the tool's.
    """
    calls = _Calls()
    for entry in trace:
        match entry.event:
            case TurnStarted(turn=turn):
                calls.turn = turn
            case ReplyEnded(message=message) if message is not None:
                for asked in message.calls:
                    text = call_text(asked.id, asked.name, asked.args, asked.raw)
                    calls.asked(asked.id, text)
            case ToolStarted(call_id=call_id):
                calls.fate(call_id, "still running")
            case ToolEffect(call_id=call_id):
                calls.fate(call_id, "still running after its effect")
            case ToolEnded(call_id=call_id, end=end):
                calls.fate(call_id, end)
            case LogRow(row=ToolResultRow() as row):
                calls.row(row)
            case ResultSynthesized() as event:
                calls.reported(event)
            case RequestSent() as event:
                calls.sent(event)
            case _:
                pass
    for call in calls.every:
        if call.heading:
            yield from call.lines()
