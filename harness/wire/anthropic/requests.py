"""Requests of this protocol, read and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from harness.core.json_text import Json
from harness.core.messages import Block, Image, Message, Role, Text, ToolSchema
from harness.wire.anthropic.blocks import block_of, unknown_tag, written_block
from harness.wire.anthropic_words import OTHERS, is_own
from harness.wire.reading import Field

TAKEN = frozenset(
    ["model", "system", "messages", "tools", "max_tokens", "temperature", "stream"],
)
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_KNOWN = sorted(
    {"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image"} | OTHERS
)


def system_of(field: Field) -> str:
    """What stands before the conversation; its blocks are joined by an empty line."""
    if field.value is None or isinstance(field.value, str):
        return field.value or ""
    return "\n\n".join([block["text"].text() for block in field.items()])


def messages_of(field: Field) -> Iterator[Message]:
    """The neutral messages of one message: each result in it is one, and so is what stands before
    and after them.
    """
    role = _ROLES.get(field["role"].text())
    if role is None:
        raise field["role"].refused("Input should be 'user', 'assistant' or 'system'")
    content = field["content"]
    if isinstance(content.value, str):
        yield Message(role, (Text(content.value),))
        return
    blocks: list[Block] = []
    results = 0
    for each in content.items():
        if each["type"].value == "tool_result":
            if blocks:
                yield Message(role, tuple(blocks))
                blocks = []
            results += 1
            yield _result_of(each.tagged("tool_result"))
        elif block := _known_block(each):
            blocks.append(block)
    if blocks or not results:
        yield Message(role, tuple(blocks))


def _known_block(field: Field) -> Block | None:
    kind = field["type"].text()
    if kind == "tool_use":
        field.tagged(kind)["input"].object()
    block = block_of(field)
    if block is None and kind not in OTHERS:
        raise field.refused(unknown_tag(kind, ", ".join([f"'{each}'" for each in _KNOWN])))
    return block


def _result_of(field: Field) -> Message:
    content = field["content"]
    blocks: list[Block] = []
    if isinstance(content.value, str):
        blocks = [Text(content.value)]
    elif content.value is not None:
        blocks = [block for each in content.items() if (block := _known_block(each)) is not None]
    call_id = field["tool_use_id"].text()
    return Message("tool", tuple(blocks), call_id, field["is_error"].flag())


def schema_of(field: Field) -> ToolSchema | None:
    """A tool; None for one that the provider runs itself."""
    if not is_own(field.value):
        return None
    tool = field.tagged("custom")
    described = tool["description"].text() if tool.has("description") else ""
    return ToolSchema(tool["name"].text(), described, tool["input_schema"].object())


def written_messages(messages: Iterable[Message]) -> list[Json]:
    """Messages; results that follow each other stand in one."""
    written: list[Json] = []
    results: list[Json] | None = None
    for message in messages:
        if message.role != "tool":
            results = None
            written.append({"role": message.role, "content": _written_content(message.content)})
            continue
        if results is None:
            results = []
            written.append({"role": "user", "content": results})
        results.append(_written_result(message))
    return written


def _written_result(message: Message) -> Json:
    written: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
    content = tuple([block for block in message.content if isinstance(block, Text | Image)])
    if content:
        written["content"] = _written_content(content)
    if message.is_error:
        written["is_error"] = True
    return written


def _written_content(content: tuple[Block, ...]) -> Json:
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    return [written_block(block) for block in content]


def written_schema(tool: ToolSchema) -> Json:
    """A tool of the client's; one of which no parameters are known may have any."""
    described = {"description": tool.description} if tool.description else {}
    parameters = {"type": "object"} if tool.parameters is None else tool.parameters
    return {"name": tool.name, **described, "input_schema": parameters}
