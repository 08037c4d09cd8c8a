"""Google's Gemini."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.core.json_plain import loads
from harness.core.json_text import Json
from harness.core.messages import ModelRequest
from harness.wire.codec import (
    QUIET,
    Answer,
    Asked,
    Cut,
    Failure,
    Garbled,
    Limit,
    Noise,
    ProviderError,
    Secrets,
    whole,
)
from harness.wire.gemini.decoder import GeminiDecoder, Reading
from harness.wire.gemini.encoder import GeminiEncoder
from harness.wire.gemini.failures import garbled, refused, told_failure, written_failure
from harness.wire.gemini.parts import member
from harness.wire.gemini.replies import written_reply
from harness.wire.gemini.requests import (
    foreign_tool,
    messages_of,
    schemas_of,
    text_in,
    written_contents,
    written_tool,
)
from harness.wire.gemini_words import asked_in, spelled
from harness.wire.http import Headers, Request, Response, json_response
from harness.wire.reading import Field, json_of
from harness.wire.writing import bytes_of

KEY = "x-goog-api-key"
_TAKEN = ("contents", "systemInstruction", "tools", "generationConfig")
_LIMIT, _TEMPERATURE = "maxOutputTokens", "temperature"


class Gemini:
    """The protocol behind ``/models/{model}:generateContent`` and ``:streamGenerateContent``, of
    the Gemini API and of Vertex AI, in any version.

    The model stands in the path. The options hold what else the body says, under
    ``generationConfig`` what else that says, and as ``tools`` those that the provider runs itself.
    In the neutral form completion tokens hold those of reasoning; how signatures are placed is
    written in `harness.wire.gemini.parts`. Models before the third generation give calls no ids.
    `created` is not told.
    """

    name = "gemini"
    prefix = ""
    secrets = Secrets(frozenset({KEY, "authorization"}), frozenset({"key"}))

    def is_for(self, request: Request) -> bool:
        """Whether it is a POST to a path that ends as this protocol's do."""
        return request.method == "POST" and asked_in(request.path) is not None

    def read(self, request: Request) -> Asked:
        """What a request asks for."""
        found = asked_in(request.path)
        if found is None:
            raise refused("expected a model and a verb at its end", "path")
        model, verb = found
        stream = verb == "streamGenerateContent"
        if stream and request.query.get("alt") != "sse":
            raise refused("streams are given as server-sent events only: ask with alt=sse", "alt")
        try:
            body = Field(json_of(request.body), "", refused)
        except ValueError:
            raise refused("Invalid JSON payload received.", "") from None
        contents = body["contents"].items() if body.has("contents") else ()
        tools = list(body["tools"].items()) if body.has("tools") else []
        config, (limit, temperature) = _config_of(member(body, "generationConfig"))
        asked = ModelRequest(
            model,
            text_in(member(body, "systemInstruction")),
            tuple(messages_of(contents)),
            tuple([schema for tool in tools for schema in schemas_of(tool)]),
            limit.integer(),
            temperature.number(),
        )
        taken = {spelled(body.object(), key) for key in _TAKEN}
        options = {key: value for key, value in body.object().items() if key not in taken}
        if config:
            options["generationConfig"] = config
        if foreign := [each for tool in tools if (each := foreign_tool(tool))]:
            options["tools"] = foreign
        return Asked(asked, stream, options)

    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        """The request that asks for it."""
        request = asked.request
        options = dict(asked.options)
        config = dict(options.pop("generationConfig", {}))
        tools = list(options.pop("tools", []))
        body: dict[str, Any] = {"contents": written_contents(request.messages)}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            declared = [written_tool(tool) for tool in request.tools]
            tools = [{"functionDeclarations": declared}, *tools]
        if tools:
            body["tools"] = tools
        if request.max_tokens is not None:
            config[_LIMIT] = request.max_tokens
        if request.temperature is not None:
            config[_TEMPERATURE] = request.temperature
        if config:
            body["generationConfig"] = config
        verb = "streamGenerateContent?alt=sse" if asked.stream else "generateContent"
        sent: Headers = (("content-type", "application/json"),)
        if key:
            sent = (*sent, (KEY, key))
        path = f"/v1beta/models/{request.model}:{verb}"
        return Request("POST", f"{base}{path}", sent, bytes_of(body | options))

    def answer(self, asked: Asked, answer: Answer, noise: Noise = QUIET) -> Response:
        """A whole reply."""
        return json_response(200, written_reply(asked, answer, noise))

    def encoder(
        self, asked: Asked, answer: Answer, *, cut: Cut = whole, noise: Noise = QUIET
    ) -> GeminiEncoder:
        """What writes the reply as a stream; arguments of calls come whole."""
        return GeminiEncoder(asked, answer, cut, noise)

    def stream_type(self) -> str:
        """The content type of a streamed reply."""
        return "text/event-stream"

    def headers(
        self,
        request_id: str,  # noqa: ARG002 - this provider tells neither ids of requests nor limits
        limits: Sequence[Limit] = (),  # noqa: ARG002
        *,
        now: float = 0,  # noqa: ARG002
    ) -> Headers:
        """What every response tells besides: nothing."""
        return ()

    def failure(self, failure: Failure) -> Response:
        """A failure as a whole response."""
        return json_response(failure.status, written_failure(failure), failure.headers)

    def read_answer(self, response: Response) -> Answer:
        """A whole reply, read."""
        try:
            body: Json = loads(response.body.decode())
        except ValueError:
            body = None
        if response.status >= 400 or (isinstance(body, dict) and "error" in body):
            raise ProviderError(told_failure(body, response.status, response.headers))
        told = Field(body, "", garbled)
        reading = Reading()
        for _ in reading.take(told):
            pass
        if not reading.over and not told.has("candidates"):
            raise Garbled("the reply has no candidates; expected one")
        return reading.whole()

    def decoder(self) -> GeminiDecoder:
        """What reads a streamed reply."""
        return GeminiDecoder()


def _config_of(field: Field) -> tuple[dict[str, Json], tuple[Field, Field]]:
    """What a configuration says: the limit of tokens and the temperature apart from the rest."""
    config = field if field.value is not None else Field({}, field.place, refused)
    found = member(config, _LIMIT), member(config, _TEMPERATURE)
    taken = {spelled(config.object(), key) for key in (_LIMIT, _TEMPERATURE)}
    rest = {key: value for key, value in config.object().items() if key not in taken}
    return rest, found
