"""Requests of this protocol, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.core.json_text import Json
from harness.core.messages import ModelRequest, ToolSchema
from harness.wire.codec import Asked
from harness.wire.openai_responses.failures import refused
from harness.wire.openai_responses.items import messages_of, written_items
from harness.wire.openai_words import leading_of
from harness.wire.reading import Field, json_of
from harness.wire.responses import Item, Responses

_TAKEN = frozenset(
    ["model", "instructions", "input", "tools", "max_output_tokens", "temperature", "stream"]
)
PREVIOUS = "previous_response_id"


def asked_of(text: bytes, responses: Responses | None) -> Asked:
    """What a body asks for, with the conversation that it refers to.

    The instructions, and the system and developer messages that begin the conversation, are the
    system prompt. All else that the body holds is kept in the options.
    """
    try:
        body = Field(json_of(text), "", refused)
    except ValueError:
        raise refused("We could not parse the JSON body of your request.", None) from None
    model = body["model"].text()
    messages = messages_of(_items(body, responses))
    leading = leading_of(messages)
    system = [body["instructions"].text()] if body.has("instructions") else []
    given = body["tools"].items() if body.has("tools") else ()
    tools = [tool for each in given if (tool := _schema_of(each)) is not None]
    asked = ModelRequest(
        model,
        "\n\n".join([*system, *[each.text for each in messages[:leading]]]),
        tuple(messages[leading:]),
        tuple(tools),
        body["max_output_tokens"].integer(),
        body["temperature"].number(),
    )
    options = {key: value for key, value in body.object().items() if key not in _TAKEN}
    if [written_schema(tool) for tool in tools] != (body["tools"].value or []):
        options["tools"] = body["tools"].value
    return Asked(asked, body["stream"].flag(), options)


def _items(body: Field, responses: Responses | None) -> list[Field]:
    """The items of the whole conversation, as far as it is known."""
    before: list[Item] = []
    previous = body[PREVIOUS].text() if body.has(PREVIOUS) else None
    if responses is not None and previous is not None:
        before = responses.chain(previous) or []
    given = body["input"]
    if isinstance(given.value, str):
        own = [Field({"role": "user", "content": given.value}, "input", refused)]
    else:
        own = [*(given.items() if body.has("input") or not before else ())]
    if responses is not None:
        own = [_resolved(field, responses) for field in own]
    return [*[Field(item, "input", refused) for item in before], *own]


def _resolved(field: Field, responses: Responses) -> Field:
    """An item, in place of what only refers to it."""
    found = responses.resolved(field.object())
    return field if found is None else Field(found, field.place, refused)


def written_body(asked: Asked) -> dict[str, Any]:
    """The body that asks for it; the options go in as they are."""
    request = asked.request
    custom = custom_names(asked.options)
    calls = [call for message in request.messages for call in message.calls]
    called = frozenset([call.id for call in calls if call.name in custom])
    items = [
        item for message in request.messages for item in written_items(message, custom, called)
    ]
    body: dict[str, Any] = {"model": request.model, "input": items}
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [written_schema(tool) for tool in request.tools]
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if asked.stream:
        body["stream"] = True
    return body | dict(asked.options)


def _schema_of(field: Field) -> ToolSchema | None:
    """A tool of the client's; None for one that the provider runs itself."""
    if field["type"].text() not in ("function", "custom"):
        return None
    described = field["description"].text() if field.has("description") else ""
    parameters = field["parameters"].object() if field.has("parameters") else None
    return ToolSchema(field["name"].text(), described, parameters)


def written_schema(tool: ToolSchema) -> dict[str, Json]:
    """A tool of a request, written as a function."""
    written: dict[str, Json] = {"type": "function", "name": tool.name}
    if tool.description:
        written["description"] = tool.description
    if tool.parameters is not None:
        written["parameters"] = tool.parameters
    return written


def custom_names(options: Mapping[str, Json]) -> frozenset[str]:
    """The names of the custom tools in a request that was read."""
    tools: list[Any] = options.get("tools") or []
    return frozenset([tool["name"] for tool in tools if tool["type"] == "custom"])
