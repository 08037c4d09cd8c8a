"""The loop's own conversation: its messages and calls, and how a provider sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core import json_plain
from harness.core.json_text import Json
from harness.core.messages import Thinking

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


class ToolCall(Struct):
    """The model's wish to run a tool: `arguments` is an object, or the text that the model wrote.

    `result`, `diff` and `elapsed` (nanoseconds) are filled in when the call is answered.
    """

    id: str
    name: str
    arguments: Json = None
    result: str | None = None
    diff: str | None = None
    elapsed: int | None = None


class Message(Struct, frozen=True):
    """One message. `content` is a text, a list of parts (texts and objects), or None.

    `reasoning` is what the model thought; a client puts it in front of the content too, and what
    the provider signed of it, which has to go back unchanged, into `signed`. `injected` marks what
    the loop itself said in the user's place.
    """

    role: Role
    content: str | list[Json] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    name: str | None = None
    injected: bool = False
    signed: tuple[Thinking, ...] = ()

    def text(self) -> str:
        """The text; of parts, their texts or else their thinking, joined without a separator."""
        if isinstance(self.content, list):
            return "".join(_part_texts(self.content))
        return self.content or ""

    def without_reasoning(self) -> str:
        """The text without what the model thought, wherever that stands."""
        text = self.text()
        if not self.reasoning:
            return text
        cut = _cut_prefix(text, self.reasoning)
        return text.replace(self.reasoning, "").strip() if cut is None else cut


def user(text: str, *, injected: bool = False) -> Message:
    """A user's message."""
    return Message("user", text, injected=injected)


def wire(message: Message, *, empty_ids: bool = True) -> dict[str, Json]:
    """The message as a provider gets it: without reasoning in front, without what is empty, and
    with the id of a call that has an empty one only where `empty_ids` says so.

    >>> wire(Message("assistant", "hm. yes", reasoning="hm."))
    {'role': 'assistant', 'content': ' yes'}
    """
    sent: dict[str, Json] = {"role": message.role}
    content = message.content
    if message.reasoning and isinstance(content, str):
        cut = _cut_prefix(content, message.reasoning)
        content = content if cut is None else cut
    if content is not None:
        sent["content"] = content
    if message.tool_calls:
        sent["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
    if message.tool_call_id or (empty_ids and message.tool_call_id is not None):
        sent["tool_call_id"] = message.tool_call_id
    if message.name:
        sent["name"] = message.name
    return sent


def _wire_call(call: ToolCall) -> Json:
    written = call.arguments
    if not isinstance(written, str):
        written = json_plain.dumps(written)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": written},
    }


def _cut_prefix(text: str, reasoning: str) -> str | None:
    """`text` without `reasoning` and the line ends after it; None where it begins otherwise."""
    for candidate in (text, text.lstrip()):
        if candidate.startswith(reasoning):
            return candidate[len(reasoning) :].lstrip("\n")
    return None


def _part_texts(parts: list[Json]) -> Iterator[str]:
    for part in parts:
        match part:
            case str():
                yield part
            case {"text": str(text)} | {"thinking": str(text)}:
                yield text
            case _:
                pass
