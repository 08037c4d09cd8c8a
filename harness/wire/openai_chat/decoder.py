"""A reply put together from its chunks, or from the whole."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.messages import Block, Message, Text, Thinking, Usage
from harness.core.reply import ReplyPart, TextDelta, ThinkingDelta, UsageReport
from harness.wire import sse
from harness.wire.codec import Answer, Garbled, ProviderError, Stopped, Truncated
from harness.wire.openai_chat.encoder import DONE
from harness.wire.openai_chat.failures import garbled, told_failure
from harness.wire.openai_chat.replies import usage_of
from harness.wire.reading import Field, call_of, json_of

_STOPPED: dict[str, Stopped] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "filtered",
}


class ChatDecoder:
    """Reads a reply from its chunks."""

    def __init__(self) -> None:
        self._reader = sse.Reader()
        self._answer = Assembly(Field({}, "", garbled))
        self._over = False

    def feed(self, data: bytes) -> list[ReplyPart]:
        """The parts of the reply that end in these bytes."""
        try:
            events = self._reader.feed(data)
        except UnicodeDecodeError as error:
            raise Garbled(f"the stream is no UTF-8: {error.reason}") from None
        parts: list[ReplyPart] = []
        for event in events:
            if self._over:
                break
            if event.data == DONE:
                self._over = True
                break
            try:
                chunk = Field(json_of(event.data.encode()), "", garbled)
            except ValueError:
                raise Garbled(f"a chunk is no JSON: {event.data[:80]!r}") from None
            parts += self._chunk(chunk)
        return parts

    def end(self) -> Answer:
        """The whole reply."""
        if not (self._over or self._answer.reason):
            raise Truncated("the stream ended before the reply did: no finish_reason came")
        return self._answer.whole()

    def _chunk(self, chunk: Field) -> Iterator[ReplyPart]:
        if chunk.has("error"):
            raise ProviderError(told_failure(chunk["error"].value, 200))
        answer = self._answer
        answer.named(chunk)
        if chunk.has("usage"):
            answer.usage = usage_of(chunk["usage"])
            yield UsageReport(answer.usage)
        for choice in chunk["choices"].items() if chunk.has("choices") else ():
            if choice.has("delta"):
                yield from self._delta(choice["delta"])
            if choice.has("finish_reason"):
                answer.finish(choice["finish_reason"].text())

    def _delta(self, delta: Field) -> Iterator[ReplyPart]:
        answer = self._answer
        if delta.has("reasoning_content") and (text := delta["reasoning_content"].text()):
            answer.thought.append(text)
            yield ThinkingDelta(text)
        if delta.has("content") and (text := delta["content"].text()):
            answer.said.append(text)
            yield TextDelta(text)
        if delta.has("refusal"):
            answer.refusal.append(delta["refusal"].text())
        if delta.has("tool_calls"):
            for call in delta["tool_calls"].items():
                answer.call(call)


class Assembly:
    """A reply as it comes together.

    A fragment of a call belongs to the call of its index; without one, to the newest call, unless
    it brings another id.
    """

    def __init__(self, head: Field) -> None:
        self.thought: list[str] = []
        self.said: list[str] = []
        self.refusal: list[str] = []
        self.usage: Usage | None = None
        self.reason: str | None = None
        self._calls: dict[int, _Call] = {}
        self._newest = -1
        self._id = self._model = ""
        self._created = 0
        self.named(head)

    def named(self, head: Field) -> None:
        """Take what the reply is called."""
        if head.has("id"):
            self._id = head["id"].text()
        if head.has("model"):
            self._model = head["model"].text()
        if head.has("created"):
            self._created = head["created"].integer() or 0

    def call(self, fragment: Field) -> None:
        """Take a call, or a piece of one."""
        given = fragment["id"].text() if fragment.has("id") else ""
        index = fragment["index"].integer()
        if index is None:
            newest = self._calls.get(self._newest)
            other = newest is None or bool(given and newest.id and given != newest.id)
            index = self._newest + other
        call = self._calls.setdefault(index, _Call())
        self._newest = index
        call.id = call.id or given
        function = fragment["function"] if fragment.has("function") else None
        if function is not None and function.has("name"):
            call.name = call.name or function["name"].text()
        if function is not None and function.has("arguments"):
            call.arguments.append(function["arguments"].text())

    def finish(self, reason: str | None) -> None:
        """Take why the model stopped."""
        self.reason = reason or self.reason

    def whole(self) -> Answer:
        """The reply; without an id, a call is named after its index."""
        content: list[Block] = []
        if self.thought:
            content.append(Thinking("".join(self.thought)))
        if said := "".join(self.said):
            content.append(Text(said))
        for index in sorted(self._calls):
            call = self._calls[index]
            content.append(call_of(call.id or f"call_{index}", call.name, "".join(call.arguments)))
        refusal = "".join(self.refusal) or None
        stopped = _STOPPED.get(self.reason or "stop", "end")
        if refusal is not None:
            stopped = "refused"
        elif self._calls and stopped == "end":
            stopped = "calls"
        message = Message("assistant", tuple(content))
        return Answer(message, self.usage, stopped, refusal, self._id, self._model, self._created)


class _Call:
    """A call as it comes together."""

    def __init__(self) -> None:
        self.id = self.name = ""
        self.arguments: list[str] = []
