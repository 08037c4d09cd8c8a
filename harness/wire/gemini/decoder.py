"""A reply put together from its frames, or from the whole."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.json_plain import loads
from harness.core.json_text import Json
from harness.core.messages import Message, Usage
from harness.core.reply import ReplyPart, UsageReport
from harness.wire import sse
from harness.wire.codec import Answer, Garbled, ProviderError, Truncated
from harness.wire.gemini.failures import garbled, told_failure
from harness.wire.gemini.parts import Assembly, member
from harness.wire.gemini.replies import stopped_by, usage_of
from harness.wire.reading import Field, events_in


class Reading:
    """A reply as it comes together from one object or several.

    It is over with a reason, or with a prompt that was blocked.
    """

    def __init__(self) -> None:
        self.over = False
        self._parts = Assembly()
        self._id = self._model = self._reason = ""
        self._refusal: str | None = None
        self._usage: Usage | None = None

    def take(self, told: Field) -> Iterator[ReplyPart]:
        """Take an object: what it says more."""
        if (given := member(told, "responseId")).value is not None:
            self._id = given.text()
        if (given := member(told, "modelVersion")).value is not None:
            self._model = given.text()
        if (given := member(told, "usageMetadata")).value is not None:
            self._usage = usage_of(given)
        for candidate in told["candidates"].items() if told.has("candidates") else ():
            if not candidate["index"].integer():  # else it is another answer to the same request
                yield from self._candidate(candidate)
        blocked = member(told, "promptFeedback")
        if blocked.value is not None and member(blocked, "blockReason").value is not None:
            message = member(blocked, "blockReasonMessage")
            self._end("PROHIBITED_CONTENT", message)
        if self.over and self._usage is not None:
            yield UsageReport(self._usage)

    def whole(self) -> Answer:
        """The reply; a call without an id is named after the reply and its place."""
        before = self._id or "call"
        message = Message("assistant", self._parts.whole(lambda n: f"{before}_{n}"))
        stopped = stopped_by(self._reason, message)
        return Answer(message, self._usage, stopped, self._refusal, self._id, self._model)

    def _candidate(self, candidate: Field) -> Iterator[ReplyPart]:
        content = candidate["content"]
        for part in content["parts"].items() if content.value and content.has("parts") else ():
            yield from self._parts.part(part)
        if (reason := member(candidate, "finishReason")).value is not None:
            self._end(reason.text(), member(candidate, "finishMessage"))

    def _end(self, reason: str, message: Field) -> None:
        self.over = True
        self._reason = reason
        if reason == "PROHIBITED_CONTENT" and message.value is not None:
            self._refusal = message.text()


class GeminiDecoder:
    """Reads a reply from its frames. What no client knows is passed over, and so is whatever comes
    after the frame with the reason.
    """

    def __init__(self) -> None:
        self._reader = sse.Reader()
        self._reading = Reading()

    def feed(self, data: bytes) -> list[ReplyPart]:
        """The parts of the reply that end in these bytes."""
        parts: list[ReplyPart] = []
        for event in events_in(self._reader, data):
            if self._reading.over:
                break
            parts += self._reading.take(_told(event.data))
        return parts

    def end(self) -> Answer:
        """The whole reply."""
        if not self._reading.over:
            raise Truncated("the stream ended before the reply did: no finishReason came")
        return self._reading.whole()


def _told(data: str) -> Field:
    try:
        told: Json = loads(data)
    except ValueError:
        raise Garbled(f"a frame is no JSON: {data[:80]!r}") from None
    if isinstance(told, dict) and "error" in told:
        raise ProviderError(told_failure(told, 200))
    return Field(told, "", garbled)
