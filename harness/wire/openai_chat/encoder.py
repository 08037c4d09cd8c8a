"""A reply as chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.core.json_text import Json
from harness.core.messages import Usage
from harness.core.reply import ReplyDone, ReplyFailed, ReplyPart, TextDelta, ThinkingDelta
from harness.wire import sse
from harness.wire.codec import Answer, Asked, Cut, Failure, Noise
from harness.wire.openai_chat.replies import head, reason_of, strange, written_usage
from harness.wire.openai_chat.tools import call_chunks, custom_names
from harness.wire.openai_failures import written_error
from harness.wire.openai_words import input_of
from harness.wire.writing import Stencils, text_of

DONE = "[DONE]"
"""What ends a stream."""


class ChatEncoder:
    """Writes one reply as chunks: the role, deltas, calls, the reason, usage, `[DONE]`.

    In a reply that is nothing but calls, the first call's head stands in the delta with the role.
    Usage is told only to who asks for it.
    """

    def __init__(self, asked: Asked, answer: Answer, cut: Cut, noise: Noise) -> None:
        given = asked.options.get("stream_options")
        options: dict[str, Json] = given if isinstance(given, dict) else {}
        self._asked = asked
        self._answer = answer
        self._cut = cut
        self._noise = noise
        self._usage = bool(options.get("include_usage"))
        self._obfuscated = noise.obfuscation and options.get("include_obfuscation") is not False
        self._role: dict[str, Any] | None = {"role": "assistant", "content": "", "refusal": None}
        self._count = 0
        self._head = text_of(head(asked, answer, "chat.completion.chunk"))[:-1]
        self._stencils = Stencils()

    def part(self, part: ReplyPart) -> Iterator[bytes]:
        """The frames of one part."""
        match part:
            case TextDelta(text=text):
                yield from self._begin()
                yield self._said("content", text)
            case ThinkingDelta(text=text):
                yield from self._begin()
                yield self._said("reasoning_content", text)
            case ReplyDone():
                yield from self._rest()
            case ReplyFailed(message=message):
                yield from self.failure(Failure(500, message))
            case _:
                pass

    def end(self) -> Iterator[bytes]:
        """What was counted, and the mark of the end."""
        if self._usage:
            usage = written_usage(self._answer.usage or Usage())
            yield self._framed({"choices": [], "usage": usage})
        yield sse.frame(DONE)

    def failure(self, failure: Failure) -> Iterator[bytes]:
        """The frame that tells of a failure."""
        yield sse.frame(text_of({"error": written_error(failure)}))

    def _begin(self) -> Iterator[bytes]:
        role, self._role = self._role, None
        if role is not None:
            yield self._chunk(role)
            if self._noise.pings:
                yield sse.comment("keep-alive")

    def _rest(self) -> Iterator[bytes]:
        answer = self._answer
        if answer.refusal is not None:
            yield from self._begin()
            for piece in self._cut(answer.refusal):
                yield self._chunk({"refusal": piece})
        custom = custom_names(self._asked.options)
        for index, call in enumerate(answer.message.calls):
            pieces = self._cut(input_of(call, custom))
            for fragment in call_chunks(index, call, custom, pieces):
                delta: dict[str, Any] = {"tool_calls": [fragment]}
                if self._role is not None:
                    delta = {"role": "assistant", "content": None, **delta}
                    self._role = None
                yield self._chunk(delta)
        yield from self._begin()
        yield self._chunk({}, reason_of(self._asked, answer))

    def _said(self, key: str, text: str) -> bytes:
        if self._obfuscated:
            return self._chunk({key: text})
        return self._stencils.frame(key, lambda each: self._chunk({key: each}), text)

    def _chunk(self, delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._usage else {}
        return self._framed({"choices": [choice], **usage})

    def _framed(self, rest: dict[str, Any]) -> bytes:
        self._count += 1
        rest |= strange(self._noise)
        if self._obfuscated:
            rest["obfuscation"] = "x" * (1 + self._count * 7 % 16)
        return sse.frame(f"{self._head}, {text_of(rest)[1:]}")
