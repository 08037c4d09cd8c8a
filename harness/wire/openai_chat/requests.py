"""Requests of this protocol, read and written."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.json_text import Json
from harness.core.messages import Block, Image, Message, ModelRequest, Text, Thinking, ToolSchema
from harness.wire.openai_chat.replies import thought_of, written_call
from harness.wire.reading import Field, call_of

TAKEN = frozenset(
    ["model", "messages", "tools", "max_completion_tokens", "max_tokens", "temperature", "stream"]
)


def message_of(field: Field) -> Message:
    role = field["role"].text() if field.has("role") else ""
    match role:
        case "system" | "developer":
            return Message("system", _content(field))
        case "user":
            return Message("user", _content(field))
        case "assistant":
            return Message("assistant", tuple(_said(field)))
        case "tool":
            return Message("tool", _content(field), field["tool_call_id"].text())
        case _:
            known = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
            raise field["role"].refused(f"Invalid value: '{role}'. Supported values are: {known}.")


def _said(field: Field) -> Iterator[Block]:
    if field.has("reasoning_content"):
        yield Thinking(field["reasoning_content"].text())
    if field.has("content"):
        yield from _content(field)
    if field.has("refusal"):
        yield Text(field["refusal"].text())
    if field.has("tool_calls"):
        for call in field["tool_calls"].items():
            function = call["function"]
            yield call_of(call["id"].text(), function["name"].text(), function["arguments"].text())


def _content(field: Field) -> tuple[Block, ...]:
    content = field["content"]
    if isinstance(content.value, str):
        return (Text(content.value),)
    if content.value is None:
        raise content.refused("Invalid value for 'content': expected a string, got null.")
    return tuple([_part(each) for each in content.items()])


def _part(field: Field) -> Block:
    match field["type"].text():
        case "text":
            return Text(field["text"].text())
        case "refusal":
            return Text(field["refusal"].text())
        case "image_url":
            return Image(field["image_url"]["url"].text())
        case other:
            raise field["type"].refused(f"Invalid value: '{other}'.")


def schema_of(field: Field) -> ToolSchema:
    function = field["function"]
    described = function["description"].text() if function.has("description") else ""
    return ToolSchema(function["name"].text(), described, function["parameters"].value)


def written_messages(request: ModelRequest) -> list[Json]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, *[_written_message(message) for message in request.messages]]


def _written_message(message: Message) -> dict[str, Json]:
    match message.role:
        case "tool":
            content = _written_content(message)
            return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": content}
        case "assistant":
            written: dict[str, Json] = {"role": "assistant", "content": message.text or None}
            if thought := thought_of(message):
                written["reasoning_content"] = thought
            if calls := message.calls:
                written["tool_calls"] = [written_call(call) for call in calls]
            elif written["content"] is None:
                written["content"] = ""
            return written
        case role:
            return {"role": role, "content": _written_content(message)}


def _written_content(message: Message) -> Json:
    if all(isinstance(block, Text) for block in message.content):
        return message.text
    parts: list[Json] = []
    for block in message.content:
        match block:
            case Text(text=text):
                parts.append({"type": "text", "text": text})
            case Image(attachment_id=url):
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case _:
                pass
    return parts


def written_schema(tool: ToolSchema) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}
