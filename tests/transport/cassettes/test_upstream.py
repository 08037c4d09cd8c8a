"""Requests that go on to a provider: what they say there, and how its answers come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import httpx2
import pytest

from harness.core.errors import HarnessError
from harness.transport.cassettes.upstream import Upstream, forwarded, proxied
from harness.transport.exchange import Break, Broken, Exchange, Whole
from harness.transport.homes import HOMES, homes_in
from harness.transport.journal import Journal
from harness.transport.server import Server
from harness.wire.http import Headers, Request, Response

Provider = Callable[[Request], Awaitable[Exchange]]


def in_a_loop(test: Callable[..., Any]) -> Callable[..., None]:
    """A test that is a coroutine, in an event loop of its own."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


class Stream:
    """A stream of which each chunk goes out when the test lets it, and then an end, or none."""

    status = 200
    headers: Headers = (
        ("content-type", "text/event-stream"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
    )
    streamed = True
    place = ""
    rule = ""

    def __init__(self, chunks: asyncio.Queue[bytes], how: Break | None = None) -> None:
        self._chunks = chunks
        self._how = how
        self.closed = asyncio.Event()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._chunks.get()
        if chunk:
            return chunk
        if self._how is not None:
            raise Broken(self._how, "as the test says")
        raise StopAsyncIteration

    def ready(self) -> None: ...

    async def aclose(self) -> None:
        self.closed.set()


@asynccontextmanager
async def through(provider: Provider) -> AsyncIterator[tuple[httpx2.AsyncClient, Upstream]]:
    """A client that is pointed to a proxy before a provider, both on this machine."""
    behind = Server(provider, Journal(lambda: 0))
    await behind.start()
    homes = homes_in({}, [f"openai={behind.url}/base/v1", f"anthropic={behind.url}"])
    async with httpx2.AsyncClient() as outgoing:
        upstream = Upstream(outgoing, homes)
        proxy = Server(upstream.answer, Journal(lambda: 0))
        await proxy.start()
        try:
            base = proxied(proxy.url, homes)["OPENAI_BASE_URL"]
            async with httpx2.AsyncClient(base_url=base) as client:
                yield client, upstream
        finally:
            await proxy.close()
            await behind.close()


@in_a_loop
async def test_a_request_goes_on_and_its_answer_comes_back() -> None:
    seen: list[Request] = []

    async def provider(request: Request) -> Exchange:
        seen.append(request)
        return Whole(
            Response(201, (("x-request-id", "r1"), ("content-type", "text/plain")), b"yes")
        )

    async with through(provider) as (client, _upstream):
        answer = await client.post(
            "/models?limit=2",
            content=b"body",
            headers={"authorization": "Bearer sk-mine", "te": "x"},
        )
    assert (answer.status_code, answer.text) == (201, "yes")
    assert (answer.headers["x-request-id"], answer.headers["content-length"]) == ("r1", "3")
    (request,) = seen
    assert (request.method, request.url, request.body) == (
        "POST",
        "/base/v1/models?limit=2",
        b"body",
    )
    assert request.header("authorization") == "Bearer sk-mine"
    assert request.header("accept-encoding") == "identity"
    assert request.header("te") is None
    assert request.header("host") not in (None, client.base_url.netloc.decode())


@in_a_loop
async def test_headers_go_on_with_their_very_bytes() -> None:
    seen: list[str | None] = []

    async def provider(request: Request) -> Exchange:
        seen.append(request.header("x-title"))
        return Whole(Response(200, (("x-said", "caf\xe9"),)))

    titles = ["Café".encode(), b"Caf\xe9"]
    async with through(provider) as (client, _upstream):
        answers = [await client.get("/models", headers={b"x-title": each}) for each in titles]
    assert seen == [each.decode("latin-1") for each in titles]
    assert {(b"x-said", b"caf\xe9") in answer.headers.raw for answer in answers} == {True}


@pytest.mark.parametrize(
    "path",
    [
        "/openai/v1@evil.test/models",
        "/openai/v1.evil.test/models",
        "/v1@evil.test/chat/completions",
    ],
)
def test_no_path_leads_to_another_host(path: str) -> None:
    (home, *_others) = homes_in({}, ["openai=http://provider.test"])
    sent = forwarded(Request("POST", path), [home])
    assert sent is not None
    assert sent.host == "provider.test"


@in_a_loop
async def test_each_chunk_goes_on_when_it_comes() -> None:
    chunks: asyncio.Queue[bytes] = asyncio.Queue()

    async def provider(_request: Request) -> Exchange:
        return Stream(chunks)

    async with (
        through(provider) as (client, _upstream),
        client.stream("POST", "/chat/completions", content=b"{}") as answer,
    ):
        assert "x-hop" not in answer.headers
        pieces = answer.aiter_raw()
        for piece in (b"data: 1\n\n", b"data: 2\n\n"):
            chunks.put_nowait(piece)
            assert await anext(pieces) == piece  # the next is not there yet
        chunks.put_nowait(b"")
        assert await anext(pieces, None) is None


@in_a_loop
async def test_a_client_that_goes_away_leaves_the_provider_too() -> None:
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    stream = Stream(chunks)

    async def provider(_request: Request) -> Exchange:
        return stream

    async with through(provider) as (client, _upstream):
        async with client.stream("POST", "/chat/completions", content=b"{}") as answer:
            chunks.put_nowait(b"data: 1\n\n")
            await anext(answer.aiter_raw())
        await asyncio.wait_for(stream.closed.wait(), 5)


@pytest.mark.parametrize(
    ("how", "error"),
    [("torn", httpx2.RemoteProtocolError), ("reset", httpx2.ReadError)],
)
@in_a_loop
async def test_a_stream_that_breaks_breaks_here_too(how: Break, error: type[Exception]) -> None:
    chunks: asyncio.Queue[bytes] = asyncio.Queue()

    async def provider(_request: Request) -> Exchange:
        return Stream(chunks, how)

    async with (
        through(provider) as (client, _upstream),
        client.stream("POST", "/chat/completions", content=b"{}") as answer,
    ):
        pieces = answer.aiter_raw()
        chunks.put_nowait(b"data: 1\n\n")
        assert await anext(pieces) == b"data: 1\n\n"
        chunks.put_nowait(b"")
        with pytest.raises(error):
            await anext(pieces)


@in_a_loop
async def test_no_answer_is_no_answer_here_too() -> None:
    async def provider(_request: Request) -> Exchange:
        raise Broken("dropped", "as the test says")

    async with through(provider) as (client, _upstream):
        with pytest.raises(httpx2.RemoteProtocolError, match="without sending a response"):
            await client.post("/chat/completions", content=b"{}")


class Failing:
    """A transport that raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def handle_async_request(self, _request: Any) -> Any:
        raise self._error

    async def aclose(self) -> None: ...


def failing(error: Exception, told: list[str]) -> Upstream:
    transport: Any = Failing(error)
    return Upstream(httpx2.AsyncClient(transport=transport), HOMES, told.append)


ASKED = Request("POST", "/openai/v1/chat/completions?api_key=sk-secret", (), b"{}")


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (httpx2.ConnectError("no route, says sk-secret-of-mine"), "refused"),
        (httpx2.ConnectTimeout(""), "refused"),
        (httpx2.InvalidURL("Invalid IDNA hostname"), "refused"),
        (httpx2.RemoteProtocolError("Server disconnected"), "dropped"),
        (httpx2.ReadError(""), "reset"),
    ],
)
@in_a_loop
async def test_why_there_is_no_answer(error: Exception, how: str) -> None:
    told: list[str] = []
    with pytest.raises(Broken) as caught:
        await failing(error, told).answer(ASKED)
    assert caught.value.how == how
    (line,) = told
    assert line.startswith("POST https://api.openai.com/v1/chat/completions?api_key=[redacted]: ")
    assert "sk-secret" not in line + str(caught.value)


@in_a_loop
async def test_a_provider_that_says_nothing() -> None:
    told: list[str] = []
    with pytest.raises(TimeoutError, match="ReadTimeout"):
        await failing(httpx2.ReadTimeout(""), told).answer(ASKED)
    assert len(told) == 1


@in_a_loop
async def test_what_a_cassette_does_not_have_is_an_answer() -> None:
    told: list[str] = []
    upstream = failing(HarnessError("it is not recorded"), told)
    exchange = await upstream.answer(ASKED)
    assert exchange.status == 404
    assert ("x-should-retry", "false") in exchange.headers
    assert await anext(aiter(exchange)) == b'{"error": {"message": "it is not recorded"}}'
    assert [str(error) for error in upstream.errors] == ["it is not recorded"]
    assert told == []


@pytest.mark.parametrize(
    ("url", "goes_to"),
    [
        ("/openai/v1/models", "https://api.openai.com/v1/models"),
        ("/openai/models", "https://api.openai.com/v1/models"),
        ("/anthropic/v1/messages?beta=true", "https://api.anthropic.com/v1/messages?beta=true"),
        ("/anthropic", "https://api.anthropic.com"),
        (
            "/gemini/v1beta/models/m:generateContent",
            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        ),
        ("/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("/v1/chat/completions#x", "https://api.openai.com/v1/chat/completions"),
        ("http://evil.test/openai/v1/models", "https://api.openai.com/v1/models"),
        ("/openais/v1/models", None),
        ("/v1/models", None),
    ],
)
def test_where_a_request_goes(url: str, goes_to: str | None) -> None:
    sent = forwarded(Request("POST", url), HOMES)
    assert (None if sent is None else sent.url) == goes_to


@in_a_loop
async def test_a_request_for_nobody_is_told_whom_there_is() -> None:
    exchange = await failing(AssertionError(), []).answer(Request("GET", "/v1/models"))
    assert exchange.status == 404
    said = (await anext(aiter(exchange))).decode()
    assert "/openai/v1, /anthropic, /gemini" in said


@pytest.mark.parametrize(
    ("status", "headers", "streamed"),
    [
        (200, {"content-length": "2", "content-type": "application/json"}, False),
        (200, {"content-length": "2", "content-type": "text/event-stream"}, True),
        (200, {"content-type": "application/json"}, True),
        (204, {}, False),
    ],
)
@in_a_loop
async def test_what_is_sent_in_pieces(status: int, headers: Any, streamed: bool) -> None:
    def answer(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers=headers)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        exchange = await Upstream(client, HOMES).answer(ASKED)
    assert exchange.streamed is streamed
    assert [name for name, _value in exchange.headers if name == "content-length"] == (
        ["content-length"] if "content-length" in headers and not streamed else []
    )
    assert exchange.ready() is None
