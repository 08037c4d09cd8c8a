"""A provider's model over HTTP: what is asked, what comes, what is said where nothing does."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx2
import pytest

from harness.core.messages import (
    Message,
    ModelRequest,
    Text,
    Thinking,
    ToolCall,
    Usage,
    assistant,
    user,
)
from harness.core.ports import ProviderFailed
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.transport.model import HttpModel, SyncHttpModel
from harness.wire import CODECS
from harness.wire.codec import Answer, Asked, Codec, Failure
from harness.wire.http import Request, headers

CHAT = CODECS[0]
KEY = "sk-secret"
ASK = ModelRequest("gpt-x", "Be kind.", (user("Hi"),))
SAID = Message("assistant", (Thinking("Hm.", "sig"), Text("So."), ToolCall("c1", "look", {})))
ANSWER = Answer(SAID, Usage(3, 4, 7), "calls", id="r1", model="gpt-x")


def frames(codec: Codec, answer: Answer, *, end: bool = True) -> list[bytes]:
    """A reply as a stream; without its `end`, it breaks off before that."""
    encoder = codec.encoder(Asked(ASK, stream=True, options=_usage(codec)), answer)
    parts: list[ReplyPart] = [ThinkingDelta("Hm."), TextDelta("So.")]
    sent = [frame for part in parts for frame in encoder.part(part)]
    if end:
        sent += [*encoder.part(ReplyDone(answer.message)), *encoder.end()]
    return sent


def _usage(codec: Codec) -> dict[str, Any]:
    return {"stream_options": {"include_usage": True}} if codec is CHAT else {}


class Sends(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A body in chunks, and the error at its end."""

    def __init__(self, chunks: list[bytes], error: Exception | None = None) -> None:
        self.chunks = chunks
        self.error = error
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        yield from self.chunks
        if self.error is not None:
            raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.closed += 1


def read_of(request: httpx2.Request) -> Request:
    sent = headers(request.headers.multi_items())
    return Request(request.method, str(request.url), sent, request.content)


Handler = Callable[[httpx2.Request], httpx2.Response]


def stream_of(codec: Codec, body: Sends) -> Handler:
    kind = {"content-type": codec.stream_type()}
    return lambda _request: httpx2.Response(200, headers=kind, stream=body)


class Asks:
    """Asks a model in one of two ways, and gives what came."""

    def __init__(self, *, sync: bool) -> None:
        self.sync = sync

    def __call__(
        self, handler: Handler, codec: Codec = CHAT, request: ModelRequest = ASK, **options: Any
    ) -> list[ReplyPart]:
        transport = httpx2.MockTransport(handler)
        if self.sync:
            client = httpx2.Client(transport=transport)
            return [
                *SyncHttpModel(codec, "http://p.test", KEY, client, **options).generate(request)
            ]

        async def ask() -> list[ReplyPart]:
            client = httpx2.AsyncClient(transport=transport)
            model = HttpModel(codec, "http://p.test/", KEY, client, **options)
            return [part async for part in await model.generate(request)]

        return asyncio.run(ask())


@pytest.fixture(params=[False, True], ids=["async", "sync"])
def ask(request: pytest.FixtureRequest) -> Asks:
    return Asks(sync=request.param)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_reply_comes_in_parts(ask: Asks, codec: Codec, stream: bool) -> None:
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if stream:
            return stream_of(codec, Sends(frames(codec, ANSWER)))(request)
        whole = codec.answer(Asked(ASK), ANSWER)
        return httpx2.Response(whole.status, headers=list(whole.headers), content=whole.body)

    parts = ask(handler, codec, stream=stream)
    (done,) = [part for part in parts if isinstance(part, ReplyDone)]
    assert parts[-1] == done
    assert done.message.text == "So."
    assert [call.name for call in done.message.calls] == ["look"]
    assert "".join([part.text for part in parts if isinstance(part, TextDelta)]) == "So."
    assert "".join([part.text for part in parts if isinstance(part, ThinkingDelta)]) == "Hm."
    (usage,) = [part.usage for part in parts if isinstance(part, UsageReport)]
    assert (usage.prompt_tokens, usage.completion_tokens) == (3, 4)
    (request,) = seen
    asked = codec.read(read_of(request))
    assert asked.stream is stream
    assert asked.request.system == "Be kind."
    assert asked.request.messages == (user("Hi"),)


def test_a_compressed_reply_is_read(ask: Asks) -> None:
    body = gzip.compress(b"".join(frames(CHAT, ANSWER)))
    headers = {"content-type": CHAT.stream_type(), "content-encoding": "gzip"}
    parts = ask(lambda _: httpx2.Response(200, headers=headers, content=body))
    assert isinstance(parts[-1], ReplyDone)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_refused_request_says_why(ask: Asks, codec: Codec) -> None:
    told = codec.failure(Failure(429, f"slow down, {KEY}"))

    def handler(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(told.status, headers=list(told.headers), content=told.body)

    with pytest.raises(ProviderFailed) as caught:
        ask(handler, codec)
    said = str(caught.value)
    assert said.startswith(f"{codec.name} answered 429 ")
    assert said.endswith(": slow down, [key]")


def test_what_is_no_answer_of_the_protocol(ask: Asks) -> None:
    with pytest.raises(ProviderFailed, match=r"^openai_chat answered 502: status 502$"):
        ask(lambda _: httpx2.Response(502, text="<html>"))
    with pytest.raises(ProviderFailed, match=r"^openai_chat answered 200 with what is no reply: "):
        ask(lambda _: httpx2.Response(200, json=[1]))
    with pytest.raises(ProviderFailed, match=r"no reply: a chunk is no JSON"):
        ask(stream_of(CHAT, Sends([b"data: {\n\n"])))


def test_an_error_in_a_whole_answer(ask: Asks) -> None:
    error = {"error": {"message": "overloaded", "type": "server_error"}}
    with pytest.raises(ProviderFailed, match=r"^openai_chat answered 200 server_error: overloaded"):
        ask(lambda _: httpx2.Response(200, json=error))


def test_an_error_in_a_stream_is_reported(ask: Asks) -> None:
    body = Sends([*frames(CHAT, ANSWER, end=False), b'data: {"error": {"message": "over"}}\n\n'])
    parts = ask(stream_of(CHAT, body))
    assert parts[-1] == ReplyFailed("stream", "openai_chat answered 200: over")
    assert body.closed


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_stream_that_breaks_off_is_no_reply(ask: Asks, codec: Codec) -> None:
    parts = ask(stream_of(codec, Sends(frames(codec, ANSWER, end=False))), codec)
    assert not any(isinstance(part, ReplyDone | ReplyFailed) for part in parts)
    assert TextDelta("So.") in parts


def test_a_connection_that_breaks_is_a_failure(ask: Asks) -> None:
    def refused(_request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no route")

    with pytest.raises(ProviderFailed) as caught:
        ask(refused)
    assert str(caught.value) == "the connection to openai_chat failed: ConnectError: no route"
    assert caught.value.__context__ is None
    body = Sends(frames(CHAT, ANSWER, end=False), httpx2.ReadError(""))
    with pytest.raises(ProviderFailed, match=r"ReadError: no more is known$") as caught:
        ask(stream_of(CHAT, body))
    assert caught.value.__context__ is None
    assert body.closed


@pytest.mark.parametrize("stopped", ["length", "filtered"])
def test_a_reply_that_was_cut_off_is_interrupted(ask: Asks, stopped: Any) -> None:
    cut = Answer(assistant("So."), None, stopped)
    encoder = CHAT.encoder(Asked(ASK, stream=True), cut)
    sent = [*encoder.part(TextDelta("So.")), *encoder.part(ReplyDone(cut.message)), *encoder.end()]
    assert ask(stream_of(CHAT, Sends(sent))) == [TextDelta("So."), ReplyInterrupted()]


def test_system_messages_that_lead_belong_to_the_prompt(ask: Asks) -> None:
    seen: list[Any] = []
    led = ModelRequest("m", "One.", (Message("system", (Text("Two."),)), user("Hi")), (), None, 0.5)

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(400)

    for codec in CODECS:
        with pytest.raises(ProviderFailed):
            ask(handler, codec, led)
        request = seen.pop()
        asked = codec.read(read_of(request)).request
        assert asked.system == "One.\n\nTwo."
        assert asked.messages == (user("Hi"),)
        assert asked.temperature == (None if codec.name == "anthropic" else 0.5)


def test_options_of_the_user_are_sent_as_they_are(ask: Asks) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        assert b'"seed": 7' in request.content
        assert b"include_usage" not in request.content
        return httpx2.Response(400)

    with pytest.raises(ProviderFailed):
        ask(handler, options={"seed": 7, "stream_options": {}})


def test_a_reply_is_left_early() -> None:
    body = Sends(frames(CHAT, ANSWER))

    async def leave() -> None:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(stream_of(CHAT, body)))
        reply = await HttpModel(CHAT, "http://p.test", KEY, client).generate(ASK)
        assert await anext(reply) == ThinkingDelta("Hm.")
        await reply.aclose()
        assert [part async for part in reply] == []

    asyncio.run(leave())
    assert body.closed
    body = Sends(frames(CHAT, ANSWER))
    client = httpx2.Client(transport=httpx2.MockTransport(stream_of(CHAT, body)))
    reply = SyncHttpModel(CHAT, "http://p.test", KEY, client).generate(ASK)
    assert next(reply) == ThinkingDelta("Hm.")
    reply.close()
    assert [*reply] == []
    assert body.closed


def test_a_cancel_closes_the_reply() -> None:
    closed: list[bool] = []

    class Hangs(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield frames(CHAT, ANSWER)[0]
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            closed.append(True)

    kind = {"content-type": CHAT.stream_type()}

    async def cancel(*, by_close: bool) -> None:
        transport = httpx2.MockTransport(
            lambda _: httpx2.Response(200, headers=kind, stream=Hangs())
        )
        model = HttpModel(CHAT, "http://p.test", "", httpx2.AsyncClient(transport=transport))
        reply = await model.generate(ASK)

        async def read() -> None:
            async for _part in reply:
                pass

        task = asyncio.create_task(read())
        for _ in range(5):
            await asyncio.sleep(0)
        if by_close:  # another task closes what this one reads
            await reply.aclose()
            assert closed
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed

    asyncio.run(cancel(by_close=False))
    closed.clear()
    asyncio.run(cancel(by_close=True))


def test_who_makes_a_client_closes_it() -> None:
    async def closes() -> None:
        mine = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: httpx2.Response(400)))
        await HttpModel(CHAT, "http://p.test", "", mine).aclose()
        assert not mine.is_closed
        own = HttpModel(CHAT, "http://p.test")
        await own.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await own.generate(ASK)

    asyncio.run(closes())
    mine = httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(400)))
    SyncHttpModel(CHAT, "http://p.test", "", mine).close()
    assert not mine.is_closed
    own = SyncHttpModel(CHAT, "http://p.test")
    own.close()
    with pytest.raises(RuntimeError, match="closed"):
        own.generate(ASK)


def test_nothing_shows_the_key() -> None:
    assert repr(SyncHttpModel(CHAT, "http://p.test/", KEY, httpx2.Client())) == (
        "<SyncHttpModel openai_chat at http://p.test>"
    )


def test_a_signature_without_words_stands_before_the_first_call_in_gemini() -> None:
    bodies: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        bodies.append(request.content.decode())
        return httpx2.Response(400)

    gemini = next(codec for codec in CODECS if codec.name == "gemini")
    said = Message("assistant", (Thinking("", "c2ln"), Text("So."), ToolCall("c1", "look", {})))
    asked = ModelRequest("gemini-x", "", (user("Hi"), said))
    with pytest.raises(ProviderFailed):
        Asks(sync=True)(handler, gemini, asked)
    assert bodies[0].index('"So."') < bodies[0].index("thoughtSignature")
