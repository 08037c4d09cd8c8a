"""What comes before what."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from harness.core.events import LogRow, LoopEvent, RequestSent, ToolEnded, ToolStarted
from harness.core.rows import ToolCallRow, ToolResultRow
from harness.invariants.invariant import Facts
from harness.invariants.reader import Here, on
from harness.invariants.steps import Step, StepFold

Record = Literal["row", "event"]


class Order(StepFold):
    """A call is logged and told before its tool starts, its success only after the tool has ended,
    and the next request has calls and answers in the order of the calls, whatever ended first.

    A failure may be logged while the tool still runs: it was given up. Shared ids are SLOT's.
    """

    id = "ORDER"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.started: defaultdict[str, int] = defaultdict(int)
        self.ended: defaultdict[str, int] = defaultdict(int)
        self.called: defaultdict[tuple[Record, str], int] = defaultdict(int)
        self.succeeded: defaultdict[tuple[Record, str], int] = defaultdict(int)

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Count anew."""
        if event.conversation == "main":
            self.started.clear()
            self.ended.clear()
            self.called.clear()
            self.succeeded.clear()

    @on(ToolStarted)
    def tool_started(self, event: ToolStarted) -> None:
        """Count the starts of each call."""
        self.started[event.call_id] += 1

    @on(ToolEnded)
    def tool_ended(self, event: ToolEnded) -> None:
        """Count the ends of each call."""
        self.ended[event.call_id] += 1

    @on(LogRow)
    def logged(self, event: LogRow) -> None:
        """The loop logged a call or a result."""
        row = event.row
        if type(row) is ToolCallRow:
            self.call("row", row.id, row.name)
        elif type(row) is ToolResultRow and row.error is None:
            self.success("row", row.id)

    @on(LoopEvent)
    def told(self, event: LoopEvent) -> None:
        """The loop told its consumer of a call or of a result."""
        if event.name not in ("tool", "tool_result"):
            return
        payload = event.payload
        call_id = payload.get("id") if isinstance(payload, dict) else None
        if not isinstance(call_id, str):
            return
        if event.name == "tool":
            self.call("event", call_id, str(payload.get("name")))
        elif payload.get("ok") is True:
            self.success("event", call_id)

    def call(self, record: Record, call_id: str, name: str) -> None:
        """A call was logged or told."""
        self.judged = True
        if self.started[call_id] > self.called[record, call_id]:
            late = f"the {record} of the call {call_id} came after {name} had started"
            self.report_here(late)
        self.called[record, call_id] += 1

    def success(self, record: Record, call_id: str) -> None:
        """A result without an error was logged or told."""
        self.judged = True
        self.succeeded[record, call_id] += 1
        ended = self.ended[call_id]
        if self.started[call_id] > ended and self.succeeded[record, call_id] > ended:
            early = f"the {record} of the result of {call_id} came before its tool had ended"
            self.report_here(early)

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
