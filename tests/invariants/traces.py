"""Hand-made traces for tests of single rules."""

from harness.core.events import (
    AnyEvent,
    CancelDelivered,
    CancelRequested,
    ReplyEnded,
    RequestHead,
    RequestSent,
    TurnEnded,
    TurnStarted,
)
from harness.core.messages import Message, ToolCall, assistant, user
from harness.core.outcome import Outcome
from harness.core.trace import Entry, Trace
from harness.core.verdict import Violation
from harness.invariants.invariant import Facts, Invariant
from harness.invariants.judge import judge

MS = 1_000_000
HEAD = RequestHead("m", "", ())
ASK = ToolCall("c1", "t", {})


def trace(*events: AnyEvent | tuple[int, AnyEvent]) -> Trace:
    """Events, one millisecond apart, or at the milliseconds given; all in task 1."""
    entries = []
    at = 0
    for item in events:
        if isinstance(item, tuple):
            at = item[0] * MS
        entries.append(Entry(at, "1", item[1] if isinstance(item, tuple) else item))
        at += MS
    return Trace(entries)


def found(
    invariant: Invariant, *events: AnyEvent | tuple[int, AnyEvent], facts: Facts | None = None
) -> list[Violation]:
    """What one invariant finds in a hand-made trace."""
    return list(judge(trace(*events), [invariant], facts).violations)


def judged(
    invariant: Invariant, *events: AnyEvent | tuple[int, AnyEvent], facts: Facts | None = None
) -> bool:
    """Whether one invariant has anything to judge in a hand-made trace."""
    return judge(trace(*events), [invariant], facts).not_judged == ()


def started(turn: int = 1, text: str | None = "Go.") -> TurnStarted:
    return TurnStarted(turn, text)


def sent(
    *added: Message, reply: str = "1.1", kept: int = 0, conversation: str = "main"
) -> RequestSent:
    return RequestSent(conversation, reply, kept, added or (user("Go."),), "d", HEAD)


def replied(end: str = "complete", *calls: ToolCall, reply: str = "1.1") -> ReplyEnded:
    message = assistant("" if calls else "Gone.", *calls) if end == "complete" else None
    return ReplyEnded(reply, end, message)


def cancelled(turn: int = 1) -> tuple[CancelRequested, CancelDelivered]:
    return CancelRequested(turn, "agent", "at 1ms"), CancelDelivered(turn, "agent")


def ended(outcome: Outcome, turn: int = 1) -> TurnEnded:
    return TurnEnded(turn, outcome)
