"""A reply put together from its events."""

from __future__ import annotations

from harness.core.json_plain import loads
from harness.core.reply import ReplyPart, TextDelta, ThinkingDelta, UsageReport
from harness.wire import sse
from harness.wire.codec import Answer, Garbled, ProviderError, Truncated
from harness.wire.openai_failures import garbled
from harness.wire.openai_responses.failures import told_by
from harness.wire.openai_responses.items import BETWEEN
from harness.wire.openai_responses.replies import answered
from harness.wire.reading import Field, events_in

_ENDS = frozenset(["response.completed", "response.incomplete", "response.failed"])
_THOUGHTS = frozenset(["response.reasoning_summary_text.delta", "response.reasoning_text.delta"])
_SPOKEN = "response.output_text.delta"


class ResponsesDecoder:
    """Reads a reply from its events.

    The reply is what the response holds that is over; where that holds no output, the items that
    were done: one that began and was not is Garbled then. Events that no client knows are passed
    over.
    """

    def __init__(self) -> None:
        self._reader = sse.Reader()
        self._begun: set[int] = set()
        self._done: dict[int, Field] = {}
        self._answer: Answer | None = None

    def feed(self, data: bytes) -> list[ReplyPart]:
        """The parts of the reply that end in these bytes."""
        parts: list[ReplyPart] = []
        for event in events_in(self._reader, data):
            if self._answer is not None:
                break
            part = self._event(event)
            if part is not None:
                parts.append(part)
        return parts

    def end(self) -> Answer:
        """The whole reply."""
        if self._answer is None:
            raise Truncated("the stream ended before the reply did: no response.completed came")
        return self._answer

    def _event(self, event: sse.Event) -> ReplyPart | None:
        try:
            told = Field(loads(event.data), "", garbled)
        except ValueError:
            raise Garbled(f"an event is no JSON: {event.data[:80]!r}") from None
        kind = (told["type"].text() if told.has("type") else "") or event.name
        if kind == _SPOKEN:
            text = told["delta"].text()
            return TextDelta(text) if text else None
        if kind in _THOUGHTS:
            text = told["delta"].text()
            return ThinkingDelta(text) if text else None
        if kind in _ENDS:
            return self._over(told["response"])
        if kind == "error" or (not kind and told.has("error")):
            raise ProviderError(told_by(told.object()))
        return self._item(kind, told)

    def _item(self, kind: str, told: Field) -> ReplyPart | None:
        match kind:
            case "response.output_item.added":
                self._begun.add(told["output_index"].integer() or 0)
            case "response.output_item.done":
                self._done[told["output_index"].integer() or 0] = told["item"]
            case "response.reasoning_summary_part.added" if told["summary_index"].integer():
                return ThinkingDelta(BETWEEN)
            case _:
                pass
        return None

    def _over(self, response: Field) -> ReplyPart | None:
        answer = answered(response, self._done)
        missing = self._begun - set(self._done)
        if missing and not response["output"].value:
            raise garbled(f"item {min(missing)} has begun and was never done", "output")
        self._answer = answer
        usage = answer.usage
        return None if usage is None else UsageReport(usage)
