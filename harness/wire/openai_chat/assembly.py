"""A reply put together from its pieces, or from the whole."""

from __future__ import annotations

from harness.core.json_text import well_formed
from harness.core.messages import Block, Message, Text, Thinking, ToolCall, Usage
from harness.wire.codec import Answer, Stopped
from harness.wire.reading import Field, call_of

_STOPPED: dict[str, Stopped] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "filtered",
}


class Assembly:
    """A reply as it comes together.

    A fragment of a call belongs to the newest call of its index; without an index, to the newest
    call of all. One that brings both a name and an id which is not that call's begins another.
    """

    def __init__(self) -> None:
        self.thought: list[str] = []
        self.said: list[str] = []
        self.refusal: list[str] = []
        self.usage: Usage | None = None
        self.reason: str | None = None
        self._calls: list[_Call] = []
        self._newest: dict[int | None, _Call] = {}
        self._id = self._model = ""
        self._created = 0

    def named(self, head: Field) -> None:
        """Take what the reply is called."""
        if head.has("id"):
            self._id = head["id"].text()
        if head.has("model"):
            self._model = head["model"].text()
        if head.has("created"):
            self._created = int(head["created"].number() or 0)

    def call(self, fragment: Field, index: int | None) -> None:
        """Take a call, or a piece of one."""
        custom = fragment.has("custom")
        given = fragment["custom" if custom else "function"]
        call_id = fragment["id"].text() if fragment.has("id") else None
        name = given["name"].text() if given.value is not None and given.has("name") else None
        call = self._newest.get(index)
        other = call is not None and name is not None and call_id not in (None, call.id)
        if call is None or other:
            call = _Call(max((each.index for each in self._calls), default=-1) + 1)
            if index is not None:
                call.index = index
            self._calls.append(call)
            self._newest[index] = call
        self._newest[None] = call
        call.id = call_id if call.id is None else call.id
        call.name = call.name or name or ""
        call.custom = call.custom or custom
        key = "input" if custom else "arguments"
        if given.value is not None and given.has(key):
            call.pieces.append(given[key].text())

    def whole(self) -> Answer:
        """The reply; a call without an id is named after its place."""
        content: list[Block] = []
        if thought := _joined(self.thought):
            content.append(Thinking(thought))
        if said := _joined(self.said):
            content.append(Text(said))
        calls = sorted(self._calls, key=lambda call: call.index)
        content += [call.whole(place) for place, call in enumerate(calls)]
        refusal = _joined(self.refusal) or None
        stopped = _STOPPED.get(self.reason or "stop", "end")
        if refusal is not None:
            stopped = "refused"
        elif calls and stopped == "end":
            stopped = "calls"
        message = Message("assistant", tuple(content))
        return Answer(message, self.usage, stopped, refusal, self._id, self._model, self._created)


class _Call:
    """A call as it comes together."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id: str | None = None
        self.name = ""
        self.custom = False
        self.pieces: list[str] = []

    def whole(self, place: int) -> ToolCall:
        call_id = f"call_{place}" if self.id is None else self.id
        text = _joined(self.pieces)
        if self.custom:
            return ToolCall(call_id, self.name, text)
        return call_of(call_id, self.name, text)


def _joined(pieces: list[str]) -> str:
    return well_formed("".join(pieces))
