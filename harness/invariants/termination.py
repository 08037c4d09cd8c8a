"""How turns end: once, and truly."""

from __future__ import annotations

from typing import ClassVar

from harness.core.events import (
    AnyEvent,
    CancelDelivered,
    CancelRequested,
    FaultInjected,
    LogRow,
    LoopEvent,
    Mismatch,
    NetworkReached,
    ReplyEnded,
    RequestMissed,
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
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import EventType, Here, on
from harness.invariants.step_reader import Offers


class OneTerminal(Fold):
    """Each turn comes to exactly one terminal state, last in its log, and log, events and result
    agree on it.
    """

    id = "ONE-TERMINAL"
    needs: ClassVar[tuple[EventType, ...]] = (TurnStarted,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.turn: int | None = None
        self.started = False
        self.row: TurnEndRow | None = None
        self.told = 0
        self.told_name: str | None = None
        self.refused: set[str] = set()
        """Attempts to reach the network, which are NO-NET's to tell."""

    @on(NetworkReached)
    def reached(self, event: NetworkReached) -> None:
        """The run will stop."""
        self.refused.add(event.message)

    @on(TurnStarted)
    def begin(self, event: TurnStarted) -> None:
        """Nothing is known of the turn's end."""
        self.turn = event.turn
        self.started, self.row, self.told, self.told_name = False, None, 0, None

    @on(RunStopped)
    def stopped(self, event: RunStopped) -> None:
        """The run could not go on."""
        if self.turn is not None and event.detail not in self.refused:
            self.tell(f"turn {self.turn} never ended: {event.why}")

    @on(LogRow)
    def logged(self, event: LogRow) -> None:
        """Judge one row of the log."""
        kind = type(event.row)
        if kind is TurnStartRow:
            self.started, self.row = True, None
        elif self.row is not None:
            what = "a second turn_end" if kind is TurnEndRow else "a row"
            self.tell(f"{what} was logged after the turn's end")
        elif type(event.row) is TurnEndRow:
            self.row = event.row

    @on(LoopEvent)
    def told_of(self, event: LoopEvent) -> None:
        """Count how often the consumer is told of the end."""
        if event.name == "turn_end":
            self.told += 1
            self.told_name = _name_in(event.payload)
            if self.told > 1:
                self.tell("the turn's end was told twice")

    @on(TurnEnded)
    def end(self, event: TurnEnded) -> None:
        """Judge what log and events say against what the turn gave back."""
        name = outcome_name(event.outcome)
        if self.started and self.row is None:
            self.tell("the turn ended without a turn_end row")
        if self.row is not None and outcome_name(self.row.outcome) != name:
            logged = outcome_name(self.row.outcome)
            self.tell(f"the log says {logged}, the turn ended as {name}")
        if self.told and self.told_name != name:
            self.tell(f"the consumer was told {self.told_name}, the turn ended as {name}")
        self.turn = None

    def tell(self, message: str) -> None:
        """Report what the entry that is being read shows."""
        self.report(message, self.here.index, self.turn)


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
    needs: ClassVar[tuple[EventType, ...]] = (TurnEnded,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.offers = Offers()
        self.offered: dict[str, frozenset[str]] = {}
        """What the request of each reply offered."""
        self.reset()

    def reset(self) -> None:
        """Forget the turn before."""
        self.requests = 0
        self.main: str | None = None
        self.reply: ReplyEnded | None = None
        self.reply_at = 0
        self.requested_at: int | None = None
        self.told_at: int | None = None
        """Since when the agent knows of its cancel; a stop may be held up at a lock."""
        self.written = False
        """Whether the log had the turn's end before it was cancelled."""
        self.ran: set[str] = set()
        """The ids of the calls whose tools have ended."""
        self.failed_at: int | None = None
        """Where the first thing failed that a turn may fail for."""

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """Forget the turn before."""
        self.reset()

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Its reply will be the last."""
        self.offered[event.reply] = self.offers.take(event)
        if event.conversation == "main":
            self.requests += 1
            self.reply, self.main = None, event.reply

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Remember the last reply, and one that a turn may fail for."""
        if event.reply == self.main:
            self.reply, self.reply_at = event, self.here.index
        if event.end != "complete" or self.cannot_run(event):
            self.failed(event)

    @on(ToolEnded)
    def ended(self, event: ToolEnded) -> None:
        """Remember what has run."""
        self.ran.add(event.call_id)
        if event.end != "returned":
            self.failed(event)

    @on(LogRow)
    def logged(self, event: LogRow) -> None:
        """Remember when the log had the turn's end."""
        if type(event.row) is TurnEndRow:
            self.written = self.requested_at is None

    @on(CancelRequested)
    def cancel(self, _event: CancelRequested) -> None:
        """Remember a cancel."""
        self.requested_at = self.here.index

    @on(CancelDelivered)
    def told_to_stop(self, _event: CancelDelivered) -> None:
        """From here on the agent knows."""
        self.told_at = self.here.index

    @on(TurnEnded)
    def end(self, event: TurnEnded) -> None:
        """Judge the outcome."""
        untrue = self.untrue(event.outcome)
        if untrue:
            self.report(untrue, self.here.index, event.turn)

    @on(FaultInjected, Mismatch, RequestMissed)
    def failed(self, _event: AnyEvent) -> None:
        """Something failed."""
        if self.failed_at is None:
            self.failed_at = self.here.index

    def cannot_run(self, reply: ReplyEnded) -> bool:
        """Whether a reply asks for what no agent can run."""
        calls = reply.message.calls if reply.message else ()
        offered = self.offered.get(reply.reply, frozenset())
        return any(
            call.raw is not None
            or not isinstance(call.args, dict)
            or self.facts.unknown(call.name, offered)
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
        if self.told_at is not None and self.reply_at > self.told_at:
            return "the turn ended as completed, though it was cancelled before the reply was whole"
        return None

    def untrue_failure(self, name: str, why: str = "") -> str | None:
        """A failed turn has something that failed, and before it was cancelled if it was."""
        told = self.told_at
        if told is not None and (self.failed_at is None or self.failed_at > told):
            return f"the turn was cancelled but ended as {name}"
        if self.failed_at is None and not self.out_of_steps():
            hint = "; if that is a limit of its own, say it: budget: {steps: …}"
            return f"the turn ended as {name}{why}, though nothing had failed" + (
                hint if name == "error" else ""
            )
        return None

    def untrue_limit(self) -> str | None:
        """A turn at its limit has used it up and is not done."""
        if self.told_at is not None and not (self.written or self.was_over()):
            return "the turn was cancelled but ended as step_limit"
        if not self.requests and self.facts.budget.steps != 0:
            return "the turn ended as step_limit, though it sent no request"
        if self.reply and self.reply.end == "complete" and not _calls(self.reply):
            return "the turn ended as step_limit, though the model had finished"
        return None

    def was_over(self) -> bool:
        """Whether the turn may have come to its end before its agent knew of the cancel: what the
        last reply asks for was done, and nothing came after.
        """
        message = self.reply.message if self.reply else None
        done = message is not None and all(call.id in self.ran for call in message.calls)
        return done and self.told_at == self.here.index - 1

    def out_of_steps(self) -> bool:
        """Whether the turn has used up what it may spend; some agents call that an error."""
        steps = self.facts.budget.steps
        return steps is not None and self.requests >= steps


def _calls(reply: ReplyEnded) -> bool:
    return reply.message is not None and bool(reply.message.calls)
