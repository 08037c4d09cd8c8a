"""What OpenAI's own library makes of Responses, and what is read of what it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from msgspec.structs import replace

from harness.core.json_text import Json, dumps
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
from harness.wire import asked_by, refused_by, remember
from harness.wire.codec import QUIET, Answer, Asked, Failure, Noise
from harness.wire.http import Request, Response
from harness.wire.openai_responses.codec import OpenAIResponses
from harness.wire.openai_responses.failures import Failing
from harness.wire.strict.rule import Issued
from tests.wire.sdk_double import FRAMINGS, Framing, SdkDouble

CALLS = (ToolCall("call_0", "weather", {"city": "Zürich"}), ToolCall("call_1", "clock", {}))
REPLY = Reply(think="Let me look.", say="Grüezi 漢字 😀!", usage=Usage(9, 5, 14, 2, 1))
MESSAGE = Message("assistant", (Thinking(REPLY.think, "sealed"), Text(REPLY.say), *CALLS))
ANSWER = Answer(MESSAGE, REPLY.usage, "calls", None, "resp_1", "m-2026", 1_700_000_000)
PARAMETERS: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = (ToolSchema("weather", "tells it", PARAMETERS), ToolSchema("clock"))
ASKED: dict[str, Any] = {
    "model": "m",
    "instructions": "Be kind.",
    "input": "Hi",
    "tools": [
        {"type": "function", "name": each.name}
        | ({"description": each.description, "parameters": each.parameters} if n == 0 else {})
        for n, each in enumerate(TOOLS)
    ],
}
OUTPUTS: list[Json] = [
    {"type": "function_call_output", "call_id": call.id, "output": "done"} for call in CALLS
]
RESULTS = tuple([tool_result(call.id, "done") for call in CALLS])


class Provider(SdkDouble):
    """A provider that remembers what it said, and refuses what it does not like."""

    def __init__(
        self,
        answer: Answer = ANSWER,
        noise: Noise = QUIET,
        framing: Framing = list,
        failing: Failing = "nested",
    ) -> None:
        codec = OpenAIResponses(failing)
        self.issued = Issued()
        self.after: Failure | None = None
        super().__init__(
            codec,
            answer,
            lambda asked: list(self._streamed(asked)),
            noise=noise,
            framing=framing,
            judge=self._refused,
            read=lambda request: asked_by(codec, request, self.issued),
        )

    def client(self, **more: Any) -> openai.OpenAI:
        settings = {"api_key": "k", "base_url": "http://provider.test/v1"} | more
        return openai.OpenAI(http_client=self.http(), **settings)  # type: ignore[arg-type]

    def async_client(self) -> openai.AsyncOpenAI:
        http: Any = self.async_http()
        return openai.AsyncOpenAI(api_key="k", base_url="http://provider.test/v1", http_client=http)

    def _refused(self, sent: Request, asked: Asked) -> Failure | None:
        found = refused_by(self.codec.name, sent, self.issued, pedantic=True)
        if found is not None:
            return found.failure
        self.answer = replace(self.answer, id=f"resp_{len(self.sent)}")
        remember(self.codec, sent, asked, self.answer, self.issued)
        return None

    def _streamed(self, asked: Asked) -> Iterator[bytes]:
        encoder = self.codec.encoder(
            asked, self.answer, cut=lambda text: cut(text, 0, 3), noise=self.noise
        )
        for part in stream_parts(REPLY, self.answer.message, 2, None)[0]:
            if isinstance(part, ReplyDone) and self.after is not None:
                yield from encoder.failure(self.after)
                return
            yield from encoder.part(part)
        yield from encoder.end()


def read(response: Any) -> Answer:
    """A response of the library, as its own words say it."""
    thinking, said, *calls = response.output
    assert (thinking.type, said.type) == ("reasoning", "message")
    assert {call.type for call in calls} == {"function_call"}
    assert response.output_text == said.content[0].text == REPLY.say
    usage = response.usage
    counted = Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.input_tokens_details.cached_tokens,
        usage.output_tokens_details.reasoning_tokens,
    )
    assert counted == REPLY.usage
    found = OpenAIResponses().read_answer(
        Response(200, (), dumps(response.model_dump(mode="json")).encode())
    )
    return replace(found, id="resp_1")


@pytest.fixture(params=list(FRAMINGS))
def provider(request: pytest.FixtureRequest) -> Provider:
    return Provider(ANSWER, *FRAMINGS[request.param])


def test_the_streaming_helper(provider: Provider) -> None:
    with provider.client() as client, client.responses.stream(**ASKED) as stream:
        events = list(stream)
        assert read(stream.get_final_response()) == ANSWER
    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert "".join(deltas) == REPLY.say
    assert len(deltas) > 1


def test_the_streaming_helper_of_the_asynchronous_client(provider: Provider) -> None:
    async def run() -> Any:
        async with provider.async_client() as client, client.responses.stream(**ASKED) as stream:
            async for _ in stream:
                pass
            return await stream.get_final_response()

    assert read(asyncio.run(run())) == ANSWER


def check(events: list[Any]) -> None:
    known = [each for each in events if each.type != "response.x_new"]
    assert [each.type for each in known[:2]] == ["response.created", "response.in_progress"]
    assert [each.sequence_number for each in events] == list(range(len(events)))
    assert read(events[-1].response) == ANSWER
    given = [each for each in events if each.type == "response.function_call_arguments.delta"]
    for at, call in enumerate(('{"city": "Zürich"}', "{}"), 2):
        assert "".join([each.delta for each in given if each.output_index == at]) == call


def test_events(provider: Provider) -> None:
    with provider.client() as client:
        check(list(client.responses.create(**ASKED, stream=True)))


def test_events_of_the_asynchronous_client(provider: Provider) -> None:
    async def run() -> list[Any]:
        async with provider.async_client() as client:
            return [each async for each in await client.responses.create(**ASKED, stream=True)]

    check(asyncio.run(run()))


def test_whole_replies() -> None:
    for noise in (QUIET, Noise(obfuscation=True, pings=True, unknown=True)):

        async def run(provider: Provider) -> Any:
            async with provider.async_client() as client:
                return await client.responses.create(**ASKED)

        with Provider(noise=noise).client() as client:
            response = client.responses.create(**ASKED)
        assert response._request_id == "req_1"
        assert read(response) == read(asyncio.run(run(Provider(noise=noise)))) == ANSWER


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("store", [False, True])
def test_its_own_items_come_back(streamed: bool, store: bool) -> None:
    provider = Provider()
    more: dict[str, Any] = {"store": store, "include": ["reasoning.encrypted_content"]}
    with provider.client() as client:
        first: Any
        if streamed:
            with client.responses.stream(**ASKED, **more) as stream:
                first = stream.get_final_response()
        else:
            first = client.responses.create(**ASKED, **more)
        later: list[Any] = [{"role": "user", "content": "Hi"}, *first.output, *OUTPUTS]
        client.responses.create(**ASKED | {"input": later}, **more)
    wanted = ModelRequest("m", "Be kind.", (user("Hi"), MESSAGE, *RESULTS), TOOLS)
    assert provider.asked[-1] == Asked(wanted, False, more)


def test_a_conversation_goes_on_by_the_id_of_a_response() -> None:
    provider = Provider()
    with provider.client() as client:
        first: Any = client.responses.create(**ASKED)
        later = ASKED | {"input": OUTPUTS, "previous_response_id": first.id}
        second = client.responses.create(**later)
        assert second.previous_response_id == first.id
        wanted = (user("Hi"), MESSAGE, *RESULTS)
        assert provider.asked[-1].request.messages == wanted
        with pytest.raises(openai.BadRequestError, match="Duplicate item") as raised:
            client.responses.create(**later | {"input": [*first.output, *OUTPUTS]})
        assert raised.value.param == "input"
        with pytest.raises(openai.BadRequestError) as raised:
            client.responses.create(**later | {"previous_response_id": "resp_9"})
    assert (raised.value.code, raised.value.param) == (
        "previous_response_not_found",
        "previous_response_id",
    )


def test_a_failure_in_the_middle() -> None:
    failure = Failure(429, "slow", "tokens", "rate_limit_exceeded")
    provider = Provider()
    provider.after = failure
    with provider.client() as client, pytest.raises(openai.APIError, match="slow") as raised:
        list(client.responses.create(**ASKED, stream=True))
    assert (raised.value.type, raised.value.code) == ("tokens", "rate_limit_exceeded")
    for failing, kind in (("flat", "error"), ("failed", "response.failed")):
        provider = Provider(failing=failing)  # type: ignore[arg-type]
        provider.after = failure
        with provider.client() as client:
            last: Any = list(client.responses.create(**ASKED, stream=True))[-1]
        assert last.type == kind
        error = last if kind == "error" else last.response.error
        assert (error.code, error.message) == ("rate_limit_exceeded", "slow")


def test_a_reply_that_was_cut_off_is_no_success_of_the_helper() -> None:
    with (
        Provider(replace(ANSWER, stopped="length")).client() as client,
        client.responses.stream(**ASKED) as stream,
        pytest.raises(RuntimeError, match=r"response\.completed"),
    ):
        stream.get_final_response()


@pytest.mark.parametrize(("status", "error"), [(400, "BadRequestError"), (429, "RateLimitError")])
def test_failures_are_the_errors_that_they_stand_for(status: int, error: str) -> None:
    provider = Provider()
    provider.instead = [provider.codec.failure(Failure(status, "no", "kind", "code", "param"))]
    with (
        provider.client(max_retries=0) as client,
        pytest.raises(getattr(openai, error)) as raised,
    ):
        client.responses.create(**ASKED)
    found = raised.value
    assert (found.status_code, found.request_id) == (status, "req_1")
    assert (found.type, found.code, found.param) == ("kind", "code", "param")


def test_custom_tools_and_refusals() -> None:
    provider = Provider(replace(ANSWER, message=Message("assistant", (ToolCall("c", "sh", "ls"),))))
    tools: Any = [{"type": "custom", "name": "sh"}, {"type": "web_search"}]
    with provider.client() as client:
        with client.responses.stream(**ASKED | {"tools": tools}) as stream:
            (call,) = stream.get_final_response().output
        assert (call.type, call.input) == ("custom_tool_call", "ls")
        output = {"type": "custom_tool_call_output", "call_id": "c", "output": "a"}
        client.responses.create(**ASKED | {"tools": tools, "input": [call, output]})
    request = provider.asked[-1].request
    assert request.messages == (provider.answer.message, tool_result("c", "a"))
    assert request.tools == (ToolSchema("sh"),)
    refusing = Answer(Message("assistant"), stopped="refused", refusal="Not that.", id="resp_1")
    with Provider(refusing).client() as client, client.responses.stream(**ASKED) as stream:
        (said,) = stream.get_final_response().output
    assert said.content[0].refusal == "Not that."
