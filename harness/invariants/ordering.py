"""What comes before what."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Literal

from harness.core.events import LogRow, LoopEvent, RequestSent, ToolEnded, ToolStarted
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
        self.started: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.called: Counter[tuple[Record, str]] = Counter()
        self.succeeded: Counter[tuple[Record, str]] = Counter()

    def step(self, index: int, entry: Entry) -> None:
        """Hold what the loop logs and tells against what its tools do, from request to request."""
        match entry.event:
            case RequestSent(conversation="main"):
                for counts in (self.started, self.ended, self.called, self.succeeded):
                    counts.clear()
            case ToolStarted(call_id=call_id):
                self.started[call_id] += 1
            case ToolEnded(call_id=call_id):
                self.ended[call_id] += 1
            case LogRow(row=ToolCallRow(id=call_id, name=name)):
                self.call(index, "row", call_id, name)
            case LogRow(row=ToolResultRow(id=call_id, error=None)):
                self.success(index, "row", call_id)
            case LoopEvent(name="tool", payload={"id": str(call_id), "name": str(name)}):
                self.call(index, "event", call_id, name)
            case LoopEvent(name="tool_result", payload={"id": str(call_id), "ok": True}):
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
            if places != sorted(places):
                self.report(
                    f"the request after reply {step.reply} has its {what} in another order",
                    step.answered_at,
                    step.turn,
                )
