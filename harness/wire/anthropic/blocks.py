"""Content blocks, as they stand in requests and in whole replies."""

from __future__ import annotations

from typing import Any

from harness.core.json_text import Json, well_formed
from harness.core.messages import Block, Image, Text, Thinking, ToolCall
from harness.wire.anthropic_words import REDACTED, redacted
from harness.wire.reading import Field, call_of
from harness.wire.writing import text_of

INVALID_JSON = "INVALID_JSON"
"""The only key of an object that stands for arguments which are no JSON, as the vendor has it."""


def block_of(field: Field) -> Block | None:
    """One block; None for a kind that the neutral form does not know."""
    kind = field["type"].text()
    inner = field.tagged(kind)
    match kind:
        case "text":
            return Text(well_formed(inner["text"].text()))
        case "thinking":
            signature = inner["signature"].text()
            return Thinking(well_formed(inner["thinking"].text()), signature or None)
        case "redacted_thinking":
            return redacted(inner["data"].text())
        case "tool_use":
            return call_with(inner["id"].text(), inner["name"].text(), inner["input"].value)
        case "image":
            return _image_of(inner["source"])
        case _:
            return None


def written_block(block: Block) -> dict[str, Any]:
    """One block, whole."""
    match block:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Thinking(signature=signature) if signature and signature.startswith(REDACTED):
            return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
        case Thinking(text=text, signature=signature):
            return {"type": "thinking", "thinking": text, "signature": signature or ""}
        case ToolCall(id=call_id, name=name):
            return {"type": "tool_use", "id": call_id, "name": name, "input": input_of(block)}
        case _:
            return {"type": "image", "source": _source_of(block)}


def call_with(call_id: str, name: str, given: Json) -> ToolCall:
    """A call with these arguments.

    >>> call_with("toolu_1", "look", {"INVALID_JSON": "{"}).raw
    '{'
    """
    match given:
        case {"INVALID_JSON": str(text)} if len(given) == 1:
            call = call_of(call_id, name, text)
            if call.raw is not None:
                return call
    return ToolCall(call_id, name, given)


def input_of(call: ToolCall) -> Json:
    """The arguments of a call as a value; none at all are an empty object."""
    if call.raw is None:
        return call.args
    return {INVALID_JSON: call.raw} if call.raw else {}


def arguments_of(call: ToolCall) -> str:
    """The arguments of a call as a model writes them: nothing for an empty object.

    >>> arguments_of(ToolCall("toolu_1", "now", {})), arguments_of(ToolCall("toolu_1", "look", [1]))
    ('', '[1]')
    """
    if call.raw is not None:
        return call.raw
    return "" if call.args == {} else text_of(call.args)


def _image_of(source: Field) -> Image:
    match source["type"].text():
        case "base64":
            kind = source["media_type"].text()
            return Image(f"data:{kind};base64,{source['data'].text()}", kind)
        case "url":
            return Image(source["url"].text())
        case "file":
            return Image(source["file_id"].text())
        case other:
            raise source.refused(unknown_tag(other, "'base64', 'file', 'url'"))


def _source_of(image: Image) -> Json:
    at = image.attachment_id
    kind, comma, data = at.removeprefix("data:").partition(";base64,")
    if comma and at.startswith("data:"):
        return {"type": "base64", "media_type": kind, "data": data}
    if at.startswith(("https://", "http://")):
        return {"type": "url", "url": at}
    return {"type": "file", "file_id": at}


def unknown_tag(found: str, known: str) -> str:
    """What the provider says of a kind that is none of those it knows."""
    tags = f"does not match any of the expected tags: {known}"
    return f"Input tag '{found}' found using 'type' {tags}"
