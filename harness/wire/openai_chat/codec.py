"""OpenAI's Chat Completions, and what others have made of it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.wire.codec import (
    QUIET,
    Answer,
    Asked,
    Cut,
    Failure,
    Garbled,
    Limit,
    Noise,
    whole,
)
from harness.wire.http import Headers, Request, Response, json_response
from harness.wire.openai_chat.assembly import Assembly
from harness.wire.openai_chat.decoder import ChatDecoder
from harness.wire.openai_chat.encoder import ChatEncoder
from harness.wire.openai_chat.history import thought_in
from harness.wire.openai_chat.replies import usage_of, written_reply
from harness.wire.openai_chat.requests import asked_of, written_body
from harness.wire.openai_failures import (
    body_of,
    written_error,
    written_headers,
)
from harness.wire.openai_words import SECRETS
from harness.wire.writing import bytes_of

_PATH = "/chat/completions"


class OpenAIChat:
    """The protocol behind ``/v1/chat/completions``."""

    name = "openai_chat"
    prefix = "chatcmpl-"
    secrets = SECRETS

    def is_for(self, request: Request) -> bool:
        """Whether it is a POST to a path that ends as this protocol's does."""
        return request.method == "POST" and request.path.endswith(_PATH)

    def read(self, request: Request) -> Asked:
        """What a request asks for."""
        return asked_of(request.body)

    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        """The request that asks for it; the options go in as they are."""
        sent: Headers = (("content-type", "application/json"),)
        if key:
            sent = (*sent, ("authorization", f"Bearer {key}"))
        return Request("POST", f"{base}/v1{_PATH}", sent, bytes_of(written_body(asked)))

    def answer(self, asked: Asked, answer: Answer, noise: Noise = QUIET) -> Response:
        """A whole reply."""
        return json_response(200, written_reply(asked, answer, noise))

    def encoder(
        self, asked: Asked, answer: Answer, *, cut: Cut = whole, noise: Noise = QUIET
    ) -> ChatEncoder:
        """What writes the reply as a stream."""
        return ChatEncoder(asked, answer, cut, noise)

    def stream_type(self) -> str:
        """The content type of a streamed reply."""
        return "text/event-stream; charset=utf-8"

    def headers(
        self,
        request_id: str,
        limits: Sequence[Limit] = (),
        *,
        now: float = 0,  # noqa: ARG002 - limits are told by spans
    ) -> Headers:
        """The request's id, and what is left of each limit."""
        return written_headers(request_id, limits)

    def failure(self, failure: Failure) -> Response:
        """A failure as a whole response."""
        return json_response(failure.status, {"error": written_error(failure)}, failure.headers)

    def read_answer(self, response: Response) -> Answer:
        """A whole reply, read."""
        body = body_of(response)
        choices = [each for each in body["choices"].items() if not each["index"].integer()]
        if not choices:
            raise Garbled("the reply has no choices; expected one")
        message = choices[0]["message"]
        answer = Assembly()
        answer.named(body)
        answer.thought.append(thought_in(message))
        for key, pieces in (("content", answer.said), ("refusal", answer.refusal)):
            if message.has(key):
                pieces.append(message[key].text())
        if message.has("tool_calls"):
            for index, call in enumerate(message["tool_calls"].items()):
                answer.call(call, index)
        if choices[0].has("finish_reason"):
            answer.reason = choices[0]["finish_reason"].text()
        if body.has("usage"):
            answer.usage = usage_of(body["usage"])
        return answer.whole()

    def decoder(self) -> ChatDecoder:
        """What reads a streamed reply."""
        return ChatDecoder()
