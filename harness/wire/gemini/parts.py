"""Parts of contents, and how they come together to blocks.

A signature beside a call is that of the reasoning before it, back to the call before; where there
is none that is not signed, it is that of reasoning without words right before the call. A signature
beside reasoning is that reasoning's own. One beside text, which may be empty, is that of reasoning
without words right behind the text. Pieces of text that follow each other are one, and so are
pieces of reasoning up to a signature. Text without words is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from harness.core.json_text import Json, well_formed
from harness.core.messages import Block, Image, Message, Text, Thinking, ToolCall
from harness.core.reply import ReplyPart, TextDelta, ThinkingDelta
from harness.wire.blockwise import said_in
from harness.wire.gemini_words import read_signature, spelled, written_signature
from harness.wire.reading import Field
from harness.wire.writing import text_of


class Placed(Struct, frozen=True):
    """A block, and the signature that stands beside it."""

    block: Block
    signature: str | None = None


def placed(message: Message) -> list[Placed]:
    """The blocks of a message, each signature where the provider puts it: beside the next call
    where it can be found again there, else beside its own reasoning.
    """
    found: list[Placed] = []
    thought: int | None = None  # the last reasoning since the last call
    open_before = False  # whether the reasoning before that is not signed
    for block in message.content:
        signature = None
        if isinstance(block, Thinking):
            open_before = thought is not None and found[thought].signature is None
            thought, signature = len(found), block.signature or None
        elif isinstance(block, ToolCall):
            if thought is not None and (signature := found[thought].signature) is not None:
                if said_in(found[thought].block):
                    found[thought] = Placed(found[thought].block)
                elif thought == len(found) - 1 and not open_before:
                    found.pop()
                else:
                    signature = None
            thought = None
        found.append(Placed(block, signature))
    return found


def written_part(part: Placed, *, ids: bool) -> dict[str, Any]:
    """One part, whole; calls have their ids where the model gives them."""
    signed = (
        {} if part.signature is None else {"thoughtSignature": written_signature(part.signature)}
    )
    match part.block:
        case Text(text=text):
            return {"text": text, **signed}
        case Thinking(text=text):
            return {"text": text, **({"thought": True} if text else {}), **signed}
        case ToolCall(id=call_id, name=name) as call:
            named = {"id": call_id} if ids else {}
            return {"functionCall": {**named, "name": name, "args": arguments_of(call)}, **signed}
        case image:
            return written_image(image)


def arguments_of(call: ToolCall) -> dict[str, Json]:
    """The arguments of a call, which must be an object here: others are wrapped in one.

    >>> arguments_of(ToolCall("1", "f", [1])), arguments_of(ToolCall("1", "f", None, "{"))
    ({'INVALID_JSON': '[1]'}, {'INVALID_JSON': '{'})
    """
    if is_plain(call):
        return call.args or {}
    return {"INVALID_JSON": text_of(call.args) if call.raw is None else call.raw}


def is_plain(call: ToolCall) -> bool:
    """Whether the arguments of a call are such as the model can write: an object, or none."""
    return not call.raw and (call.args is None or isinstance(call.args, dict))


def image_of(field: Field) -> Image | None:
    """A picture, or whatever else is no text; None where a part holds none."""
    if (data := member(field, "inlineData")).value is not None:
        kind = member(data, "mimeType").text()
        return Image(f"data:{kind};base64,{data['data'].text()}", kind)
    if (file := member(field, "fileData")).value is not None:
        given = member(file, "mimeType")
        return Image(member(file, "fileUri").text(), given.text() if given.value else "")
    return None


def written_image(image: Image) -> dict[str, Any]:
    """A picture: its data where it is in the reference, else the reference."""
    at = image.attachment_id
    kind, comma, data = at.removeprefix("data:").partition(";base64,")
    if comma and at.startswith("data:"):
        return {"inlineData": {"mimeType": kind, "data": data}}
    typed = {"mimeType": image.media_type} if image.media_type else {}
    return {"fileData": {**typed, "fileUri": at}}


def member(field: Field, key: str) -> Field:
    """A member of an object, in either spelling."""
    return field[spelled(field.object(), key)]


class Assembly:
    """Blocks as they come together from parts. What nobody knows is passed over."""

    def __init__(self) -> None:
        self._blocks: list[_Said | Image | ToolCall] = []
        self._thought: _Said | None = None

    def part(self, field: Field) -> Iterator[ReplyPart]:
        """Take a part: what it says more."""
        signed = member(field, "thoughtSignature")
        signature = read_signature(signed.text()) if signed.value is not None else None
        if (call := member(field, "functionCall")).value is not None:
            self._call(call, signature)
        elif (image := image_of(field)) is not None:
            self._blocks.append(image)
        else:
            text = field["text"].text() if field.has("text") else ""
            thought = field["thought"].flag()
            if text:
                self._said(Thinking if thought else Text).pieces.append(text)
                yield ThinkingDelta(text) if thought else TextDelta(text)
            if signature is not None:
                self._sign(signature, thought=thought)

    def whole(self, made: Callable[[int], str]) -> tuple[Block, ...]:
        """The blocks; `made` gives the id of the n-th call where it came without one."""
        blocks: list[Block] = []
        count = 0
        for each in self._blocks:
            match each:
                case _Said():
                    blocks.append(each.whole())
                case ToolCall():
                    blocks.append(each if each.id else replace(each, id=made(count)))
                    count += 1
                case _:
                    blocks.append(each)
        return tuple(blocks)

    def _said(self, kind: type[Text | Thinking]) -> _Said:
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, _Said) and last.kind is kind and last.signature is None:
            return last
        said = _Said(kind)
        self._blocks.append(said)
        if kind is Thinking:
            self._thought = said
        return said

    def _sign(self, signature: str, *, thought: bool) -> None:
        if thought:
            self._said(Thinking).signature = signature
            return
        self._thought = _Said(Thinking, signature)
        self._blocks.append(self._thought)

    def _call(self, call: Field, signature: str | None) -> None:
        if signature is not None:
            if self._thought is None or self._thought.signature is not None:
                self._blocks.append(_Said(Thinking, signature))
            else:
                self._thought.signature = signature
        self._thought = None
        call_id = call["id"].text() if call.has("id") else ""
        args = call["args"].object() if call.has("args") else {}
        self._blocks.append(ToolCall(call_id, call["name"].text(), args))


class _Said:
    """Text or reasoning as it comes together."""

    def __init__(self, kind: type[Text | Thinking], signature: str | None = None) -> None:
        self.kind = kind
        self.signature = signature
        self.pieces: list[str] = []

    def whole(self) -> Block:
        text = well_formed("".join(self.pieces))
        return Text(text) if self.kind is Text else Thinking(text, self.signature)
