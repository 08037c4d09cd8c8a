"""What comes before what."""

from __future__ import annotations

from collections import defaultdict
from typing import ClassVar, Literal

from harness.core.events import LogRow, LoopEvent, RequestSent, ToolEnded, ToolStarted
from harness.core.json_text import Json
from harness.core.rows import ToolCallRow, ToolResultRow
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts
from harness.invariants.steps import Step, StepFold

Record = Literal["row", "event"]


class Order(StepFold):
    """A call is logged and told before its tool starts, its success only after the tool has ended,
    and the next request has calls and answers in the order of the calls, whatever ended first.

    A failure may be logged while the tool still runs: it was given up. Shared ids are SLOT's.
    """

    id = "ORDER"
    reads: ClassVar[tuple[EventType, ...]] = (
        RequestSent,
        ToolStarted,
        ToolEnded,
        LogRow,
        LoopEvent,
    )

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.started: defaultdict[str, int] = defaultdict(int)
        self.ended: defaultdict[str, int] = defaultdict(int)
        self.called: defaultdict[tuple[Record, str], int] = defaultdict(int)
        self.succeeded: defaultdict[tuple[Record, str], int] = defaultdict(int)

    def step(self, index: int, entry: Entry) -> None:
        """Hold what the loop logs and tells against what its tools do, from request to request."""
        event = entry.event
        if type(event) is LogRow:
            row = event.row
            if type(row) is ToolCallRow:
                self.call(index, "row", row.id, row.name)
            elif type(row) is ToolResultRow and row.error is None:
                self.success(index, "row", row.id)
        elif type(event) is LoopEvent:
            if event.name in ("tool", "tool_result"):
                self.told(index, event.name, event.payload)
        elif type(event) is ToolStarted:
            self.started[event.call_id] += 1
        elif type(event) is ToolEnded:
            self.ended[event.call_id] += 1
        elif type(event) is RequestSent and event.conversation == "main":
            self.started.clear()
            self.ended.clear()
            self.called.clear()
            self.succeeded.clear()

    def told(self, index: int, name: str, payload: Json) -> None:
        """The loop told its consumer of a call or of a result."""
        call_id = payload.get("id") if isinstance(payload, dict) else None
        if not isinstance(call_id, str):
            return
        if name == "tool":
            self.call(index, "event", call_id, str(payload.get("name")))
        elif payload.get("ok") is True:
            self.success(index, "event", call_id)

    def call(self, index: int, record: Record, call_id: str, name: str) -> None:
        """A call was logged or told."""
        self.judged = True
        if self.started[call_id] > self.called[record, call_id]:
            self.report(f"the {record} of the call {call_id} came after {name} had started", index)
        self.called[record, call_id] += 1

    def success(self, index: int, record: Record, call_id: str) -> None:
        """A result without an error was logged or told."""
        self.judged = True
        self.succeeded[record, call_id] += 1
        ended = self.ended[call_id]
        if self.started[call_id] > ended and self.succeeded[record, call_id] > ended:
            self.report(
                f"the {record} of the result of {call_id} came before its tool had ended", index
            )

    def take(self, step: Step) -> None:
        """Judge the order in which the next request has the calls and their answers."""
        slots = [slot for slot in step.slots if not slot.shared]
        told = [slot.told for slot in slots if slot.told is not None]
        shown = [slot.shown for slot in slots if slot.shown is not None]
        self.judged = self.judged or bool(told)
        for what, places in (("calls", shown), ("answers", told)):
            if len(places) > 1 and places != sorted(places):
                self.report(
                    f"the request after reply {step.reply} has its {what} in another order",
                    step.answered_at,
                    step.turn,
                )
