"""Items of a conversation, read into the neutral form and written from it.

What the neutral form has no place for is left out: ids of items, their states, annotations, phases,
and items of tools that the provider runs itself. Summaries of one reasoning are joined by an empty
line; reasoning that is shown itself counts where there is no summary.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.json_text import Json
from harness.core.messages import Block, Image, Message, Role, Text, Thinking, ToolCall
from harness.wire.openai_words import input_of
from harness.wire.reading import Field, call_of

BETWEEN = "\n\n"
"""What stands between two summaries of one reasoning."""

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_RESULTS = ("function_call_output", "custom_tool_call_output")
_OTHERS = frozenset(
    [
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "computer_call",
        "computer_call_output",
        "file_search_call",
        "image_generation_call",
        "item_reference",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "shell_call",
        "shell_call_output",
        "web_search_call",
    ]
)
_PARTS = (
    "'input_text', 'input_image', 'input_file', 'input_audio', 'output_text', 'refusal', and "
    "'summary_text'"
)


def messages_of(items: list[Field]) -> list[Message]:
    """The neutral messages of items.

    What a model brings without anything between is one message.
    """
    messages: list[Message] = []
    said: list[Block] = []
    for item in items:
        blocks = blocks_of(item)
        if blocks is not None:
            said += blocks
            continue
        if message := _message_of(item):
            if said:
                messages.append(Message("assistant", tuple(said)))
                said = []
            messages.append(message)
    if said:
        messages.append(Message("assistant", tuple(said)))
    return messages


def blocks_of(item: Field) -> list[Block] | None:
    """What an item brings to a model's message; None for one that is not the model's."""
    match _kind(item):
        case "message" if item["role"].value == "assistant":
            return [*_content(item["content"])]
        case "reasoning":
            signed = item["encrypted_content"].text() if item.has("encrypted_content") else None
            return [Thinking(thought_in(item), signed or None)]
        case "function_call":
            return [
                call_of(item["call_id"].text(), item["name"].text(), item["arguments"].text()),
            ]
        case "custom_tool_call":
            return [ToolCall(item["call_id"].text(), item["name"].text(), item["input"].text())]
        case _:
            return None


def thought_in(item: Field) -> str:
    """What a reasoning item shows."""
    for key in ("summary", "content"):
        if item.has(key) and (parts := [part["text"].text() for part in item[key].items()]):
            return BETWEEN.join(parts)
    return ""


def _kind(item: Field) -> str:
    return item["type"].text() if item.has("type") else "message"


def _message_of(item: Field) -> Message | None:
    """A message that is not the model's; None for an item that is passed over."""
    kind = _kind(item)
    if kind in _RESULTS:
        return Message("tool", tuple(_content(item["output"])), item["call_id"].text())
    if kind == "message":
        role = _ROLES.get(item["role"].text())
        if role is None:
            known = "'assistant', 'system', 'developer', and 'user'"
            raise _unknown(item["role"], known)
        return Message(role, tuple(_content(item["content"])))
    if kind not in _OTHERS:
        known = "'message', 'reasoning', 'function_call', and 'function_call_output'"
        raise _unknown(item["type"], known)
    return None


def _content(content: Field) -> Iterator[Block]:
    if isinstance(content.value, str):
        yield Text(content.value)
        return
    for part in content.items():
        yield part_of(part)


def part_of(part: Field) -> Block:
    """A part of a message."""
    match part["type"].text():
        case "input_text" | "output_text" | "summary_text" | "text":
            return Text(part["text"].text())
        case "refusal":
            return Text(part["refusal"].text())
        case "input_image":
            key = "image_url" if part.has("image_url") else "file_id"
            return Image(part[key].text())
        case "input_file":
            keys = [key for key in ("file_id", "file_url", "file_data") if part.has(key)]
            return Image(part[keys[0] if keys else "file_id"].text(), "application/octet-stream")
        case "input_audio":
            audio = part["input_audio"]
            return Image(audio["data"].text(), f"audio/{audio['format'].text()}")
        case _:
            raise _unknown(part["type"], _PARTS)


def _unknown(field: Field, known: str) -> Exception:
    return field.refused(f"Invalid value: '{field.value}'. Supported values are: {known}.")


def written_items(message: Message, custom: frozenset[str], called: frozenset[str]) -> list[Json]:
    """The items of a message; calls of the tools in `custom`, and results of the calls whose ids
    are among `called`, are custom ones.
    """
    if message.role == "tool":
        call_id = message.tool_call_id or ""
        kind = _RESULTS[call_id in called]
        output = _written_content(message.content, "input_text")
        return [{"type": kind, "call_id": call_id, "output": output}]
    if message.role != "assistant":
        content = _written_content(message.content, "input_text")
        return [{"type": "message", "role": message.role, "content": content}]
    return [written_block(block, custom) for block in message.content]


def written_block(block: Block, custom: frozenset[str]) -> dict[str, Json]:
    """A block of a model's message as an item, without what only the provider gives it."""
    match block:
        case Thinking(text=text, signature=signature):
            item: dict[str, Json] = {"type": "reasoning", "summary": summary_of(text)}
            return item if signature is None else item | {"encrypted_content": signature}
        case ToolCall(id=call_id, name=name):
            kind, key = call_words(name, custom)
            given = {"call_id": call_id, "name": name, key: input_of(block, custom)}
            return {"type": kind, **given}
        case _:
            part = _written_part(block, "output_text")
            return {"type": "message", "role": "assistant", "content": [part]}


def call_words(name: str, custom: frozenset[str]) -> tuple[str, str]:
    """What a call is called, and what it is given."""
    return ("custom_tool_call", "input") if name in custom else ("function_call", "arguments")


def summary_of(thought: str) -> list[Json]:
    """The summaries of a reasoning."""
    return [{"type": "summary_text", "text": thought}] if thought else []


def _written_content(content: tuple[Block, ...], kind: str) -> Json:
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    return [_written_part(each, kind) for each in content]


def _written_part(block: Block, kind: str) -> Json:
    if not isinstance(block, Image):
        return {"type": kind, "text": block.text if isinstance(block, Text) else ""}
    at = block.attachment_id
    family, _, form = block.media_type.partition("/")
    if family == "audio":
        return {"type": "input_audio", "input_audio": {"data": at, "format": form}}
    if family == "application":
        return {"type": "input_file", "file_id": at}
    named = at.startswith(("https://", "http://", "data:"))
    return {"type": "input_image", "image_url" if named else "file_id": at, "detail": "auto"}
