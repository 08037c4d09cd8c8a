"""A reply as events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.core.messages import Block, Text, Thinking, ToolCall, Usage
from harness.core.reply import ReplyDone, ReplyPart, TextDelta, ThinkingDelta
from harness.wire import sse
from harness.wire.anthropic.blocks import arguments_of
from harness.wire.anthropic.failures import written_failure
from harness.wire.anthropic.replies import (
    ending,
    first_usage,
    head,
    replied_block,
    spoken,
    strange,
    written_usage,
)
from harness.wire.blockwise import Blockwise
from harness.wire.codec import Answer, Cut, Failure, Noise
from harness.wire.writing import Stencils, text_of


class MessagesEncoder(Blockwise[Block]):
    """Writes one reply as events, in the order of dossier section 4.1.

    What is written is the message of the answer, block by block: a part says how far of its text
    or reasoning, and `ReplyDone` brings the rest. So blocks that stand between are written at the
    right place, and the signature right before its block stops.
    """

    def __init__(self, answer: Answer, cut: Cut, noise: Noise) -> None:
        super().__init__(spoken(answer.message), cut)
        self._answer = answer
        self._noise = noise
        self._begun = self._over = False
        self._count = 0
        self._stencils = Stencils()

    def part(self, part: ReplyPart) -> Iterator[bytes]:
        """The frames of one part; none after the reply is over."""
        if self._over:
            return
        yield from self._begin()
        match part:
            case TextDelta(text=text):
                yield from self._say(Text, len(text))
            case ThinkingDelta(text=text):
                yield from self._say(Thinking, len(text))
            case ReplyDone():
                yield from self._rest()
            case _:
                pass

    def end(self) -> Iterator[bytes]:
        """The event that ends every stream."""
        if not self._over:
            yield self._frame("message_stop", {})
            self._over = True

    def failure(self, failure: Failure) -> Iterator[bytes]:
        """The frame that tells of a failure; nothing comes after it."""
        self._over = True
        yield self._frame("error", written_failure(failure))

    def _begin(self) -> Iterator[bytes]:
        if self._begun:
            return
        self._begun = True
        usage = self._answer.usage or Usage()
        first = first_usage(usage, min(usage.completion_tokens, 1))
        first.pop("output_tokens_details", None)
        yield self._frame("message_start", {"message": head(self._answer) | {"usage": first}})
        if self._noise.unknown:
            yield self._frame("x_new", {})

    def _start(self, block: Block) -> Iterator[bytes]:
        start = replied_block(block)
        empty = {"text": "", "thinking": "", "signature": "", "input": {}}
        start.update({key: value for key, value in empty.items() if key in start})
        yield self._frame("content_block_start", {"index": self._at, "content_block": start})
        if self._noise.pings and self._at == 0:
            yield self._frame("ping", {})

    def _piece(self, block: Block, piece: str) -> bytes:
        key = "text" if isinstance(block, Text) else "thinking"

        def write(text: str) -> bytes:
            return self._delta({"type": f"{key}_delta", key: text})

        if self._noise.obfuscation:
            return write(piece)
        return self._stencils.frame(self._at, write, piece)

    def _stop(self, block: Block) -> Iterator[bytes]:
        if isinstance(block, ToolCall):
            for piece in ("", *self._cut(arguments_of(block))):
                yield self._delta({"type": "input_json_delta", "partial_json": piece})
        if isinstance(block, Thinking) and block.signature and "signature" in replied_block(block):
            yield self._delta({"type": "signature_delta", "signature": block.signature})
        yield self._frame("content_block_stop", {"index": self._at})

    def _rest(self) -> Iterator[bytes]:
        yield from self._say_all()
        usage = written_usage(self._answer.usage or Usage())
        yield self._frame("message_delta", {"delta": ending(self._answer), "usage": usage})

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return self._frame("content_block_delta", {"index": self._at, "delta": delta})

    def _frame(self, kind: str, rest: dict[str, Any]) -> bytes:
        self._count += 1
        text = text_of({"type": kind, **rest, **strange(self._noise)})
        if self._noise.obfuscation:
            text = text[:-1] + " " * (self._count * 7 % 16) + "}"
        return sse.frame(text, kind)
