"""A streamed reply, read."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.json_plain import loads
from harness.core.reply import ReplyPart, TextDelta, ThinkingDelta, UsageReport
from harness.wire import sse
from harness.wire.codec import Answer, Garbled, ProviderError, Truncated
from harness.wire.openai_chat.assembly import Assembly
from harness.wire.openai_chat.encoder import DONE
from harness.wire.openai_chat.history import thought_in
from harness.wire.openai_chat.replies import usage_of
from harness.wire.openai_failures import garbled, told_failure
from harness.wire.reading import Field, events_in


class ChatDecoder:
    """Reads a reply from its chunks: those of the first choice, up to ``[DONE]``.

    A stream is whole with ``[DONE]``, or with a reason to stop and, where it has promised usage,
    with that.
    """

    def __init__(self) -> None:
        self._reader = sse.Reader()
        self._answer = Assembly()
        self._promised = False
        self._over = False

    def feed(self, data: bytes) -> list[ReplyPart]:
        """The parts of the reply that end in these bytes."""
        if self._over:
            return []
        parts: list[ReplyPart] = []
        for event in events_in(self._reader, data):
            if event.data == DONE:
                self._over = True
                break
            try:
                chunk = Field(loads(event.data), "", garbled)
            except ValueError:
                raise Garbled(f"a chunk is no JSON: {event.data[:80]!r}") from None
            parts += self._chunk(chunk)
        return parts

    def end(self) -> Answer:
        """The whole reply."""
        if not self._over:
            if self._answer.reason is None:
                raise Truncated("the stream ended before the reply did: no finish_reason came")
            if self._promised and self._answer.usage is None:
                cut = "the stream ended before the reply did: no usage came"
                raise Truncated(cut, self._answer.whole())
        return self._answer.whole()

    def _chunk(self, chunk: Field) -> Iterator[ReplyPart]:
        if chunk.has("error"):
            raise ProviderError(told_failure(chunk["error"].value, 200))
        answer = self._answer
        answer.named(chunk)
        usage = chunk["usage"]
        if usage.value is not None:
            answer.usage = usage_of(usage)
            yield UsageReport(answer.usage)
        elif not usage.missing:
            self._promised = True
        for choice in chunk["choices"].items() if chunk.has("choices") else ():
            if choice["index"].integer():
                continue  # another answer to the same request
            if choice.has("delta"):
                yield from self._delta(choice["delta"])
            if choice.has("finish_reason"):
                answer.reason = choice["finish_reason"].text()

    def _delta(self, delta: Field) -> Iterator[ReplyPart]:
        answer = self._answer
        if text := thought_in(delta):
            answer.thought.append(text)
            yield ThinkingDelta(text)
        if delta.has("content") and (text := delta["content"].text()):
            answer.said.append(text)
            yield TextDelta(text)
        if delta.has("refusal"):
            answer.refusal.append(delta["refusal"].text())
        if delta.has("tool_calls"):
            for call in delta["tool_calls"].items():
                answer.call(call, call["index"].integer())
