"""Requests of this protocol, read and written, in either spelling of their keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from harness.core.json_text import Json
from harness.core.messages import Block, Image, Message, Text, ToolSchema
from harness.wire.gemini.parts import (
    Assembly,
    image_of,
    member,
    placed,
    written_image,
    written_part,
)
from harness.wire.reading import Field
from harness.wire.writing import text_of

_USERS = ("user", "function")
"""The roles of what is not the model's: the second is an old one of results."""
_OUTPUTS = ("output", "result")
"""The keys under which a response holds nothing but what a function gave."""
_SCHEMAS = ("properties", "$defs", "defs")
"""The keys of a schema whose values are objects of schemas."""


def messages_of(contents: Iterable[Field]) -> Iterator[Message]:
    """The neutral messages of contents.

    Contents of the model's that follow each other are one message, as its library keeps each frame
    of a reply as one. Each result is a message, and so is what stands before and after it.
    """
    calls = _Calls()
    reply: Assembly | None = None
    for content in contents:
        role = content["role"].text() if content.has("role") else "user"
        if role == "model":
            reply = Assembly() if reply is None else reply
            for part in _parts_of(content):
                for _ in reply.part(part):
                    pass
            continue
        if role not in _USERS:
            raise content["role"].refused("Please use a valid role: user, model.")
        if reply is not None:
            yield calls.made_by(reply)
            reply = None
        yield from _users(content, calls)
    if reply is not None:
        yield calls.made_by(reply)


def text_in(field: Field) -> str:
    """What stands before the conversation; its parts are joined by an empty line."""
    if field.value is None:
        return ""
    return "\n\n".join([part["text"].text() for part in _parts_of(field)])


class _Calls:
    """The calls of the model's last turn that have no result yet, by their names, and the ids of
    all calls that came without one.
    """

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[str, deque[str]] = {}
        self._answered: set[str] = set()

    def made_by(self, reply: Assembly) -> Message:
        """The model's message; ids that are missing are of the place in the conversation."""
        before = self._count
        message = Message("assistant", reply.whole(lambda n: f"call_{before + n}"))
        self._count += len(message.calls)
        self._open, self._answered = {}, set()
        for call in message.calls:
            self._open.setdefault(call.name, deque()).append(call.id)
        return message

    def answered(self, name: str, call_id: str) -> str:
        """The id of the call that a result is of: its own, or that of the first open call of the
        name. The name itself where there is none.
        """
        waiting = self._open.get(name, deque())
        while not call_id and waiting:
            first = waiting.popleft()
            call_id = "" if first in self._answered else first
        self._answered.add(call_id)
        return call_id or name


def _parts_of(content: Field) -> Iterable[Field]:
    return content["parts"].items() if content.has("parts") else ()


def _users(content: Field, calls: _Calls) -> Iterator[Message]:
    blocks: list[Block] = []
    results = 0
    for part in _parts_of(content):
        if (response := member(part, "functionResponse")).value is not None:
            if blocks:
                yield Message("user", tuple(blocks))
                blocks = []
            results += 1
            yield _result_of(response, calls)
        elif (image := image_of(part)) is not None:
            blocks.append(image)
        elif part.has("text"):
            blocks.append(Text(part["text"].text()))
    if blocks or not results:
        yield Message("user", tuple(blocks))


def _result_of(field: Field, calls: _Calls) -> Message:
    name = field["name"].text()
    call_id = calls.answered(name, field["id"].text() if field.has("id") else "")
    response = field["response"].object() if field.has("response") else {}
    failed = list(response) == ["error"]
    given: Json = response
    if failed or (len(response) == 1 and next(iter(response)) in _OUTPUTS):
        [given] = response.values()
    text = given if isinstance(given, str) else text_of(given) if response else ""
    content: list[Block] = [Text(text)] if text else []
    pictures = [image_of(part) for part in _parts_of(field)]
    content += [image for image in pictures if image is not None]
    return Message("tool", tuple(content), call_id, failed)


def schemas_of(tool: Field) -> list[ToolSchema]:
    """The functions that a tool declares."""
    declared = member(tool, "functionDeclarations")
    return [_schema_of(each) for each in declared.items()] if declared.value is not None else []


def foreign_tool(tool: Field) -> Json:
    """What else a tool is, which the provider runs itself; nothing where it is nothing else."""
    own = ("functionDeclarations", "function_declarations")
    return {key: value for key, value in tool.object().items() if key not in own}


def _schema_of(field: Field) -> ToolSchema:
    described = field["description"].text() if field.has("description") else ""
    schema = member(field, "parametersJsonSchema").value
    if schema is None and field.has("parameters"):
        schema = _lowered(field["parameters"].object())
    return ToolSchema(field["name"].text(), described, schema)


def _lowered(schema: Json) -> Json:
    """A schema in the provider's own words as JSON Schema: its types are in capital letters."""
    if isinstance(schema, list):
        return [_lowered(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    lowered: dict[str, Json] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            lowered[key] = value.lower()
        elif key in _SCHEMAS and isinstance(value, dict):
            lowered[key] = {name: _lowered(each) for name, each in value.items()}
        elif key in ("items", "anyOf", "any_of"):
            lowered[key] = _lowered(value)
        else:
            lowered[key] = value
    return lowered


def written_contents(messages: Iterable[Message]) -> list[Json]:
    """Contents; results that follow each other stand in one."""
    written: list[Json] = []
    names: dict[str, str] = {}
    results: list[Json] | None = None
    for message in messages:
        if message.role == "tool":
            if results is None:
                results = []
                written.append({"role": "user", "parts": results})
            results.append(_written_result(message, names))
            continue
        results = None
        names |= {call.id: call.name for call in message.calls}
        parts = [written_part(part, ids=True) for part in placed(message)]
        written.append({"role": "model" if message.role == "assistant" else "user", "parts": parts})
    return written


def _written_result(message: Message, names: dict[str, str]) -> Json:
    call_id = message.tool_call_id or ""
    key = "error" if message.is_error else "output"
    response: dict[str, Any] = {
        "id": call_id,
        "name": names.get(call_id, call_id),
        "response": {key: message.text},
    }
    pictures = [written_image(block) for block in message.content if isinstance(block, Image)]
    if pictures:
        response["parts"] = pictures
    return {"functionResponse": response}


def written_tool(tool: ToolSchema) -> Json:
    """A function's declaration."""
    described = {"description": tool.description} if tool.description else {}
    schema = {} if tool.parameters is None else {"parametersJsonSchema": tool.parameters}
    return {"name": tool.name, **described, **schema}
