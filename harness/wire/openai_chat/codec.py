"""OpenAI's Chat Completions, and what others have made of it."""

from __future__ import annotations

from typing import Any

from harness.core.messages import ModelRequest, Usage
from harness.wire.codec import (
    QUIET,
    Answer,
    Asked,
    Cut,
    Failure,
    Garbled,
    Noise,
    ProviderError,
    Secrets,
    whole,
)
from harness.wire.http import Headers, Request, Response, json_response
from harness.wire.openai_chat.decoder import Assembly, ChatDecoder
from harness.wire.openai_chat.encoder import ChatEncoder
from harness.wire.openai_chat.failures import garbled, refused, told_failure, written_error
from harness.wire.openai_chat.replies import (
    head,
    reason_of,
    strange,
    thought_of,
    usage_of,
    written_call,
    written_usage,
)
from harness.wire.openai_chat.requests import (
    TAKEN,
    message_of,
    schema_of,
    written_messages,
    written_schema,
)
from harness.wire.reading import Field, json_of
from harness.wire.writing import bytes_of

_PATH = "/chat/completions"


class OpenAIChat:
    """The protocol behind ``/v1/chat/completions``."""

    name = "openai_chat"
    secrets = Secrets(headers=frozenset({"authorization", "api-key", "openai-organization"}))

    def is_for(self, request: Request) -> bool:
        """Whether it is a POST to a path that ends as this protocol's does."""
        return request.method == "POST" and request.path.endswith(_PATH)

    def read(self, request: Request) -> Asked:
        """What a request asks for."""
        try:
            body = Field(json_of(request.body), "", refused)
        except ValueError:
            raise refused("We could not parse the JSON body of your request.", None) from None
        if not body.has("model"):
            raise refused("you must provide a model parameter", None)
        if "messages" not in body.object():
            raise refused(
                "Missing required parameter: 'messages'.", "messages", "missing_required_parameter"
            )
        messages = [message_of(each) for each in body["messages"].items()]
        leading = 0
        while leading < len(messages) and messages[leading].role == "system":
            leading += 1
        tools = [schema_of(each) for each in body["tools"].items()] if body.has("tools") else []
        limit = body["max_completion_tokens"].integer()
        asked = ModelRequest(
            body["model"].text(),
            "\n\n".join([each.text for each in messages[:leading]]),
            tuple(messages[leading:]),
            tuple(tools),
            body["max_tokens"].integer() if limit is None else limit,
            body["temperature"].number(),
        )
        rest = {key: value for key, value in body.object().items() if key not in TAKEN}
        return Asked(asked, body["stream"].flag(), rest)

    def write(self, asked: Asked, *, base: str = "", key: str = "") -> Request:
        """The request that asks for it; the options go in as they are."""
        request = asked.request
        body: dict[str, Any] = {"model": request.model, "messages": written_messages(request)}
        if request.tools:
            body["tools"] = [written_schema(tool) for tool in request.tools]
        if request.max_tokens is not None:
            body["max_completion_tokens"] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        body.update(asked.options)
        if asked.stream:
            body["stream"] = True
            body.setdefault("stream_options", {"include_usage": True})
        sent: Headers = (("content-type", "application/json"),)
        if key:
            sent = (*sent, ("authorization", f"Bearer {key}"))
        return Request("POST", f"{base}/v1{_PATH}", sent, bytes_of(body))

    def answer(self, asked: Asked, answer: Answer, noise: Noise = QUIET) -> Response:
        """A whole reply."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": answer.message.text or None,
            "refusal": answer.refusal,
            "annotations": [],
        }
        thought = thought_of(answer.message)
        if thought:
            message["reasoning_content"] = thought
        calls = answer.message.calls
        if calls:
            message["tool_calls"] = [written_call(call) for call in calls]
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": reason_of(asked, answer),
        }
        body = head(answer, "chat.completion") | {
            "choices": [choice],
            "usage": written_usage(answer.usage or Usage()),
        }
        return json_response(200, body | strange(noise))

    def encoder(
        self, asked: Asked, answer: Answer, *, cut: Cut = whole, noise: Noise = QUIET
    ) -> ChatEncoder:
        """What writes the reply as a stream."""
        return ChatEncoder(asked, answer, cut, noise)

    def stream_type(self) -> str:
        """The content type of a streamed reply."""
        return "text/event-stream; charset=utf-8"

    def failure(self, failure: Failure) -> Response:
        """A failure as a whole response."""
        return json_response(failure.status, {"error": written_error(failure)})

    def read_answer(self, response: Response) -> Answer:
        """A whole reply, read."""
        body = body_of(response)
        choice = body["choices"].items()
        first = next(iter(choice), None)
        if first is None:
            raise Garbled("the reply has no choices; expected one")
        message = first["message"]
        answer = Assembly(body)
        if message.has("reasoning_content"):
            answer.thought.append(message["reasoning_content"].text())
        if message.has("content"):
            answer.said.append(message["content"].text())
        if message.has("refusal"):
            answer.refusal.append(message["refusal"].text())
        if message.has("tool_calls"):
            for index, call in enumerate(message["tool_calls"].items()):
                answer.call(Field({**call.object(), "index": index}, call.place, garbled))
        answer.finish(first["finish_reason"].value)
        if body.has("usage"):
            answer.usage = usage_of(body["usage"])
        return answer.whole()

    def decoder(self) -> ChatDecoder:
        """What reads a streamed reply."""
        return ChatDecoder()


def body_of(response: Response) -> Field:
    try:
        body = Field(json_of(response.body), "", garbled)
    except ValueError:
        body = Field(None, "", garbled)
    if response.status >= 400 or (isinstance(body.value, dict) and body.has("error")):
        told = body.value.get("error") if isinstance(body.value, dict) else None
        raise ProviderError(told_failure(told, response.status))
    return body
