"""The provider's own library, fed in memory, understands what is written, and is understood."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import httpx2
import openai
import pytest
from msgspec.structs import replace

from harness.core.json_text import Json, loads
from harness.core.messages import (
    Message,
    ModelRequest,
    Text,
    Thinking,
    ToolCall,
    ToolSchema,
    Usage,
    tool_result,
    user,
)
from harness.core.reply import ReplyDone
from harness.fakes.parts import cut, stream_parts
from harness.fakes.script import Reply
from harness.wire import sse
from harness.wire.codec import QUIET, Answer, Asked, Failure, Limit, Noise
from harness.wire.http import Headers, Request, headers, retry_after, should_retry
from harness.wire.openai_chat.codec import OpenAIChat
from harness.wire.strict.openai_chat import DEEPSEEK, RULES
from harness.wire.strict.rule import Case, refusal

CODEC = OpenAIChat()
CALLS = (ToolCall("call_0", "weather", {"city": "Zürich"}), ToolCall("call_1", "clock", {}))
REPLY = Reply(think="Let me look.", say="Grüezi 漢字 😀!", usage=Usage(9, 5, 14, 2, 1))
MESSAGE = Message("assistant", (Thinking(REPLY.think), Text(REPLY.say), *CALLS))
ANSWER = Answer(MESSAGE, REPLY.usage, "calls", None, "chatcmpl-1", "m-2026", 1_700_000_000)
PARAMETERS: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = (ToolSchema("weather", "tells it", PARAMETERS), ToolSchema("clock"))
ASKED: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
    "tools": [
        {
            "type": "function",
            "function": {"name": "weather", "description": "tells it", "parameters": PARAMETERS},
        },
        {"type": "function", "function": {"name": "clock"}},
    ],
}
COUNTED: Json = {"include_usage": True}

Framing = Callable[[list[bytes]], Sequence[bytes]]

FRAMINGS: dict[str, tuple[Noise, Framing]] = {
    "whole": (Noise(), lambda frames: [b"".join(frames)]),
    "per frame": (Noise(), list),
    "per byte": (Noise(), lambda frames: [bytes([byte]) for byte in b"".join(frames)]),
    "noisy": (Noise(obfuscation=True, pings=True, unknown=True), list),
    "comments": (Noise(), lambda frames: [sse.comment("still here") + each for each in frames]),
    "CRLF": (Noise(), lambda frames: [each.replace(b"\n", b"\r\n") for each in frames]),
}


class Provider:
    """Answers what the library sends, and keeps how it was read."""

    def __init__(
        self, answer: Answer = ANSWER, noise: Noise = QUIET, framing: Framing = list
    ) -> None:
        self.answer = answer
        self.noise = noise
        self.framing = framing
        self.failures: list[Failure] = []
        self.after: Failure | None = None
        """What goes wrong after the text."""
        self.asked: list[Asked] = []
        self.bodies: list[Json] = []

    def client(self, **more: Any) -> Any:
        transport = httpx2.MockTransport(self.respond)
        return openai.OpenAI(
            api_key="k",
            base_url="http://provider.test/v1",
            http_client=httpx2.Client(transport=transport),
            **more,
        )

    def async_client(self, **more: Any) -> Any:
        transport = httpx2.MockTransport(self.respond_async)
        return openai.AsyncOpenAI(
            api_key="k",
            base_url="http://provider.test/v1",
            http_client=httpx2.AsyncClient(transport=transport),
            **more,
        )

    def respond(self, request: httpx2.Request) -> httpx2.Response:
        status, sent, pieces = self._respond(request)
        return httpx2.Response(status, headers=list(sent), content=iter(pieces))

    async def respond_async(self, request: httpx2.Request) -> httpx2.Response:
        async def content(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        status, sent, pieces = self._respond(request)
        return httpx2.Response(status, headers=list(sent), content=content(pieces))

    def _respond(self, sent: httpx2.Request) -> tuple[int, Headers, Sequence[bytes]]:
        request = Request(sent.method, str(sent.url), headers(sent.headers.items()), sent.read())
        assert CODEC.is_for(request)
        asked = CODEC.read(request)
        self.asked.append(asked)
        self.bodies.append(loads(request.body))
        if self.failures:
            response = CODEC.failure(self.failures.pop(0))
        elif asked.stream:
            kind = ("content-type", CODEC.stream_type())
            return 200, (kind, *CODEC.headers("req_1")), self.framing(list(self.frames(asked)))
        else:
            response = CODEC.answer(asked, self.answer, self.noise)
        return response.status, (*response.headers, *CODEC.headers("req_1")), [response.body]

    def frames(self, asked: Asked) -> Iterator[bytes]:
        encoder = CODEC.encoder(
            asked, self.answer, cut=lambda text: cut(text, 0, 3), noise=self.noise
        )
        for part in stream_parts(REPLY, self.answer.message, 2, None)[0]:
            if isinstance(part, ReplyDone) and self.after is not None:
                yield from encoder.failure(self.after)
                return
            yield from encoder.part(part)
        yield from encoder.end()


def read(completion: Any) -> Answer:
    """A completion of the library, as the codec reads it."""
    (choice,) = completion.choices
    message, usage = choice.message, completion.usage
    calls = [
        ToolCall(call.id, call.function.name, loads(call.function.arguments))
        for call in message.tool_calls
    ]
    assert [call.type for call in message.tool_calls] == ["function", "function"]
    assert (choice.finish_reason, message.role) == ("tool_calls", "assistant")
    content = (Thinking(message.reasoning_content), Text(message.content), *calls)
    counted = Usage(
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
        usage.prompt_tokens_details.cached_tokens,
        usage.completion_tokens_details.reasoning_tokens,
    )
    return Answer(
        Message("assistant", content),
        counted,
        "calls",
        message.refusal,
        completion.id,
        completion.model,
        completion.created,
    )


@pytest.fixture(params=list(FRAMINGS))
def provider(request: pytest.FixtureRequest) -> Provider:
    return Provider(ANSWER, *FRAMINGS[request.param])


def test_the_streaming_helper(provider: Provider) -> None:
    with provider.client() as client:
        manager = client.chat.completions.stream(**ASKED, stream_options=COUNTED)
        with manager as stream:
            kinds = {event.type for event in stream}
            assert read(stream.get_final_completion()) == ANSWER
    assert {"content.delta", "tool_calls.function.arguments.done"} <= kinds


def test_the_streaming_helper_of_the_asynchronous_client(provider: Provider) -> None:
    async def run() -> Any:
        async with provider.async_client() as client:
            manager = client.chat.completions.stream(**ASKED, stream_options=COUNTED)
            async with manager as stream:
                async for _ in stream:
                    pass
                return await stream.get_final_completion()

    assert read(asyncio.run(run())) == ANSWER


def state_of(chunks: Sequence[Any]) -> Answer:
    from openai.lib.streaming.chat import ChatCompletionStreamState

    state: Any = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(chunk)
    return read(state.get_final_completion())


def test_chunks(provider: Provider) -> None:
    with provider.client() as client:
        chunks = list(client.chat.completions.create(**ASKED, stream=True, stream_options=COUNTED))
    assert state_of(chunks) == ANSWER
    assert "".join([chunk.choices[0].delta.content or "" for chunk in chunks[:-1]]) == REPLY.say


def test_chunks_of_the_asynchronous_client(provider: Provider) -> None:
    async def run() -> list[Any]:
        async with provider.async_client() as client:
            stream = await client.chat.completions.create(
                **ASKED, stream=True, stream_options=COUNTED
            )
            return [chunk async for chunk in stream]

    assert state_of(asyncio.run(run())) == ANSWER


def test_whole_replies() -> None:
    loud = Provider(noise=Noise(obfuscation=True, pings=True, unknown=True))
    for provider in (Provider(), loud):

        async def run(provider: Provider = provider) -> Any:
            async with provider.async_client() as client:
                return await client.chat.completions.create(**ASKED)

        with provider.client() as client:
            completion = client.chat.completions.create(**ASKED)
        assert completion._request_id == "req_1"
        assert read(completion) == read(asyncio.run(run())) == ANSWER


def test_what_the_library_sends_is_read_the_same_in_every_way() -> None:
    provider = Provider()
    wanted = ModelRequest("m", "Be kind.", (user("Hi"),), TOOLS)
    with provider.client() as client:
        client.chat.completions.create(**ASKED)
        list(client.chat.completions.create(**ASKED, stream=True, n=1))
        with client.chat.completions.stream(**ASKED, stream_options=COUNTED) as stream:
            list(stream)
    whole, chunks, helper = provider.asked
    assert whole == Asked(wanted)
    assert chunks == Asked(wanted, True, {"n": 1})
    assert helper == Asked(wanted, True, {"stream_options": COUNTED})


@pytest.mark.parametrize("streamed", [False, True])
def test_its_own_messages_come_back_as_they_were_written(streamed: bool) -> None:
    provider = Provider()
    with provider.client() as client:
        if streamed:
            with client.chat.completions.stream(**ASKED) as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**ASKED).choices[0].message
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": f"{call.function.name} done"}
            for call in message.tool_calls
        ]
        later = ASKED | {"messages": [*ASKED["messages"], message, *results]}
        client.chat.completions.create(**later)
    wanted = (
        user("Hi"),
        MESSAGE,
        tool_result("call_0", "weather done"),
        tool_result("call_1", "clock done"),
    )
    assert provider.asked[-1].request == ModelRequest("m", "Be kind.", wanted, TOOLS)
    for rules in (RULES, DEEPSEEK):
        assert refusal(Case(provider.bodies[-1]), rules, pedantic=True) is None


def test_custom_tools() -> None:
    call = ToolCall("call_0", "shell", "ls -l")
    provider = Provider(replace(ANSWER, message=Message("assistant", (call,))))
    tools = [{"type": "custom", "custom": {"name": "shell"}}]
    with provider.client() as client:
        message = client.chat.completions.create(**ASKED | {"tools": tools}).choices[0].message
        assert (message.tool_calls[0].type, message.tool_calls[0].custom.input) == (
            "custom",
            "ls -l",
        )
        client.chat.completions.create(model="m", messages=[message], tools=tools)
    assert provider.asked[-1].request.messages == (Message("assistant", (call,)),)


def test_a_refusal() -> None:
    provider = Provider(replace(ANSWER, message=Message("assistant"), stopped="refused"))
    provider.answer = replace(provider.answer, refusal="I cannot help with that.")
    with provider.client() as client:
        message = client.chat.completions.create(**ASKED).choices[0].message
        assert (message.refusal, message.content) == ("I cannot help with that.", None)
        client.chat.completions.create(model="m", messages=[*ASKED["messages"], message])
    assert refusal(Case(provider.bodies[-1]), RULES, pedantic=True) is None
    said = Message("assistant", (Text("I cannot help with that."),))
    assert provider.asked[-1].request.messages[-1] == said


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (403, "PermissionDeniedError"),
        (404, "NotFoundError"),
        (409, "ConflictError"),
        (422, "UnprocessableEntityError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        (503, "InternalServerError"),
    ],
)
def test_failures_are_the_errors_that_they_stand_for(status: int, error: str) -> None:
    provider = Provider()
    provider.failures = [Failure(status, "no", "kind", "code", "param")]
    with (
        provider.client(max_retries=0) as client,
        pytest.raises(getattr(openai, error)) as raised,
    ):
        client.chat.completions.create(**ASKED)
    found = raised.value
    assert (found.status_code, found.request_id) == (status, "req_1")
    assert (found.type, found.code, found.param) == ("kind", "code", "param")
    assert found.body["message"] == "no"


@pytest.mark.parametrize(
    ("failure", "requests"),
    [
        (Failure(429, "slow", headers=retry_after(0.001)), 2),
        (Failure(429, "slow", headers=retry_after(1, "milliseconds")), 2),
        (Failure(429, "slow", headers=retry_after(1000)), 1),
        (Failure(429, "slow", headers=should_retry(False)), 1),
        (
            Failure(400, "odd", headers=(*should_retry(True), *retry_after(0.001))),
            2,
        ),
        (Failure(400, "odd"), 1),
    ],
)
def test_the_library_asks_again_as_it_is_told(failure: Failure, requests: int) -> None:
    provider = Provider()
    provider.failures = [failure]
    with provider.client() as client:
        if requests == 1:
            with pytest.raises(openai.APIStatusError):
                client.chat.completions.create(**ASKED)
        else:
            client.chat.completions.create(**ASKED)
    assert len(provider.asked) == requests


def test_the_three_ways_to_say_when_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.time.time", lambda: 1_700_000_000.0)
    with Provider().client() as client:
        for asks in (
            retry_after(30),
            retry_after(30, "milliseconds"),
            retry_after(30, "date", now=1_700_000_000),
        ):
            assert client._parse_retry_after_header(httpx2.Headers(list(asks))) == 30


def test_limits_are_there_to_be_read() -> None:
    limits = CODEC.headers("req_1", [Limit("tokens", 100, 3, 0.5)])
    provider = Provider()
    provider.failures = [Failure(429, "slow", headers=limits[1:])]
    with provider.client(max_retries=0) as client, pytest.raises(openai.RateLimitError) as raised:
        client.chat.completions.create(**ASKED)
    sent = raised.value.response.headers
    assert sent["x-ratelimit-remaining-tokens"] == "3"
    assert sent["x-ratelimit-reset-tokens"] == "500ms"


def test_a_failure_in_the_middle() -> None:
    provider = Provider()
    provider.after = Failure(429, "slow", "tokens", "rate_limit_exceeded")
    with provider.client() as client:
        stream = client.chat.completions.create(**ASKED, stream=True)
        with pytest.raises(openai.APIError, match="slow") as raised:
            list(stream)
    assert type(raised.value) is openai.APIError
    assert (raised.value.type, raised.value.code) == ("tokens", "rate_limit_exceeded")
    assert len(provider.asked) == 1


@pytest.mark.parametrize("rule", ["C2", "C3", "C5"])
def test_a_history_that_is_refused_is_an_error_of_the_library(rule: str) -> None:
    provider = Provider()
    with provider.client() as client:
        message = client.chat.completions.create(**ASKED).choices[0].message
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": "done"}
            for call in message.tool_calls
        ]
        history = {
            "C2": results,
            "C3": [message, results[1]],
            "C5": [message, *results, results[0]],
        }
        client.chat.completions.create(**ASKED | {"messages": history[rule]})
        refused = refusal(Case(provider.bodies[-1]), RULES)
        assert refused is not None
        assert refused.rule.id == rule
        provider.failures = [refused.failure]
        with pytest.raises(openai.BadRequestError) as raised:
            client.chat.completions.create(**ASKED | {"messages": history[rule]})
    assert raised.value.param == refused.failure.param
    assert raised.value.body["message"] == refused.failure.message
