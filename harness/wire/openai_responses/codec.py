"""OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Sequence

from harness.wire.codec import QUIET, Answer, Asked, Cut, Failure, Limit, Noise, whole
from harness.wire.http import Headers, Request, Response, json_response
from harness.wire.openai_failures import body_of, written_error, written_headers
from harness.wire.openai_responses.decoder import ResponsesDecoder
from harness.wire.openai_responses.encoder import ResponsesEncoder
from harness.wire.openai_responses.failures import Failing
from harness.wire.openai_responses.replies import answered, written_reply
from harness.wire.openai_responses.requests import asked_of, written_body
from harness.wire.openai_words import SECRETS
from harness.wire.responses import Responses
from harness.wire.writing import bytes_of

_PATH = "/responses"


class OpenAIResponses:
    """The protocol behind ``/v1/responses``.

    A reply keeps the order of its blocks: each is an item. It cannot say `paused`; empty signatures
    and pictures are left out. `failing` is how its streams tell of failures.
    """

    name = "openai_responses"
    prefix = "resp_"
    secrets = SECRETS

    def __init__(self, failing: Failing = "nested") -> None:
        self._failing: Failing = failing

    def is_for(self, request: Request) -> bool:
        """Whether it is a POST to a path that ends as this protocol's does."""
        return request.method == "POST" and request.path.endswith(_PATH)

    def read(self, request: Request, responses: Responses | None = None) -> Asked:
        """What a request asks for.

        With the `responses` that a provider remembers, the conversation that the request refers to
        is in it: such a one is to be answered, not written again.
        """
        return asked_of(request.body, responses)

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
    ) -> ResponsesEncoder:
        """What writes the reply as a stream."""
        return ResponsesEncoder(asked, answer, cut, noise, self._failing)

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
        return answered(body_of(response), {})

    def decoder(self) -> ResponsesDecoder:
        """What reads a streamed reply."""
        return ResponsesDecoder()
