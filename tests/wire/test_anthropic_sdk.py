"""What the vendor's own library makes of what is written, and what is read of what it sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anthropic
import httpx2
import pytest
from msgspec.structs import replace

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
from harness.core.reply import ReplyDone, ReplyPart, TextDelta, ThinkingDelta
from harness.wire import sse
from harness.wire.anthropic.codec import Anthropic
from harness.wire.anthropic_words import redacted
from harness.wire.codec import QUIET, Answer, Asked, Failure, Noise
from harness.wire.http import Request, Response, headers, retry_after
from harness.wire.strict.anthropic import RULES
from harness.wire.strict.rule import Case, Issued, refusal

CODEC = Anthropic()
CALLS = (ToolCall("toolu_1", "weather", {"city": "Zürich 😀"}), ToolCall("toolu_2", "clock", {}))
ANSWER = Answer(
    Message(
        "assistant",
        (Thinking("Let me see: é.", "EqQB+/=="), redacted("EmwK"), Text("Both."), *CALLS),
    ),
    Usage(12, 7, 19, 3, 2),
    "calls",
    None,
    "msg_1",
    "claude-x",
)
PARTS: list[ReplyPart] = [
    ThinkingDelta("Let me see: "),
    ThinkingDelta("é."),
    TextDelta("Bo"),
    TextDelta("th."),
    ReplyDone(ANSWER.message),
]
NOISY = Noise(obfuscation=True, pings=True, unknown=True)
TOOLS = [
    {"name": "weather", "description": "Look.", "input_schema": {"type": "object"}},
    {"name": "clock", "input_schema": {"type": "object"}},
]
BEGIN = {"model": "claude-x", "max_tokens": 99, "messages": [{"role": "user", "content": "Go"}]}


def fives(text: str) -> list[str]:
    return [text[at : at + 5] for at in range(0, len(text), 5)]


def per_frame(answer: Answer, parts: list[ReplyPart], noise: Noise = QUIET) -> list[bytes]:
    asked = Asked(ModelRequest("claude-x", "", ()), stream=True)
    encoder = CODEC.encoder(asked, answer, cut=fives, noise=noise)
    return [*[frame for part in parts for frame in encoder.part(part)], *encoder.end()]


FRAMES = per_frame(ANSWER, PARTS)
FRAMINGS = {
    "whole": [b"".join(FRAMES)],
    "per frame": FRAMES,
    "by byte": [bytes([byte]) for byte in b"".join(FRAMES)],
    "noisy": per_frame(ANSWER, PARTS, NOISY),
    "comments": [piece for frame in FRAMES for piece in (sse.comment("still here"), frame)],
    "crlf": [frame.replace(b"\n", b"\r\n") for frame in FRAMES],
}
framings = pytest.mark.parametrize("pieces", FRAMINGS.values(), ids=FRAMINGS)


class Provider:
    """Answers in memory what strict rules allow, and keeps what was asked."""

    def __init__(self, pieces: list[bytes], *instead: Response, noise: Noise = QUIET) -> None:
        self.asked: list[Asked] = []
        self.sent: list[Request] = []
        self._pieces = pieces
        self._noise = noise
        self._instead = list(instead)

    def sync(self, **options: Any) -> Any:
        transport = httpx2.MockTransport(lambda request: self._answer(request, self._now))
        client = httpx2.Client(transport=transport)
        return anthropic.Anthropic(http_client=client, **_settings(options))

    def asynchronous(self, **options: Any) -> Any:
        async def answer(request: Any) -> Any:
            return self._answer(request, self._later)

        client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        return anthropic.AsyncAnthropic(http_client=client, **_settings(options))

    def _answer(self, request: Any, stream: Callable[[], Any]) -> Any:
        sent = Request(
            request.method,
            str(request.url),
            headers(request.headers.multi_items()),
            request.content,
        )
        assert CODEC.is_for(sent)
        asked = CODEC.read(sent)
        self.sent.append(sent)
        self.asked.append(asked)
        refused = refusal(self._case(sent, asked), RULES, pedantic=True)
        if refused is not None:
            response = CODEC.failure(refused.failure)
        elif self._instead:
            response = self._instead.pop(0)
        elif asked.stream:
            told = [("content-type", CODEC.stream_type()), *CODEC.headers("req_1")]
            return httpx2.Response(200, headers=told, content=stream())
        else:
            response = CODEC.answer(asked, ANSWER, self._noise)
        return httpx2.Response(
            response.status, headers=list(response.headers), content=response.body
        )

    def _case(self, sent: Request, asked: Asked) -> Case:
        issued = Issued()
        issued.remember(ANSWER.message)
        betas = frozenset(asked.options.get("anthropic-beta", "").split(","))
        version = asked.options["anthropic-version"]
        return Case(json.loads(sent.body), version, issued, betas)

    def _now(self) -> Iterator[bytes]:
        yield from self._pieces

    async def _later(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    return {"api_key": "secret", "base_url": "http://fake", "max_retries": 0} | options


def whole(message: Any) -> Answer:
    """The answer that a message of the library's says."""
    return CODEC.read_answer(Response(200, (), json.dumps(message.to_dict()).encode()))


def check(message: Any) -> None:
    """The message is the one of the script, in the library's words too."""
    thinking, hidden, text, weather, clock = message.content
    assert (thinking.type, thinking.thinking) == ("thinking", "Let me see: é.")
    assert thinking.signature == "EqQB+/=="
    assert (hidden.type, hidden.data) == ("redacted_thinking", "EmwK")
    assert text.text == "Both."
    assert (weather.id, weather.name, weather.input) == ("toolu_1", "weather", CALLS[0].args)
    assert (clock.id, clock.name, clock.input) == ("toolu_2", "clock", {})
    assert message.stop_reason == "tool_use"
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (9, 3, 7)
    assert usage.output_tokens_details.thinking_tokens == 2
    assert whole(message) == ANSWER


def events(found: list[Any]) -> Answer:
    """The answer that raw events say."""
    decoder = CODEC.decoder()
    for event in found:
        decoder.feed(sse.frame(json.dumps(event.to_dict()), event.type))
    return decoder.end()


@framings
def test_a_stream_comes_out_as_scripted(pieces: list[bytes]) -> None:
    client = Provider(pieces).sync()
    with client.messages.stream(**BEGIN) as stream:
        text = "".join(stream.text_stream)
        check(stream.get_final_message())
    assert text == "Both."
    assert events(list(client.messages.create(**BEGIN, stream=True))) == ANSWER


@framings
def test_a_stream_comes_out_as_scripted_asynchronously(pieces: list[bytes]) -> None:
    async def ask() -> None:
        client = Provider(pieces).asynchronous()
        async with client.messages.stream(**BEGIN) as stream:
            kinds = [event.type async for event in stream]
            check(await stream.get_final_message())
        assert kinds.count("text") == kinds.count("thinking") == 2
        raw = [event async for event in await client.messages.create(**BEGIN, stream=True)]
        assert events(raw) == ANSWER

    asyncio.run(ask())


@pytest.mark.parametrize("noise", [QUIET, NOISY], ids=["quiet", "noisy"])
def test_a_whole_reply_comes_out_as_scripted(noise: Noise) -> None:
    provider = Provider([], noise=noise)

    async def ask() -> Any:
        return await provider.asynchronous().messages.create(**BEGIN)

    check(provider.sync().messages.create(**BEGIN))
    check(asyncio.run(ask()))
    trial = provider.sync().beta.messages.create(**BEGIN, betas=["one-2026"])
    assert whole(trial) == ANSWER
    assert provider.asked[-1].options["anthropic-beta"] == "one-2026"


def results(first: list[Any]) -> list[dict[str, Any]]:
    """A conversation that goes on, with the library's own blocks in it."""
    answered = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": True},
        {"type": "text", "text": "And now?"},
    ]
    return [
        *BEGIN["messages"],
        {"role": "assistant", "content": first},
        {"role": "user", "content": answered},
    ]


@pytest.mark.parametrize("streamed", [True, False])
def test_what_the_library_sends_is_read(streamed: bool) -> None:
    provider = Provider(FRAMES)
    client = provider.sync()
    if streamed:
        with client.messages.stream(**BEGIN) as stream:
            first = stream.get_final_message()
    else:
        first = client.messages.create(**BEGIN)
    more = BEGIN | {"messages": results(first.content)}
    client.messages.create(
        **more,
        system=[{"type": "text", "text": "Be brief."}],
        tools=TOOLS,
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        thinking={"type": "adaptive"},
        metadata={"user_id": "7"},
        stream=streamed,
        extra_headers={"anthropic-beta": "one"},
    )
    asked = provider.asked[1]
    failed = Message("tool", (), "toolu_2", is_error=True)
    history = (
        user("Go"),
        ANSWER.message,
        tool_result("toolu_1", "sunny"),
        failed,
        user("And now?"),
    )
    tools = (
        ToolSchema("weather", "Look.", {"type": "object"}),
        ToolSchema("clock", "", {"type": "object"}),
    )
    assert asked.request == ModelRequest("claude-x", "Be brief.", history, tools, 99)
    assert asked.stream == streamed
    assert asked.options == {
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive"},
        "metadata": {"user_id": "7"},
        "anthropic-version": provider.sent[1].header("anthropic-version"),
        "anthropic-beta": "one",
    }
    assert provider.sent[1].header("authorization") == "Bearer secret"


@pytest.mark.parametrize("words", ["", "Let me see: e."])
def test_reasoning_that_was_changed_is_refused(words: str) -> None:
    client = Provider([]).sync()
    first = client.messages.create(**BEGIN).content
    first[0].thinking = words
    with pytest.raises(anthropic.BadRequestError, match="cannot be modified") as raised:
        client.messages.create(**BEGIN | {"messages": results(first)})
    assert raised.value.type == "invalid_request_error"
    with pytest.raises(anthropic.BadRequestError, match="without `tool_result` blocks"):
        client.messages.create(**BEGIN | {"messages": results(first)[:2] + results(first)[:1]})


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure(400, "No."), "BadRequestError"),
        (Failure(401, "No."), "AuthenticationError"),
        (Failure(402, "No."), "PaymentRequiredError"),
        (Failure(404, "No."), "NotFoundError"),
        (Failure(413, "No."), "ContentTooLargeError"),
        (Failure(429, "No."), "RateLimitError"),
        (Failure(500, "No."), "InternalServerError"),
        (Failure(529, "No.", code="busy"), "OverloadedError"),
    ],
)
def test_a_failure_is_the_librarys_own(failure: Failure, kind: str) -> None:
    response = CODEC.failure(failure)
    with pytest.raises(anthropic.APIStatusError) as raised:
        Provider([], response).sync().messages.create(**BEGIN)
    error = raised.value
    assert isinstance(error, getattr(anthropic, kind))
    assert error.status_code == failure.status
    told = json.loads(response.body)
    assert (error.type, error.api_message) == (told["error"]["type"], "No.")
    assert error.request_id == told["request_id"]
    assert error.error_code == failure.code


def test_a_failure_that_passes_is_asked_again() -> None:
    soon = retry_after(0.001)
    failures = [CODEC.failure(Failure(529, "Busy.", headers=soon)) for _ in range(2)]
    provider = Provider(FRAMES, *failures)
    check(provider.sync(max_retries=2).messages.create(**BEGIN))
    retries = [request.header("x-stainless-retry-count") for request in provider.sent]
    assert retries == ["0", "1", "2"]
    once = Provider([], CODEC.failure(Failure(400, "No.")))
    with pytest.raises(anthropic.BadRequestError):
        once.sync(max_retries=2).messages.create(**BEGIN)
    assert len(once.sent) == 1


def test_a_failure_in_the_middle_has_a_good_status() -> None:
    encoder = CODEC.encoder(Asked(ModelRequest("m", "", ())), ANSWER)
    sent = [*encoder.part(PARTS[0]), *encoder.failure(Failure(529, "Overloaded"))]
    with (
        pytest.raises(anthropic.APIStatusError) as raised,
        Provider(sent).sync().messages.stream(**BEGIN) as stream,
    ):
        stream.get_final_message()
    assert not isinstance(raised.value, anthropic.InternalServerError)
    assert (raised.value.status_code, raised.value.type) == (200, "overloaded_error")


def test_a_stream_without_its_end_is_a_success_to_the_library() -> None:
    """Which is why the decoder tells of it."""
    with Provider(FRAMES[:-2]).sync().messages.stream(**BEGIN) as stream:
        message = stream.get_final_message()
    assert message.stop_reason is None
    assert len(message.content) == 5


def test_a_refusal_and_a_pause() -> None:
    refused = replace(ANSWER, stopped="refused", refusal="Not that.")
    done = [ReplyDone(ANSWER.message)]
    with Provider(per_frame(refused, done)).sync().messages.stream(**BEGIN) as stream:
        message = stream.get_final_message()
    assert message.stop_reason == message.stop_details.type == "refusal"
    assert message.stop_details.explanation == "Not that."
    paused = replace(ANSWER, stopped="paused")
    with Provider(per_frame(paused, done)).sync().messages.stream(**BEGIN) as stream:
        assert stream.get_final_message().stop_reason == "pause_turn"
