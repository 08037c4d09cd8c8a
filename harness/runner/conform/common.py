"""What all kinds of vectors share: reading lines, comparing JSON, the spelling of messages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from harness.core import json_text
from harness.core.json_text import Json
from harness.core.messages import Block, Image, Message, Text, Thinking, ToolCall
from harness.loops.fsm.prompts import Texts as FsmTexts
from harness.loops.turn.config import AgentConfig, Texts
from harness.sim.kernel import Kernel

T = TypeVar("T")

Check: TypeAlias = Callable[[Json, "VectorTexts"], str | None]
"""Plays one vector and says how it differs from what it expects; None where it does not.

ValueError where the vector is not of a known form.
"""


class VectorTexts(Struct, frozen=True):
    """The texts that vectors were recorded with: the turn loop's, and those of the FSM loop."""

    texts: Texts = Texts()
    config: AgentConfig = AgentConfig()
    fsm: FsmTexts = FsmTexts()


def vector_texts(data: Mapping[str, Json] | None) -> VectorTexts:
    """The texts of a file like ``texts.json``, or of one of its parts; None: our own."""
    if data is None:
        return VectorTexts()
    part, fsm = data.get("turn", data), data.get("fsm", data)
    known = {name: part[name] for name in Texts.__struct_fields__ if name in part}
    known_fsm = {name: fsm[name] for name in FsmTexts.__struct_fields__ if name in fsm}
    settings = {
        name: part[f"default_{name}"]
        for name in ("system_prompt", "model")
        if f"default_{name}" in part
    }
    return VectorTexts(Texts(**known), AgentConfig(**settings), FsmTexts(**known_fsm))


class Stuck(Exception):
    """A vector's run did not end, or left asyncio something to complain about."""


def play(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in virtual time, and let what it left behind end too.

    Raises what the coroutine raises, and Stuck where it never ends.
    """
    kernel = Kernel()
    try:
        task = kernel.spawn(make(), "1")
        stop = kernel.run_until(task.done)
        if not task.done():
            raise Stuck(f"{stop.reason}: {stop.detail}")
        kernel.settle()
        if kernel.callback_errors:
            raise Stuck(kernel.callback_errors[0])
        result: T = task.result()
        return result
    finally:
        kernel.tear_down()


def difference(expected: Json, found: Json, place: str = "") -> str | None:
    """Where two JSON values differ first, in a sentence; None where they are the same text."""
    where = place or "the whole"
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected:
            if key not in found:
                return f"{place}.{key} is missing"
        for key, value in found.items():
            if key not in expected:
                return f"{place}.{key} is there, and should not be: {_short(value)}"
            deeper = difference(expected[key], value, f"{place}.{key}")
            if deeper:
                return deeper
        return None
    if isinstance(expected, list) and isinstance(found, list):
        for index, (one, other) in enumerate(zip(expected, found, strict=False)):
            deeper = difference(one, other, f"{place}[{index}]")
            if deeper:
                return deeper
        if len(expected) != len(found):
            extra = (expected if len(expected) > len(found) else found)[
                min(len(expected), len(found))
            ]
            return f"{where} has {len(found)} items, not {len(expected)}; first: {_short(extra)}"
        return None
    if json_text.dumps(expected) == json_text.dumps(found):
        return None
    return f"{where}: expected {_short(expected)}, found {_short(found)}"


def only_keys(value: Json, known: set[str], what: str) -> dict[str, Json]:
    """`value` as an object with no other keys than `known`; ValueError where it is not."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object: {_short(value)}")
    strange = sorted(set(value) - known)
    if strange:
        raise ValueError(f"{what} has the unknown key {strange[0]!r}")
    return value


def message_from_json(value: Json) -> Message:
    """A message as vectors spell it."""
    fields = only_keys(value, {"role", "content", "tool_call_id"}, "a message")
    blocks = tuple([_block(block) for block in fields["content"]])
    return Message(fields["role"], blocks, fields.get("tool_call_id"))


def message_json(message: Message) -> Json:
    """A message in the spelling of vectors, which has no place for `is_error`."""
    return {
        "role": message.role,
        "content": [_block_json(block) for block in message.content],
        "tool_call_id": message.tool_call_id,
    }


def _block(value: Json) -> Block:
    match value:
        case {"type": "text", "content": str(text)}:
            return Text(text)
        case {"type": "tool_call", "content": {"id": call_id, "name": name, "args": args}}:
            return ToolCall(call_id, name, args)
        case {"type": "image", "content": dict(image)}:
            sides = [image.get("width"), image.get("height")]
            width, height = [side if isinstance(side, int | float) else 0 for side in sides]
            return Image(image.get("attachment_id", ""), image.get("media_type", ""), width, height)
        case _:
            raise ValueError(f"not a content block: {_short(value)}")


def _block_json(block: Block) -> Json:
    match block:
        case Text(text=text):
            return {"type": "text", "content": text}
        case ToolCall(id=call_id, name=name, args=args):
            return {"type": "tool_call", "content": {"id": call_id, "name": name, "args": args}}
        case Image():
            return {"type": "image", "content": msgspec.structs.asdict(block)}
        case Thinking(text=text):
            return {"type": "thinking", "content": text}


def _short(value: Json) -> str:
    text = json_text.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
