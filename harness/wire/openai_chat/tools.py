"""Tools and calls of them: functions, whose arguments are JSON, and custom tools, which take text.

In the neutral form a custom tool is one without parameters, and the arguments of its calls are the
text. Which tools of a request are custom is known from its options, where its `tools` are kept as
they stand whenever the neutral form cannot hold all that they say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.core.json_text import Json
from harness.core.messages import ToolCall, ToolSchema
from harness.wire.openai_failures import refused
from harness.wire.openai_words import input_of
from harness.wire.reading import Field, call_of


def schema_of(field: Field) -> ToolSchema:
    """A tool of a request."""
    match field["type"].text():
        case "function":
            given = field["function"]
        case "custom":
            given = field["custom"]
        case other:
            raise refused(
                f"Invalid value: '{other}'. Supported values are: 'function' and 'custom'.",
                f"{field.place}.type",
                "invalid_value",
            )
    described = given["description"].text() if given.has("description") else ""
    parameters = given["parameters"].object() if given.has("parameters") else None
    return ToolSchema(given["name"].text(), described, parameters)


def written_schema(tool: ToolSchema) -> dict[str, Json]:
    """A tool of a request, written as a function."""
    function: dict[str, Json] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    return {"type": "function", "function": function}


def custom_names(options: Mapping[str, Json]) -> frozenset[str]:
    """The names of the custom tools in a request that was read."""
    tools: list[Any] = options.get("tools") or []
    return frozenset([tool["custom"]["name"] for tool in tools if tool["type"] == "custom"])


def call_in(field: Field) -> ToolCall:
    """A call of a message that is sent back."""
    call_id = field["id"].text()
    if field.has("custom"):
        custom = field["custom"]
        return ToolCall(call_id, custom["name"].text(), custom["input"].text())
    function = field["function"]
    return call_of(call_id, function["name"].text(), function["arguments"].text())


def written_call(call: ToolCall, custom: frozenset[str] = frozenset()) -> dict[str, Json]:
    """A call of a message; of a custom tool where its name is among `custom`."""
    text = input_of(call, custom)
    if call.name in custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": text}}
    function = {"name": call.name, "arguments": text}
    return {"id": call.id, "type": "function", "function": function}


def call_chunks(
    index: int, call: ToolCall, custom: frozenset[str], pieces: Sequence[str]
) -> list[dict[str, Json]]:
    """A call in a stream: what heads it, then a fragment for each piece of what it is given."""
    kind, key = ("custom", "input") if call.name in custom else ("function", "arguments")
    head = {"index": index, "id": call.id, "type": kind, kind: {"name": call.name, key: ""}}
    return [head, *[{"index": index, kind: {key: piece}} for piece in pieces]]
