"""A reply as frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.core.messages import Block, Image, Text, Thinking, ToolCall, Usage
from harness.core.reply import ReplyDone, ReplyPart, TextDelta, ThinkingDelta
from harness.wire import sse
from harness.wire.blockwise import Blockwise
from harness.wire.codec import Answer, Asked, Cut, Failure, Noise
from harness.wire.gemini.failures import written_failure
from harness.wire.gemini.parts import Placed, written_part
from harness.wire.gemini.replies import chunk, closed, content_of, spoken
from harness.wire.gemini_words import signs_calls
from harness.wire.writing import Stencils, text_of


class GeminiEncoder(Blockwise[Block]):
    """Writes one reply as frames, each a reply for itself; dossier section 5.1.

    Calls that follow each other are parts of one frame. The reason stands in the last frame, and
    the stream just ends behind it. What was counted grows from frame to frame.
    """

    def __init__(self, asked: Asked, answer: Answer, cut: Cut, noise: Noise) -> None:
        parts = spoken(asked, answer)
        super().__init__([part.block for part in parts], cut)
        self._signatures = [part.signature for part in parts]
        self._ids = signs_calls(asked.request.model)
        self._asked = asked
        self._answer = answer
        self._noise = noise
        self._usage = answer.usage or Usage()
        self._most = max(self._usage.completion_tokens - self._usage.reasoning_tokens, 0)
        """How far what was counted grows."""
        self._count = 0
        self._stencils = Stencils()
        self._waiting: list[dict[str, Any]] = []
        self._over = False

    def part(self, part: ReplyPart) -> Iterator[bytes]:
        """The frames of one part; none after the reply is over."""
        if self._over:
            return
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
        """Nothing comes after the reason."""
        yield from ()

    def failure(self, failure: Failure) -> Iterator[bytes]:
        """The frame that tells of a failure; nothing comes after it."""
        self._over = True
        yield _framed(written_failure(failure))

    def _start(self, block: Block) -> Iterator[bytes]:
        if self._waiting and not isinstance(block, ToolCall):
            yield self._frame(self._called())

    def _piece(self, block: Block, piece: str) -> bytes:
        kind = Text if isinstance(block, Text) else Thinking

        def write(text: str) -> bytes:
            return self._frame([self._part(kind(text))])

        if self._count < self._most:
            return write(piece)
        return self._stencils.frame(kind, write, piece)

    def _stop(self, block: Block) -> Iterator[bytes]:
        signature = self._signatures[self._at]
        match block:
            case ToolCall():
                self._waiting.append(self._part(block, signature))
            case Image():
                yield self._frame([self._part(block)])
            case Thinking(text=text) if signature is not None:
                signed = self._part(Thinking(""), signature)
                yield self._frame([{"thought": True, **signed} if text else signed])
            case _:
                pass

    def _rest(self) -> Iterator[bytes]:
        yield from self._say_all()
        self._over = True
        yield self._chunk(closed(self._called(), self._answer), self._usage)

    def _called(self) -> list[dict[str, Any]]:
        parts, self._waiting = self._waiting, []
        return parts

    def _part(self, block: Block, signature: str | None = None) -> dict[str, Any]:
        return written_part(Placed(block, signature), ids=self._ids)

    def _frame(self, parts: list[dict[str, Any]]) -> bytes:
        self._count += 1
        usage = self._usage
        counted = Usage(usage.prompt_tokens, min(self._count, self._most), 0, usage.cache_read)
        return self._chunk(content_of(parts), counted)

    def _chunk(self, candidate: dict[str, Any], usage: Usage) -> bytes:
        return _framed(chunk(self._asked, self._answer, candidate, usage, self._noise))


def _framed(value: dict[str, Any]) -> bytes:
    return sse.frame(text_of(value), end="\r\n")
