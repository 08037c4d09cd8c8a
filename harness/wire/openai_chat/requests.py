"""Requests of this protocol, read and written."""

from __future__ import annotations

from typing import Any

from harness.core.json_text import Json
from harness.core.messages import ModelRequest
from harness.wire.codec import Asked
from harness.wire.openai_chat.history import message_of, written_message
from harness.wire.openai_chat.tools import custom_names, schema_of, written_schema
from harness.wire.openai_failures import refused
from harness.wire.openai_words import leading_of
from harness.wire.reading import Field, json_of

_TAKEN = frozenset(
    ["model", "messages", "tools", "max_completion_tokens", "max_tokens", "temperature", "stream"]
)


def asked_of(text: bytes) -> Asked:
    """What a body asks for.

    The system and developer messages that begin it are the system prompt. All else that it holds
    is kept in the options.
    """
    try:
        body = Field(json_of(text), "", refused)
    except ValueError:
        raise refused("We could not parse the JSON body of your request.", None) from None
    if not body.has("model"):
        raise refused("you must provide a model parameter", None)
    messages = [message_of(each) for each in body["messages"].items()]
    leading = leading_of(messages)
    tools = [schema_of(each) for each in body["tools"].items()] if body.has("tools") else []
    limit = body["max_completion_tokens"].integer()
    old_limit = body["max_tokens"].integer()
    asked = ModelRequest(
        body["model"].text(),
        "\n\n".join([each.text for each in messages[:leading]]),
        tuple(messages[leading:]),
        tuple(tools),
        old_limit if limit is None else limit,
        body["temperature"].number(),
    )
    options = {key: value for key, value in body.object().items() if key not in _TAKEN}
    if [written_schema(tool) for tool in tools] != (body["tools"].value or []):
        options["tools"] = body["tools"].value
    return Asked(asked, body["stream"].flag(), options)


def written_body(asked: Asked) -> dict[str, Any]:
    """The body that asks for it; the options go in as they are."""
    request = asked.request
    custom = custom_names(asked.options)
    messages: list[Json] = [written_message(each, custom) for each in request.messages]
    if request.system:
        messages.insert(0, {"role": "system", "content": request.system})
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    if request.tools:
        body["tools"] = [written_schema(tool) for tool in request.tools]
    if request.max_tokens is not None:
        body["max_completion_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if asked.stream:
        body["stream"] = True
    return body | dict(asked.options)
