"""What happened in a run: the closed union of trace events.

*Outside* events come from the env, the fakes and the runner, and exist for every agent. *Inside*
events exist where a loop reports them. Each class names in `subject` the one word that a scenario
may use to pick it (``cancel: {after: tool_started weather}``), or None.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, get_args

from msgspec import Struct

from harness.core.json_text import Json
from harness.core.messages import Message, ToolSchema, Usage
from harness.core.outcome import Outcome
from harness.core.rows import Row


class Event(Struct, frozen=True):
    """The base of all events; an event's kind is its tag in snake case."""

    subject_field: ClassVar[str | None] = None

    @property
    def subject(self) -> str | None:
        """The word that tells this event from others of its kind."""
        return getattr(self, self.subject_field) if self.subject_field else None


class RequestHead(Struct, frozen=True):
    """What stands beside the messages of a request."""

    model: str
    system: str
    tools: tuple[ToolSchema, ...]
    max_tokens: int | None = None
    temperature: float | None = None


# --- outside: the runner


class TurnStarted(Event, frozen=True, tag="turn_started"):
    """The runner handed a turn to the agent; `text` is None for a resume. Turns count from 1."""

    turn: int
    text: str | None
    default: bool = False
    """True for the turn that the runner adds after a cancelled or failed last one."""


class TurnEnded(Event, frozen=True, tag="turn_ended"):
    """The agent's turn came to its terminal state."""

    turn: int
    outcome: Outcome


class CancelRequested(Event, frozen=True, tag="cancel_requested"):
    """A cancel was asked for, by the agent's own means or through the turn's task."""

    turn: int
    by: Literal["agent", "task"]
    trigger: str


class CancelDelivered(Event, frozen=True, tag="cancel_delivered"):
    """The agent was told: its `cancel()` returned or is waiting, or CancelledError is about to be
    raised. `scheduled` are the paths of tasks that were there by then, but had not begun, and of
    threads.
    """

    turn: int
    by: Literal["agent", "task"]
    scheduled: tuple[str, ...] = ()


class TaskLeaked(Event, frozen=True, tag="task_leaked"):
    """A task was still alive when its turn had ended and all that was ready had run.

    `owner` is `tool` where a fake tool that ignores its cancel keeps the task alive. `started` is
    the line that started it, where it is a thread; a pool of threads has no `where`.
    """

    subject_field = "path"

    turn: int
    path: str
    where: str
    owner: Literal["agent", "tool"]
    started: str | None = None


class GeneratorAbandoned(Event, frozen=True, tag="generator_abandoned"):
    """An async generator, or a stream that had reported its failure, was left unclosed."""

    subject_field = "name"

    name: str


class NetworkReached(Event, frozen=True, tag="network_reached"):
    """The agent reached for the network, and was refused; `message` says by which line of its."""

    message: str


class RequestMissed(Event, frozen=True, tag="request_missed"):
    """A run on a cassette asked for what was not recorded; `message` says for what, and how that
    differs from what was.
    """

    message: str


class InteractionUnused(Event, frozen=True, tag="interaction_unused"):
    """A run on a cassette was over, and this of it had never been asked for; `number` counts from
    1, and `message` names the request and its place in the file.
    """

    number: int
    message: str


class ErrorUnseen(Event, frozen=True, tag="error_unseen"):
    """An exception that nobody caught, awaited or retrieved; asyncio would only have logged it."""

    turn: int
    message: str


class RunStopped(Event, frozen=True, tag="run_stopped"):
    """The run ended before its scenario did: a limit was reached or nothing could go on."""

    subject_field = "reason"

    reason: Literal[
        "deadlock",
        "exit",
        "step_limit",
        "instant_limit",
        "time_limit",
        "cancel_deadline",
        "out_of_simulation",
        "stuck",
    ]
    detail: str
    waits: tuple[str, ...] = ()
    """One line a task that was waiting: its path and where."""

    @property
    def why(self) -> str:
        """The reason, with the first of those that were waiting."""
        shown = "; ".join(self.waits[:3])
        more = f"; and {len(self.waits) - 3} more" if len(self.waits) > 3 else ""
        return f"{self.reason}, {self.detail}" + (f": {shown}{more}" if shown else "")


class Mismatch(Event, frozen=True, tag="mismatch"):
    """The agent asked for what the scenario does not have; `error` names the kind."""

    subject_field = "error"

    error: str
    message: str


# --- outside: the model


class RequestSent(Event, frozen=True, tag="request_sent"):
    """A request reached the model.

    Only what is new is stored: `kept` leading messages are those of the conversation's previous
    request, `added` follow them, `head` is None where it is the previous request's. `digest`
    covers the whole request. `Trace.requests` rebuilds it.
    """

    subject_field = "reply"

    conversation: str
    reply: str
    """The place in the script that answers: ``<turn>.<step>``, or an `also` entry's name."""
    kept: int
    added: tuple[Message, ...]
    digest: str
    head: RequestHead | None = None
    tokens: int = 0
    """Roughly what a provider counts for the system prompt and the messages (core/tokens.py)."""


class Received(Event, frozen=True, tag="received", omit_defaults=True):
    """The request for a reply came over HTTP, in a provider's protocol.

    Where it breaks a rule of the provider's own, `rule` is that rule's id and `message` what the
    provider answers.
    """

    subject_field = "protocol"

    reply: str
    protocol: str
    streamed: bool = False
    rule: str | None = None
    message: str = ""


class Delta(Event, frozen=True, tag="delta"):
    """The model gave a piece of a reply."""

    subject_field = "kind"

    reply: str
    kind: Literal["text", "thinking"]
    text: str


class ReplyEnded(Event, frozen=True, tag="reply_ended"):
    """The model's side of one reply is over.

    `end` is how: complete, failed (an error was reported), torn (no end signal, or the model was
    cut off, and `error` says by what), closed (the agent stopped reading), abandoned (it did, and
    left the stream open) or refused (the request was not valid). `message` is what the model meant
    to say, where it got to say it whole, or was cut off behind calls that HTTP shows; `usage` the
    sum of what it reported.
    """

    subject_field = "end"

    reply: str
    end: Literal["complete", "failed", "torn", "closed", "abandoned", "refused"]
    message: Message | None = None
    usage: Usage | None = None
    error: str | None = None


class FaultInjected(Event, frozen=True, tag="fault_injected", omit_defaults=True):
    """The scenario made something fail.

    Of a failed request, `status` is that of HTTP, and the rest what the client was told about
    asking again: after how many nanoseconds, and whether it should; None where nothing was said.
    """

    subject_field = "fault"

    fault: str
    place: str
    status: int | None = None
    retry_after: int | None = None
    should_retry: bool | None = None


# --- outside: the tools


class ToolStarted(Event, frozen=True, tag="tool_started"):
    """A fake tool's body began; `inferred` where the agent gave no call id."""

    subject_field = "name"

    call_id: str
    name: str
    args: Json
    inferred: bool = False


class ToolEffect(Event, frozen=True, tag="tool_effect"):
    """A fake tool did what it is for; from here on it cannot be undone. `told` says that it had
    been told to stop, and did not.
    """

    subject_field = "name"

    call_id: str
    name: str
    told: bool = False


class ToolEnded(Event, frozen=True, tag="tool_ended"):
    """A fake tool's body is over."""

    subject_field = "name"

    call_id: str
    name: str
    end: Literal["returned", "error", "raised", "cancelled"]
    value: Json = None
    error: str | None = None


# --- inside: what a loop reports


class LogRow(Event, frozen=True, tag="log_row"):
    """The loop wrote a row to its session log."""

    row: Row

    @property
    def subject(self) -> str | None:
        """The kind of row."""
        return str(self.row.__struct_config__.tag)


class LoopEvent(Event, frozen=True, tag="loop_event"):
    """The loop told its consumer something."""

    subject_field = "name"

    name: str
    payload: Json


class StateEntered(Event, frozen=True, tag="state_entered"):
    """The loop entered a state."""

    subject_field = "state"

    state: str


class Trimmed(Event, frozen=True, tag="trimmed"):
    """The loop cut its history for the next request."""

    removed_messages: int
    removed_tokens: int
    kept_messages: int
    budget: int


class Compacted(Event, frozen=True, tag="compacted"):
    """The loop tried to replace its conversation by a summary; one that failed changed nothing.

    Its own estimates, in tokens, of the conversation that stood there and of what stands there now.
    """

    before: int
    after: int
    failed: str | None = None
    """Why nothing came of it."""


class Salvaged(Event, frozen=True, tag="salvaged"):
    """The loop left a round that was cut off, and all behind it, out of what it keeps."""

    kept_messages: int
    removed_messages: int
    call_ids: tuple[str, ...]
    """Of the round that was cut off, still unanswered."""


class Estimated(Event, frozen=True, tag="estimated"):
    """The loop's own estimate, in tokens, of the request that it is about to send: the system
    prompt and the messages.
    """

    tokens: int


class UsageCounted(Event, frozen=True, tag="usage_counted"):
    """What the loop has counted so far, over all of its turns."""

    total: Usage


class ResultSynthesized(Event, frozen=True, tag="result_synthesized"):
    """The loop answered a call in the tool's place."""

    subject_field = "name"

    call_id: str
    name: str
    error: str


OutsideEvent: TypeAlias = (
    TurnStarted
    | TurnEnded
    | CancelRequested
    | CancelDelivered
    | TaskLeaked
    | GeneratorAbandoned
    | NetworkReached
    | RequestMissed
    | InteractionUnused
    | ErrorUnseen
    | RunStopped
    | Mismatch
    | RequestSent
    | Received
    | Delta
    | ReplyEnded
    | FaultInjected
    | ToolStarted
    | ToolEffect
    | ToolEnded
)
InsideEvent: TypeAlias = (
    LogRow
    | LoopEvent
    | StateEntered
    | Estimated
    | Trimmed
    | Compacted
    | Salvaged
    | ResultSynthesized
    | UsageCounted
)
AnyEvent: TypeAlias = OutsideEvent | InsideEvent

OUTSIDE: tuple[type[OutsideEvent], ...] = get_args(OutsideEvent)
INSIDE: tuple[type[InsideEvent], ...] = get_args(InsideEvent)


def event_kind(event_type: type[Event]) -> str:
    """The name of a kind of event, as scenarios and traces spell it.

    >>> event_kind(ToolStarted)
    'tool_started'
    """
    return str(event_type.__struct_config__.tag)
