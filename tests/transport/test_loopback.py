"""Whole HTTP/1.1 over connections in memory: heads and chunks, kept connections, broken ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from harness.transport.exchange import Broken, Exchange, Whole
from harness.transport.libraries import library
from harness.transport.loopback import AsyncBackend, Connection, SyncBackend, client
from harness.wire.http import Headers, Request, Response

T = TypeVar("T")


class Chunks:
    """A streamed answer, with a break at its end or none."""

    status = 200
    headers: Headers = (("content-type", "text/plain"),)
    streamed = True
    place = ""
    rule = ""

    def __init__(self, *chunks: bytes, then: Any = None) -> None:
        self.chunks = list(chunks)
        self.then = then
        self.closed = 0

    def __aiter__(self) -> Chunks:
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)
        if self.chunks:
            return self.chunks.pop(0)
        if self.then == "hang":
            await asyncio.Event().wait()
        if self.then is not None:
            raise Broken(self.then, "it breaks")
        raise StopAsyncIteration

    def ready(self) -> None:
        pass

    async def aclose(self) -> None:
        self.closed += 1


class Answers:
    """Answers with what it is given, one a request."""

    def __init__(self, *exchanges: Any) -> None:
        self.exchanges = list(exchanges)
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Exchange:
        self.requests.append(request)
        found = self.exchanges.pop(0)
        if isinstance(found, str):
            raise Broken(found, "no answer")  # type: ignore[arg-type]
        answer: Exchange = found
        return answer


def whole(text: str = "ok", status: int = 200) -> Whole:
    return Whole(Response(status, (("content-type", "text/plain"),), text.encode()))


def call(work: Callable[[], Awaitable[T]]) -> T:
    async def run() -> T:
        return await work()

    return asyncio.run(run())


class Asks:
    """Asks by a library, asynchronous or not, all by one client."""

    def __init__(self, name: str, *, sync: bool) -> None:
        self.name = name
        self.sync = sync

    def __call__(self, answer: Any, times: int = 1, **options: Any) -> list[str]:
        if self.sync:
            one = client(self.name, answer, "http://p.test", call)
            return [one.post("/v1", content=b"x" * n, **options).text for n in range(times)]

        async def ask() -> list[str]:
            many = client(self.name, answer, "http://p.test")
            return [
                (await many.post("/v1", content=b"x" * n, **options)).text for n in range(times)
            ]

        return asyncio.run(ask())


@pytest.fixture(params=["httpx2", "httpx"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["async", "sync"])
def ask(request: pytest.FixtureRequest, name: str) -> Asks:
    return Asks(name, sync=request.param)


def test_connections_are_kept_for_the_next_request(
    ask: Asks, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Connection] = []
    begin = Connection.__init__

    def count(self: Connection, *given: Any) -> None:
        made.append(self)
        begin(self, *given)

    monkeypatch.setattr(Connection, "__init__", count)
    answer = Answers(whole("a"), Chunks(b"b", b"c"), whole(""))
    assert ask(answer, 3) == ["a", "bc", ""]
    assert [request.body for request in answer.requests] == [b"", b"x", b"xx"]
    assert answer.requests[0].header("host") == "p.test"
    assert len(made) == 1


def test_a_client_that_wants_no_more_gets_another_connection(ask: Asks) -> None:
    answer = Answers(whole("a"), whole("b"))
    assert ask(answer, 2, headers={"connection": "close"}) == ["a", "b"]


@pytest.mark.parametrize(
    ("how", "error"),
    [("refused", "ConnectError"), ("dropped", "RemoteProtocolError"), ("reset", "ReadError")],
)
def test_a_connection_breaks_before_an_answer(ask: Asks, how: str, error: str) -> None:
    errors = library(ask.name).client
    with pytest.raises(getattr(errors, error)):
        ask(Answers(how))


@pytest.mark.parametrize(
    ("how", "error"), [("torn", "RemoteProtocolError"), ("reset", "ReadError")]
)
def test_a_connection_breaks_in_an_answer(ask: Asks, how: str, error: str) -> None:
    errors = library(ask.name).client
    body = Chunks(b"a", then=how)
    with pytest.raises(getattr(errors, error)):
        ask(Answers(body))
    assert body.closed


def test_a_read_takes_too_long(ask: Asks) -> None:
    errors = library(ask.name).client
    body = Chunks(b"a", then="hang")
    with pytest.raises(errors.ReadTimeout):
        ask(Answers(body), timeout=0.01)
    assert body.closed


def test_a_client_goes_away(name: str) -> None:
    body = Chunks(b"a", b"b")

    async def leave() -> None:
        one = client(name, Answers(body), "http://p.test")
        async with one.stream("POST", "/v1") as response:
            assert response.status_code == 200
        assert body.closed == 1

    asyncio.run(leave())


def test_encryption_is_not_needed(ask: Asks) -> None:
    if ask.sync:
        one = client(ask.name, Answers(whole()), "https://p.test", call)
        assert one.get("/").text == "ok"
        return

    async def secret() -> None:
        many = client(ask.name, Answers(whole()), "https://p.test")
        assert (await many.get("/")).text == "ok"

    asyncio.run(secret())


def test_what_is_no_request_is_refused() -> None:
    async def talk() -> None:
        core = library("httpx2").core
        connection = Connection(Answers(), core)
        connection.write(b"GIBBERISH\r\n\r\n")
        assert (await connection.read(8, None)) == b"HTTP/1.1"
        assert not connection.ended
        rest = await connection.read(10_000, None)
        assert rest.startswith(b" 400")
        assert connection.ended
        assert await connection.read(1, None) == b""
        with pytest.raises(core.WriteError):
            connection.write(b"x")

    asyncio.run(talk())


def test_a_client_is_told_to_go_on() -> None:
    async def talk() -> None:
        connection = Connection(Answers(whole()), library("httpx2").core)
        connection.write(b"POST / HTTP/1.1\r\nhost: p\r\nexpect: 100-continue\r\n")
        connection.write(b"content-length: 1\r\n\r\n")
        assert (await connection.read(100, None)).startswith(b"HTTP/1.1 100 ")
        with pytest.raises(library("httpx2").core.ReadTimeout):  # both wait for the other
            await connection.read(100, 0.01)
        connection.write(b"x")
        assert (await connection.read(100, None)).startswith(b"HTTP/1.1 200 OK")
        await connection.close()

    asyncio.run(talk())


def test_a_wait_before_another_try_is_a_wait() -> None:
    core = library("httpx2").core
    asyncio.run(AsyncBackend(Answers(), core).sleep(0))
    SyncBackend(Answers(), core, call).sleep(0)
