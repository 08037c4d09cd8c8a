"""The record of one run: an append-only list of events with virtual time and task path."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from harness.core import json_text
from harness.core.events import (
    AnyEvent,
    RequestHead,
    RequestSent,
    RunStopped,
)
from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest, ToolCall, ToolSchema
from harness.core.neutral import neutral_events
from harness.core.tokens import message_tokens, text_tokens


class Entry(Struct, frozen=True):
    """An event, when it happened (virtual nanoseconds since the run began) and in which task."""

    at: int
    task: str
    event: AnyEvent


class Trace:
    """A finished run, frozen: its entries, their canonical text, its requests made whole."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries: tuple[Entry, ...] = tuple(entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self.lines() == other.lines()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __repr__(self) -> str:
        return f"<Trace of {len(self.entries)} entries, {self.digest[:12]}>"

    def lines(self) -> list[str]:
        """One canonical JSON line an entry: the run's identity, byte for byte."""
        return [json_text.dumps(msgspec.to_builtins(entry)) for entry in self.entries]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical lines, in hexadecimal."""
        return hashlib.sha256("\n".join(self.lines()).encode()).hexdigest()

    @property
    def fingerprint(self) -> str:
        """A digest that is quick to take, to compare runs of one version in one session."""
        return hashlib.sha256(_canonical(self.entries)).hexdigest()[:16]

    @property
    def stop(self) -> tuple[int, RunStopped] | None:
        """Why the run ended before its scenario did, and the index of the entry that says so."""
        for index in range(len(self.entries) - 1, -1, -1):
            event = self.entries[index].event
            if isinstance(event, RunStopped):
                return index, event
        return None

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> Trace:
        """Read what `lines` wrote; ValueError names the line that is not an entry."""
        entries = []
        for number, line in enumerate(lines, 1):
            try:
                entries.append(msgspec.convert(json_text.loads(line), Entry))
            except (ValueError, msgspec.ValidationError) as error:
                raise ValueError(f"line {number} is not a trace entry: {error}") from None
        return cls(entries)

    def requests(self) -> list[ModelRequest]:
        """Every request, rebuilt whole, in the order they were sent."""
        heads: dict[str, RequestHead] = {}
        messages: dict[str, tuple[Message, ...]] = {}
        result = []
        for entry in self.entries:
            event = entry.event
            if not isinstance(event, RequestSent):
                continue
            name = event.conversation
            if event.head is not None:
                heads[name] = event.head
            messages[name] = messages.get(name, ())[: event.kept] + event.added
            head = heads[name]
            result.append(
                ModelRequest(
                    head.model,
                    head.system,
                    messages[name],
                    head.tools,
                    head.max_tokens,
                    head.temperature,
                )
            )
        return result

    def neutral(self) -> list[Json]:
        """What is the same whatever the level and the protocol; see `harness.core.neutral`."""
        return neutral_events([entry.event for entry in self.entries], self.requests())


Watcher: TypeAlias = Callable[[Entry], None]


class Recorder:
    """Writes a trace while a run goes on.

    `now` gives virtual nanoseconds, `task` the path of the task that runs; `watch`, where set, is
    called with each entry at the instant it is recorded.
    """

    __slots__ = ("_conversations", "_now", "entries", "task", "watch")

    def __init__(self, now: Callable[[], int], task: Callable[[], str]) -> None:
        self.entries: list[Entry] = []
        self.watch: Watcher | None = None
        self._now = now
        self.task = task
        self._conversations: dict[str, _Conversation] = {}

    def record(self, event: AnyEvent) -> None:
        """Append `event`, stamped with the time and the task."""
        entry = Entry(self._now(), self.task(), event)
        self.entries.append(entry)
        if self.watch is not None:
            self.watch(entry)

    def record_request(self, conversation: str, reply: str, request: ModelRequest) -> None:
        """Append a request, storing only what is new since the conversation's previous one."""
        state = self._conversations.get(conversation)
        if state is None:
            state = self._conversations[conversation] = _Conversation()
        self.record(state.advance(conversation, reply, request))

    def trace(self) -> Trace:
        """What was recorded so far."""
        return Trace(self.entries)


class _Conversation:
    """The previous request of a conversation, and a chain of digests over its messages.

    It holds copies of what can change: an object that the agent has changed is not what was sent.
    """

    __slots__ = (
        "arguments",
        "chain",
        "copies",
        "head",
        "head_digest",
        "head_tokens",
        "messages",
        "sent",
        "sums",
    )

    def __init__(self) -> None:
        self.head: RequestHead | None = None
        self.head_digest = b""
        self.head_tokens = 0.0
        self.messages: tuple[Message, ...] = ()
        self.sent: tuple[Message, ...] = ()
        """The agent's own messages, of which `messages` are copies."""
        self.arguments: list[Json] = []
        self.copies: list[Json] = []
        """What an agent can change of a message: the arguments of its calls, in `sent` and in
        `messages`.
        """
        self.chain: list[bytes] = [b""]
        self.sums: list[float] = [0.0]
        """`sums[i]` is the rough size in tokens of `messages[:i]`."""

    def advance(self, conversation: str, reply: str, request: ModelRequest) -> RequestSent:
        head = RequestHead(
            request.model, request.system, request.tools, request.max_tokens, request.temperature
        )
        messages = tuple(request.messages)
        kept = self.kept(messages)
        added = tuple([_snapshot(message) for message in messages[kept:]])
        self.follow(messages, kept, added)
        del self.chain[kept + 1 :]
        del self.sums[kept + 1 :]
        for message in added:
            self.chain.append(hashlib.sha256(self.chain[-1] + _canonical(message)).digest())
            self.sums.append(self.sums[-1] + message_tokens(message))
        same_head = head == self.head
        if not same_head:
            self.head = head = replace(
                head, tools=tuple([_tool_snapshot(tool) for tool in head.tools])
            )
            self.head_digest = hashlib.sha256(_canonical(head)).digest()
            self.head_tokens = text_tokens(head.system)
        digest = hashlib.sha256(self.chain[-1] + self.head_digest).hexdigest()[:16]
        return RequestSent(
            conversation,
            reply,
            kept,
            added,
            digest,
            None if same_head else head,
            math.ceil(self.head_tokens + self.sums[-1]),
        )

    def kept(self, messages: tuple[Message, ...]) -> int:
        """How many leading messages are the same; quick where the agent only adds to its own."""
        sent = self.sent
        if messages[: len(sent)] == sent and self.arguments == self.copies:
            return len(sent)
        return common_prefix(self.messages, messages)

    def follow(self, messages: tuple[Message, ...], kept: int, added: tuple[Message, ...]) -> None:
        """Go on to `messages`, of which `added` are copies from `kept` on."""
        if kept < len(self.messages):
            self.messages = self.messages[:kept]
            self.arguments, self.copies = _arguments(messages[:kept]), _arguments(self.messages)
        self.arguments += _arguments(messages[kept:])
        self.copies += _arguments(added)
        self.sent = messages
        self.messages += added


def _arguments(messages: Sequence[Message]) -> list[Json]:
    return [
        call.args for message in messages if message.role == "assistant" for call in message.calls
    ]


def _snapshot(message: Message) -> Message:
    """The message as it is now: an agent may change the arguments of its calls later."""
    if message.role != "assistant" or not message.calls:
        return message
    content = [
        ToolCall(block.id, block.name, json_text.copy(block.args), block.raw)
        if type(block) is ToolCall
        else block
        for block in message.content
    ]
    return Message(message.role, tuple(content), message.tool_call_id, message.is_error)


def _tool_snapshot(tool: ToolSchema) -> ToolSchema:
    return replace(tool, parameters=json_text.copy(tool.parameters))


_encoder = msgspec.json.Encoder(order="sorted")


def _canonical(value: Message | RequestHead | tuple[Entry, ...]) -> bytes:
    """Bytes that are equal where the values are; the quick way cannot spell a lone surrogate."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return json_text.dumps(msgspec.to_builtins(value)).encode()


def common_prefix(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many leading messages are the same; quick where all of `before` still leads `now`."""
    shared = min(len(before), len(now))
    if before[:shared] == now[:shared]:
        return shared
    low, high = 0, shared
    while high - low > 1:
        middle = (low + high) // 2
        if before[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle
    return low
