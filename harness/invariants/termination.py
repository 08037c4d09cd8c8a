"""How turns end: once, and truly."""

from __future__ import annotations

from typing import ClassVar

from harness.core.events import (
    CancelDelivered,
    CancelRequested,
    FaultInjected,
    LogRow,
    LoopEvent,
    Mismatch,
    ReplyEnded,
    RequestSent,
    RunStopped,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)
from harness.core.outcome import (
    Cancelled,
    Completed,
    Error,
    Interrupted,
    Outcome,
    StepLimit,
    outcome_name,
)
from harness.core.rows import TurnEndRow, TurnStartRow
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold


class OneTerminal(Fold):
    """Each turn comes to exactly one terminal state, last in its log, and log, events and result
    agree on it.
    """

    id = "ONE-TERMINAL"
    reads: ClassVar[tuple[EventType, ...]] = (
        TurnStarted,
        TurnEnded,
        RunStopped,
        LogRow,
        LoopEvent,
    )
    needs: ClassVar[tuple[EventType, ...]] = (TurnStarted,)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.turn: int | None = None
        self.started = False
        self.row: TurnEndRow | None = None
        self.told = 0
        self.told_name: str | None = None

    def step(self, index: int, entry: Entry) -> None:
        """Judge the terminals of one turn against each other."""
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn = turn
                self.started, self.row, self.told, self.told_name = False, None, 0, None
            case RunStopped() as stopped if self.turn is not None:
                self.report(f"turn {self.turn} never ended: {stopped.why}", index, self.turn)
            case LogRow(row=row):
                self.log_row(index, row)
            case LoopEvent(name="turn_end", payload=payload):
                self.told += 1
                self.told_name = _name_in(payload)
                if self.told > 1:
                    self.report("the turn's end was told twice", index, self.turn)
            case TurnEnded(turn=turn, outcome=outcome):
                self.end(index, turn, outcome)
                self.turn = None

    def log_row(self, index: int, row: object) -> None:
        """Judge one row of the log."""
        if isinstance(row, TurnStartRow):
            self.started, self.row = True, None
        elif self.row is not None:
            kind = "a second turn_end" if isinstance(row, TurnEndRow) else "a row"
            self.report(f"{kind} was logged after the turn's end", index, self.turn)
        elif isinstance(row, TurnEndRow):
            self.row = row

    def end(self, index: int, turn: int, outcome: Outcome) -> None:
        """Judge what log and events say against what the turn gave back."""
        name = outcome_name(outcome)
        if self.started and self.row is None:
            self.report("the turn ended without a turn_end row", index, turn)
        if self.row is not None and outcome_name(self.row.outcome) != name:
            logged = outcome_name(self.row.outcome)
            self.report(f"the log says {logged}, the turn ended as {name}", index, turn)
        if self.told and self.told_name != name:
            self.report(
                f"the consumer was told {self.told_name}, the turn ended as {name}", index, turn
            )


def _name_in(payload: object) -> str | None:
    outcome = payload.get("outcome") if isinstance(payload, dict) else None
    if isinstance(outcome, dict):
        return "error"
    return outcome if isinstance(outcome, str) else None


class TerminalTruth(Fold):
    """A turn's outcome is what happened: broken or unfinished work is never completed, a turn fails
    only where something failed, and cancelled means that somebody cancelled.
    """

    id = "TERMINAL-TRUTH"
    reads: ClassVar[tuple[EventType, ...]] = (
        TurnStarted,
        TurnEnded,
        RequestSent,
        ReplyEnded,
        FaultInjected,
        Mismatch,
        ToolEnded,
        CancelRequested,
        CancelDelivered,
        LogRow,
    )
    needs: ClassVar[tuple[EventType, ...]] = (TurnEnded,)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.reset()

    def reset(self) -> None:
        """Forget the turn before."""
        self.requests = 0
        self.main: str | None = None
        self.reply: ReplyEnded | None = None
        self.reply_at = 0
        self.requested_at: int | None = None
        self.delivered = False
        self.written = False
        """Whether the log had the turn's end before it was cancelled."""
        self.ran: set[str] = set()
        """The ids of the calls whose tools have ended."""
        self.failed_at: int | None = None
        """Where the first thing failed that a turn may fail for."""

    def step(self, index: int, entry: Entry) -> None:
        """Remember the last reply, the first failure and the cancel; judge the outcome by them."""
        match entry.event:
            case TurnStarted():
                self.reset()
            case RequestSent(conversation="main"):
                self.requests += 1
                self.reply = None
                self.main = entry.event.reply
            case ReplyEnded() as reply:
                if reply.reply == self.main:
                    self.reply, self.reply_at = reply, index
                if reply.end != "complete" or self.cannot_run(reply):
                    self.failed(index)
            case FaultInjected() | Mismatch():
                self.failed(index)
            case ToolEnded(call_id=call_id, end=end):
                self.ran.add(call_id)
                if end != "returned":
                    self.failed(index)
            case LogRow(row=TurnEndRow()):
                self.written = self.requested_at is None
            case CancelRequested():
                self.requested_at = index
            case CancelDelivered():
                self.delivered = True
            case TurnEnded(turn=turn, outcome=outcome):
                untrue = self.untrue(outcome)
                if untrue:
                    self.report(untrue, index, turn)

    def failed(self, index: int) -> None:
        """Something failed."""
        if self.failed_at is None:
            self.failed_at = index

    def cannot_run(self, reply: ReplyEnded) -> bool:
        """Whether a reply asks for what no agent can run."""
        calls = reply.message.calls if reply.message else ()
        tools = self.facts.tools
        return any(
            call.raw is not None
            or not isinstance(call.args, dict)
            or (tools is not None and call.name not in tools)
            for call in calls
        )

    def untrue(self, outcome: Outcome) -> str | None:
        """What is wrong with the outcome, or None."""
        match outcome:
            case Completed():
                return self.untrue_completed()
            case Cancelled():
                if self.requested_at is None:
                    return "the turn ended as cancelled, though nobody cancelled it"
                return None
            case Error(kind=kind, message=message):
                return self.untrue_failure("error", f" ({kind}: {message})")
            case Interrupted():
                return self.untrue_failure("interrupted")
            case StepLimit():
                return self.untrue_limit()

    def untrue_completed(self) -> str | None:
        """A completed turn has a whole last reply that asks for nothing."""
        if not self.requests:
            return None
        if self.reply is None:
            return "the turn ended as completed, though its last reply was still coming"
        if self.reply.end != "complete" or self.reply.message is None:
            why = f" ({self.reply.error})" if self.reply.error else ""
            return f"the turn ended as completed, though its last reply was {self.reply.end}{why}"
        # An agent may end with a tool: then what that was asked for is done.
        undone = [call.id for call in self.reply.message.calls if call.id not in self.ran]
        if undone:
            return (
                f"the turn ended as completed, though its last reply asks for {', '.join(undone)}"
            )
        if self.requested_at is not None and self.reply_at > self.requested_at:
            return "the turn ended as completed, though it was cancelled before the reply was whole"
        return None

    def untrue_failure(self, name: str, why: str = "") -> str | None:
        """A failed turn has something that failed, and before it was cancelled if it was."""
        late = self.requested_at is not None and (
            self.failed_at is None or self.failed_at > self.requested_at
        )
        if self.delivered and late:
            return f"the turn was cancelled but ended as {name}"
        if self.failed_at is None and not self.out_of_steps():
            hint = "; if that is a limit of its own, say it: budget: {steps: …}"
            return f"the turn ended as {name}{why}, though nothing had failed" + (
                hint if name == "error" else ""
            )
        return None

    def untrue_limit(self) -> str | None:
        """A turn at its limit has used it up and is not done."""
        if self.delivered and not self.written:
            return "the turn was cancelled but ended as step_limit"
        if not self.requests and self.facts.budget.steps != 0:
            return "the turn ended as step_limit, though it sent no request"
        if self.reply and self.reply.end == "complete" and not _calls(self.reply):
            return "the turn ended as step_limit, though the model had finished"
        return None

    def out_of_steps(self) -> bool:
        """Whether the turn has used up what it may spend; some agents call that an error."""
        steps = self.facts.budget.steps
        return steps is not None and self.requests >= steps


def _calls(reply: ReplyEnded) -> bool:
    return reply.message is not None and bool(reply.message.calls)
