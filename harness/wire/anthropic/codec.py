"""Anthropic's Messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from harness.core.json_plain import loads
from harness.core.json_text import Json
from harness.core.messages import ModelRequest, Usage
from harness.wire.anthropic.blocks import block_of
from harness.wire.anthropic.decoder import MessagesDecoder
from harness.wire.anthropic.encoder import MessagesEncoder
from harness.wire.anthropic.failures import (
    failure_headers,
    garbled,
    limit_headers,
    refused,
    told_failure,
    written_failure,
)
from harness.wire.anthropic.replies import (
    answered,
    ending,
    first_usage,
    head,
    replied_block,
    spoken,
    strange,
    usage_of,
)
from harness.wire.anthropic.requests import (
    TAKEN,
    messages_of,
    schema_of,
    system_of,
    written_messages,
    written_schema,
)
from harness.wire.anthropic_words import NEWER, OLDER, is_own
from harness.wire.codec import (
    QUIET,
    Answer,
    Asked,
    Cut,
    Failure,
    Limit,
    Noise,
    ProviderError,
    Secrets,
    whole,
)
from harness.wire.http import Headers, Request, Response, json_response
from harness.wire.reading import Field, json_of
from harness.wire.writing import bytes_of

_PATH = "/v1/messages"
VERSION = "anthropic-version"
BETA = "anthropic-beta"
MAX_TOKENS = 4096
"""How long a reply may be where nobody says it: the provider must be told."""


_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Anthropic:
    """The protocol behind ``/v1/messages``.

    The options hold what else the body says, the headers ``anthropic-version`` and
    ``anthropic-beta``, and as ``tools`` those that the provider runs itself. In the neutral form
    prompt tokens hold the cached ones, reasoning that was redacted has a signature that begins with
    ``redacted_thinking:``, and blocks that it has no room for are left out. `created` is not told.
    """

    name = "anthropic"
    prefix = "msg_"
    secrets = Secrets(headers=frozenset({"x-api-key", "authorization"}))

    def is_for(self, request: Request) -> bool:
        """Whether it is a POST to a path that ends as this protocol's does."""
        return request.method == "POST" and request.path.endswith(_PATH)

    def read(self, request: Request) -> Asked:
        """What a request asks for."""
        version = _joined(request, VERSION)
        if version is None:
            raise refused("header is required", VERSION)
        if not _DATE.fullmatch(version):
            raise refused(f'"{version}" is not a valid version', VERSION)
        try:
            body = Field(json_of(request.body), "", refused)
        except ValueError:
            raise refused("The request body is not valid JSON", "") from None
        if not body.has("max_tokens"):
            raise body["max_tokens"].wrong("an integer")
        messages = [each for field in body["messages"].items() for each in messages_of(field)]
        given = list(body["tools"].items()) if body.has("tools") else []
        asked = ModelRequest(
            body["model"].text(),
            system_of(body["system"]),
            tuple(messages),
            tuple([tool for each in given if (tool := schema_of(each)) is not None]),
            body["max_tokens"].integer(),
            body["temperature"].number(),
        )
        options = {key: value for key, value in body.object().items() if key not in TAKEN}
        if foreign := [each.value for each in given if not is_own(each.value)]:
            options["tools"] = foreign
        options[VERSION] = version
        if (betas := _joined(request, BETA)) is not None:
            options[BETA] = betas
        return Asked(asked, body["stream"].flag(), options)

    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        """The request that asks for it."""
        request = asked.request
        options = dict(asked.options)
        version = options.pop(VERSION, OLDER)
        beta = options.pop(BETA, None)
        foreign = options.pop("tools", [])
        limit = MAX_TOKENS if request.max_tokens is None else request.max_tokens
        body: dict[str, Any] = {"model": request.model, "max_tokens": limit}
        if request.system:
            body["system"] = request.system
        body["messages"] = written_messages(request.messages)
        if tools := [*[written_schema(tool) for tool in request.tools], *foreign]:
            body["tools"] = tools
        if request.temperature is not None:
            body["temperature"] = request.temperature
        body |= options
        if asked.stream:
            body["stream"] = True
        sent: Headers = (("content-type", "application/json"), (VERSION, version))
        if beta is not None:
            sent = (*sent, (BETA, beta))
        if key:
            newer = ("authorization", f"Bearer {key}")
            sent = (*sent, newer if version >= NEWER else ("x-api-key", key))
        return Request("POST", f"{base}{_PATH}", sent, bytes_of(body))

    def answer(
        self,
        asked: Asked,  # noqa: ARG002 - nothing in it changes how this protocol answers
        answer: Answer,
        noise: Noise = QUIET,
    ) -> Response:
        """A whole reply."""
        usage = answer.usage or Usage()
        body = head(answer) | {
            "content": [replied_block(block) for block in spoken(answer.message)],
            **ending(answer),
            "usage": first_usage(usage, usage.completion_tokens),
        }
        return json_response(200, body | strange(noise))

    def encoder(
        self,
        asked: Asked,  # noqa: ARG002 - nothing in it changes how this protocol answers
        answer: Answer,
        *,
        cut: Cut = whole,
        noise: Noise = QUIET,
    ) -> MessagesEncoder:
        """What writes the reply as a stream."""
        return MessagesEncoder(answer, cut, noise)

    def stream_type(self) -> str:
        """The content type of a streamed reply."""
        return "text/event-stream; charset=utf-8"

    def headers(self, request_id: str, limits: Sequence[Limit] = (), *, now: float = 0) -> Headers:
        """What every response tells besides; a failure has a request's id already."""
        told = [header for limit in limits for header in limit_headers(limit, now)]
        return (("request-id", request_id), *told)

    def failure(self, failure: Failure) -> Response:
        """A failure as a whole response."""
        return json_response(failure.status, written_failure(failure), failure_headers(failure))

    def read_answer(self, response: Response) -> Answer:
        """A whole reply, read."""
        try:
            body: Json = loads(response.body.decode())
        except ValueError:
            body = None
        failed = isinstance(body, dict) and body.get("type") == "error"
        if response.status >= 400 or failed:
            raise ProviderError(told_failure(body, response.status, response.headers))
        told = Field(body, "", garbled)
        usage = usage_of(told["usage"]) if told.has("usage") else None
        return answered(told, map(block_of, told["content"].items()), told, usage)

    def decoder(self) -> MessagesDecoder:
        """What reads a streamed reply."""
        return MessagesDecoder()


def _joined(request: Request, header: str) -> str | None:
    """All values of a header as one, as servers have it; None without any."""
    values = [value for name, value in request.headers if name == header]
    return ",".join(values) if values else None
