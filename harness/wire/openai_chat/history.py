"""Messages of a request, read and written.

What the neutral form has no place for is left out: names of speakers, annotations, and whatever is
not known. What the protocol has no place for is left out where messages are written: signatures,
sizes of pictures, whether a tool failed, and how text and calls of one message mix.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.json_text import Json
from harness.core.messages import Block, Image, Message, Text, Thinking, ToolCall
from harness.wire.openai_chat.tools import call_in, written_call
from harness.wire.openai_failures import refused
from harness.wire.reading import Field, call_of

_THOUGHTS = ("reasoning_content", "reasoning")
"""Where providers put what a model thought; OpenAI itself does not show it."""


def message_of(field: Field) -> Message:
    """A message of a request."""
    match field["role"].text():
        case "system" | "developer":
            return Message("system", _content(field))
        case "user":
            return Message("user", _content(field))
        case "assistant":
            return Message("assistant", tuple(_said(field)))
        case "tool":
            return Message("tool", _content(field), _answered(field))
        case "function":  # before there were tools: the function's name was all the id there was
            return Message("tool", _content(field), field["name"].text())
        case role:
            known = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
            raise refused(
                f"Invalid value: '{role}'. Supported values are: {known}.",
                f"{field.place}.role",
                "invalid_value",
            )


def thought_in(field: Field) -> str:
    """What a model thought, as providers show it; "" where they do not."""
    for key in _THOUGHTS:
        found = field[key].value
        if isinstance(found, str) and found:
            return found
    return ""


def thought_of(message: Message) -> str:
    """All reasoning of a message."""
    return "".join([block.text for block in message.content if isinstance(block, Thinking)])


def written_message(message: Message, custom: frozenset[str] = frozenset()) -> dict[str, Json]:
    """A message of a request; calls of the tools in `custom` are custom ones."""
    content = _written_content(message)
    if message.role == "tool":
        answered = {} if message.tool_call_id is None else {"tool_call_id": message.tool_call_id}
        return {"role": "tool", **answered, "content": content}
    written: dict[str, Json] = {"role": message.role, "content": content}
    if message.role == "assistant":
        if thought := thought_of(message):
            written["reasoning_content"] = thought
        if calls := message.calls:
            written["tool_calls"] = [written_call(call, custom) for call in calls]
            written["content"] = content or None
    return written


def _answered(field: Field) -> str:
    if field.has("tool_call_id"):
        return field["tool_call_id"].text()
    raise refused(
        "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
        _dotted(f"{field.place}.tool_call_id"),
    )


def _said(field: Field) -> Iterator[Block]:
    if thought := thought_in(field):
        yield Thinking(thought)
    if field.has("content"):
        yield from _content(field)
    if field.has("refusal"):
        yield Text(field["refusal"].text())
    if field.has("tool_calls"):
        yield from [call_in(call) for call in field["tool_calls"].items()]
    if field.has("function_call"):
        function = field["function_call"]
        name = function["name"].text()
        yield call_of(name, name, function["arguments"].text())


def _content(field: Field) -> tuple[Block, ...]:
    content = field["content"]
    if isinstance(content.value, str):
        return (Text(content.value),)
    if content.value is None:
        raise refused(
            "Invalid value for 'content': expected a string, got null.", _dotted(content.place)
        )
    return tuple([_part(each) for each in content.items()])


def _part(field: Field) -> Block:
    match field["type"].text():
        case "text":
            return Text(field["text"].text())
        case "refusal":
            return Text(field["refusal"].text())
        case "image_url":
            return Image(field["image_url"]["url"].text())
        case "input_audio":
            audio = field["input_audio"]
            return Image(audio["data"].text(), f"audio/{audio['format'].text()}")
        case "file":
            file = field["file"]
            keys = [key for key in ("file_id", "file_data") if file.has(key)]
            return Image(file[keys[0] if keys else "file_id"].text(), "application/octet-stream")
        case other:
            known = "'text', 'image_url', 'input_audio', 'refusal', and 'file'"
            raise refused(
                f"Invalid value: '{other}'. Supported values are: {known}.",
                f"{field.place}.type",
                "invalid_value",
            )


def _dotted(place: str) -> str:
    """A place as some of the provider's checks write it: ``messages.[0].content``."""
    return place.replace("[", ".[")


def _written_content(message: Message) -> Json:
    parts = [block for block in message.content if not isinstance(block, Thinking | ToolCall)]
    match parts:
        case []:
            return ""
        case [Text(text=text)]:
            return text
        case _:
            return [_written_part(part) for part in parts]


def _written_part(part: Text | Image) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    kind, _, form = part.media_type.partition("/")
    match kind:
        case "audio":
            audio = {"data": part.attachment_id, "format": form}
            return {"type": "input_audio", "input_audio": audio}
        case "application":
            return {"type": "file", "file": {"file_id": part.attachment_id}}
        case _:
            return {"type": "image_url", "image_url": {"url": part.attachment_id}}
