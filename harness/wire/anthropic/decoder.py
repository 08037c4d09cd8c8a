"""A reply put together from its events."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from harness.core.json_plain import loads
from harness.core.json_text import Json, well_formed
from harness.core.messages import Block, Text, Thinking, Usage
from harness.core.reply import ReplyPart, TextDelta, ThinkingDelta, UsageReport
from harness.wire import sse
from harness.wire.anthropic.blocks import block_of
from harness.wire.anthropic.failures import garbled, told_failure
from harness.wire.anthropic.replies import answered, usage_of
from harness.wire.codec import Answer, Garbled, ProviderError, Truncated
from harness.wire.reading import Field, call_of, events_in


class MessagesDecoder:
    """Reads a reply from its events.

    What no client knows is passed over: other events, deltas and blocks. What a client could not
    put together is Garbled: no `message_start`, a block out of its order, a delta of none.
    """

    def __init__(self) -> None:
        self._reader = sse.Reader()
        self._head: Field | None = None
        self._ending = Field({}, "", garbled)
        self._usage: dict[str, Any] = {}
        self._blocks: list[_Block] = []
        self._over = False

    def feed(self, data: bytes) -> list[ReplyPart]:
        """The parts of the reply that end in these bytes."""
        parts: list[ReplyPart] = []
        for event in events_in(self._reader, data):
            if self._over:
                break
            if event.name == "ping":
                continue
            parts += self._event(_told(event))
        return parts

    def end(self) -> Answer:
        """The whole reply."""
        told = self._whole()
        if told is None or not self._over:
            raise Truncated("the stream ended before the reply did: no message_stop came", told)
        return told

    def _whole(self) -> Answer | None:
        """The reply, once it is told why the model stopped."""
        if self._head is None or not (self._over or self._ending.has("stop_reason")):
            return None
        blocks = [block.whole() for block in self._blocks]
        return answered(self._head, blocks, self._ending, self._counted())

    def _event(self, told: Field) -> Iterator[ReplyPart]:
        kind = told["type"].text()
        if kind == "message_start":
            self._head = told["message"]
            self._count(self._head)
            return
        if self._head is None:
            raise Garbled(f"{kind} came before message_start")
        match kind:
            case "content_block_start":
                block = _Block(told["content_block"])
                if told["index"].value != len(self._blocks):
                    expected = f"expected a block with index {len(self._blocks)}"
                    raise garbled(f"{expected}, but got {told['index'].value}", "index")
                self._blocks.append(block)
                yield from block.begin()
            case "content_block_delta":
                yield from self._block(told).delta(told["delta"])
            case "content_block_stop":
                self._block(told)
            case "message_delta":
                self._ending = told["delta"]
                self._count(told)
            case "message_stop":
                self._over = True
                yield UsageReport(self._counted())
            case _:
                pass

    def _block(self, told: Field) -> _Block:
        index = told["index"].integer()
        if index is None or not 0 <= index < len(self._blocks):
            raise garbled(f"no block with index {index} has started", "index")
        return self._blocks[index]

    def _count(self, field: Field) -> None:
        """Take counts: later ones stand in place of earlier ones."""
        if field.has("usage"):
            counts = field["usage"].object()
            self._usage |= {key: value for key, value in counts.items() if value is not None}

    def _counted(self) -> Usage:
        return usage_of(Field(self._usage, "usage", garbled))


def _told(event: sse.Event) -> Field:
    """What an event says; its name counts only where it is that of an error."""
    told: Json = event.data
    with contextlib.suppress(ValueError):
        told = loads(event.data)
    if event.name == "error" or (isinstance(told, dict) and told.get("type") == "error"):
        raise ProviderError(told_failure(told, 200))
    if told is event.data:
        raise Garbled(f"an event is no JSON: {event.data[:80]!r}")
    return Field(told, "", garbled)


class _Block:
    """A block as it comes together."""

    def __init__(self, start: Field) -> None:
        self._start = start
        self._kind = start["type"].text()
        self._pieces: list[str] = []
        self._arguments: list[str] = []
        self._signature: str | None = None

    def begin(self) -> Iterator[ReplyPart]:
        """What stands in the start already."""
        if self._kind in ("text", "thinking") and self._start.has(self._kind):
            yield from self._more(self._start[self._kind].text())

    def delta(self, delta: Field) -> Iterator[ReplyPart]:
        """Take a delta; one of another kind of block is passed over."""
        match delta["type"].text(), self._kind:
            case ("text_delta", "text") | ("thinking_delta", "thinking"):
                yield from self._more(delta[self._kind].text())
            case "signature_delta", "thinking":
                self._signature = delta["signature"].text()
            case "input_json_delta", "tool_use":
                self._arguments.append(delta["partial_json"].text())
            case _:
                pass

    def _more(self, text: str) -> Iterator[ReplyPart]:
        if text:
            self._pieces.append(text)
            yield TextDelta(text) if self._kind == "text" else ThinkingDelta(text)

    def whole(self) -> Block | None:
        """The block; None for a kind that nobody knows."""
        text = well_formed("".join(self._pieces))
        match self._kind:
            case "text":
                return Text(text)
            case "thinking":
                given = self._start["signature"].text() if self._start.has("signature") else None
                return Thinking(text, self._signature or given or None)
            case "tool_use" if arguments := "".join(self._arguments):
                start = self._start
                return call_of(start["id"].text(), start["name"].text(), arguments)
            case _:
                return block_of(self._start)
