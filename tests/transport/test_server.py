"""The server on sockets: exact chunks, broken connections, clients that leave or are hostile."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from harness.core.errors import UsageError
from harness.transport import http1
from harness.transport.exchange import Break, Broken, Exchange, Whole
from harness.transport.journal import Journal, Record
from harness.transport.server import USUAL, Limits, Server
from harness.wire.http import Headers, Request, Response

POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"


class Chunks:
    """An exchange that gives each chunk when the test lets it, then ends as the test says."""

    status = 200
    headers: Headers = ()
    streamed = True
    place = "1.1"
    rule = ""

    def __init__(
        self,
        *chunks: bytes,
        ready: list[bytes] | None = None,
        how: Break | None = None,
        held: bool = False,
    ) -> None:
        self._chunks = [*chunks]
        self._ready = ready or []
        self._how = how
        self.gate = asyncio.Event()
        if not held:
            self.gate.set()
        self.closed = asyncio.Event()

    def __aiter__(self) -> Chunks:
        return self

    async def __anext__(self) -> bytes:
        if self._chunks:
            return self._chunks.pop(0)
        await self.gate.wait()
        if self._how is not None:
            raise Broken(self._how, "as scripted")
        raise StopAsyncIteration

    def ready(self) -> bytes | None:
        return self._ready.pop(0) if self._ready and not self._chunks else None

    async def aclose(self) -> None:
        self.closed.set()


class Served:
    """A server in this loop, and its journal."""

    def __init__(self, *answers: Exchange | Exception, limits: Limits = USUAL) -> None:
        self._answers = [*answers]
        self.journal = Journal(lambda: 7)
        self.over = asyncio.Event()
        self.server = Server(self.answer, self.journal, limits=limits, ended=self.over.set)

    async def answer(self, request: Request) -> Exchange:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def last(self) -> Record:
        return self.journal.records[-1]

    @property
    def port(self) -> int:
        return int(self.server.url.rpartition(":")[2])

    async def ended(self) -> Record:
        await asyncio.wait_for(self.over.wait(), 5)
        self.over.clear()
        return self.last

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@asynccontextmanager
async def serving(*answers: Exchange | Exception, limits: Limits = USUAL) -> AsyncIterator[Served]:
    served = Served(*answers, limits=limits)
    await served.server.start()
    try:
        yield served
    finally:
        await served.server.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


async def head_of(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def test_each_chunk_goes_out_by_itself_and_the_connection_is_kept() -> None:
    async def test() -> None:
        two = Chunks(b"one", b"two")
        async with serving(two, Whole(Response(200, (), b"again"))) as served:
            reader, writer = await served.open()
            writer.write(POST)
            assert b"chunked" in await head_of(reader)
            assert await reader.readuntil(b"0\r\n\r\n") == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
            first = await served.ended()
            writer.write(POST)
            assert (await head_of(reader)).endswith(b"content-length: 5\r\n\r\n")
            assert await reader.readexactly(5) == b"again"
            second = await served.ended()
            writer.close()
        assert (first.connection, first.frames, first.ending) == (1, 2, "whole")
        assert (second.connection, second.frames, second.bytes) == (1, 1, 43)
        assert (second.number, second.protocol, second.place) == (2, "openai_chat", "")
        assert two.closed.is_set()

    run(test)


def test_chunks_that_are_there_go_out_together_and_not_all_at_once() -> None:
    async def test() -> None:
        many = Chunks(ready=[b"%d" % (n % 10) for n in range(100)], held=True)
        async with serving(many) as served:
            reader, writer = await served.open()
            writer.write(POST)
            await head_of(reader)
            assert len(await reader.readexactly(63 * 6)) == 63 * 6
            assert served.last.frames == 63  # with the head, what one write has at most
            many.gate.set()
            record = await served.ended()
            assert (record.frames, record.ending) == (63, "whole")
            writer.close()

    run(test)


def test_the_sockets_send_at_once() -> None:
    async def test() -> None:
        held = Chunks(b"one", held=True)
        async with serving(held) as served:
            reader, writer = await served.open()
            writer.write(POST)
            await reader.readuntil(b"one\r\n")
            (connection,) = served.server.connections
            sock = connection.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            await served.ended()

    run(test)


def test_a_body_that_the_client_announces_is_asked_for() -> None:
    async def test() -> None:
        async with serving(Whole(Response(200))) as served:
            reader, writer = await served.open()
            lines, body = POST.split(b"\r\n\r\n")
            writer.write(lines + b"\r\nExpect: 100-continue\r\n\r\n")
            assert await head_of(reader) == http1.CONTINUE
            writer.write(body)
            assert (await head_of(reader)).startswith(b"HTTP/1.1 200 ")
            assert served.last.body == {}
            writer.close()

    run(test)


def test_a_torn_answer_ends_without_its_end() -> None:
    async def test() -> None:
        async with serving(Chunks(b"one", how="torn")) as served:
            reader, writer = await served.open()
            writer.write(POST)
            assert (await reader.read()).endswith(b"\r\n\r\n3\r\none\r\n")
            assert (await served.ended()).ending == "torn"
            writer.close()

    run(test)


@pytest.mark.parametrize("size", [1, 30_000_000])
def test_a_reset_comes_behind_what_was_written(size: int) -> None:
    async def test() -> None:
        async with serving(Chunks(b"x" * size, how="reset")) as served:
            reader, writer = await served.open()
            writer.write(POST)
            await reader.readuntil(b"\r\n")
            with pytest.raises(ConnectionResetError):
                await reader.read()
            assert (await served.ended()).ending == "reset"
            writer.close()

    run(test)


@pytest.mark.parametrize("how", ["dropped", "refused"])
def test_a_connection_that_breaks_before_there_is_an_answer(how: Break) -> None:
    async def test() -> None:
        async with serving(Broken(how, "as scripted")) as served:
            reader, writer = await served.open()
            writer.write(POST)
            try:
                seen: bytes | str = await reader.read()
            except ConnectionResetError:
                seen = "reset"
            assert seen == (b"" if how == "dropped" else "reset")
            record = await served.ended()
            assert (record.ending, record.status) == (how, None)
            writer.close()

    run(test)


@pytest.mark.parametrize("by_reset", [False, True])
def test_a_client_that_goes_away_is_noticed_at_once(by_reset: bool) -> None:
    async def test() -> None:
        held = Chunks(b"one", held=True)
        async with serving(held) as served:
            reader, writer = await served.open()
            writer.write(POST)
            await reader.readuntil(b"one\r\n")
            assert (served.last.ending, served.last.frames) == ("", 1)
            writer.transport.abort() if by_reset else writer.close()
            await asyncio.wait_for(held.closed.wait(), 5)
            record = await served.ended()
            assert (record.ending, record.client_gone_at) == ("gone", 7)

    run(test)


def test_a_client_that_closes_between_two_requests_is_no_news() -> None:
    async def test() -> None:
        async with serving(Whole(Response(200))) as served:
            reader, writer = await served.open()
            writer.write(POST)
            await head_of(reader)
            writer.write_eof()
            assert await reader.read() == b""
            assert (served.last.ending, served.last.client_gone_at) == ("whole", None)
            writer.close()

    run(test)


@pytest.mark.parametrize(
    ("data", "status"),
    [(b"hello\r\n\r\n", 400), (POST.replace(b": 2", b": 99"), 413), (b"GET /" + b"a" * 999, 431)],
)
def test_a_hostile_client_is_told_why_and_let_go(data: bytes, status: int) -> None:
    async def test() -> None:
        limits = Limits(request=http1.Limits(head=200, body=50))
        async with serving(limits=limits) as served:
            reader, writer = await served.open()
            writer.write(data)
            assert (await reader.read()).startswith(b"HTTP/1.1 %d " % status)
            record = await served.ended() if served.over.is_set() else served.last
            assert (record.ending, record.status) == ("malformed", status)
            assert record.error
            writer.write(b"more")
            await served.server.settle()
            writer.close()

    run(test)


def test_a_request_that_does_not_come_whole_in_time() -> None:
    async def test() -> None:
        async with serving(limits=Limits(idle=0.02)) as served:
            reader, writer = await served.open()
            writer.write(POST[:-1])
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
            assert "not come whole in 0.02 seconds" in served.last.error
            writer.close()
            reader, writer = await served.open()
            assert await reader.read() == b""  # and one that asks nothing
            assert len(served.journal.records) == 1
            writer.close()

    run(test)


@pytest.mark.parametrize("how", [None, "reset"])
def test_a_client_that_does_not_read(how: Break | None) -> None:
    async def test() -> None:
        big = Chunks(*[b"x" * 5_000_000] * 3, how=how)
        async with serving(big, limits=Limits(idle=0.05)) as served:
            _reader, writer = await served.open()
            writer.transport.pause_reading()
            writer.write(POST)
            assert (await served.ended()).ending == "stalled"
            assert big.closed.is_set()
            writer.transport.abort()

    run(test)


def test_too_many_connections_and_too_many_requests() -> None:
    async def test() -> None:
        limits = Limits(connections=1, requests=1)
        async with serving(Whole(Response(200)), limits=limits) as served:
            reader, writer = await served.open()
            writer.write(POST)
            await head_of(reader)
            other, more = await served.open()
            assert b"there are 1 connection already" in await other.read()
            more.close()
            writer.write(POST)
            assert b"1 requests were answered, and that is all" in await reader.read()
            writer.close()

    run(test)


def test_who_sends_far_ahead_of_its_turn_is_let_go_after_the_answer() -> None:
    async def test() -> None:
        held = Chunks(b"one", held=True)
        async with serving(held, limits=Limits(request=http1.Limits(head=200))) as served:
            reader, writer = await served.open()
            writer.write(POST)
            await reader.readuntil(b"one\r\n")
            writer.write(POST)
            await served.server.settle()
            writer.write(POST * 9)
            (connection,) = served.server.connections
            while not connection._over:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            held.gate.set()
            assert await reader.read() == b"0\r\n\r\n"
            assert len(served.journal.records) == 1
            writer.close()

    run(test)


def test_requests_that_come_ahead_of_their_turn_are_answered_in_order() -> None:
    async def test() -> None:
        answers = [Whole(Response(200, (), b"a")), Whole(Response(200, (), b"b"))]
        async with serving(*answers) as served:
            reader, writer = await served.open()
            writer.write(POST + POST.replace(b"Host", b"Connection: close\r\nHost"))
            said = await reader.read()
            assert said.index(b"\r\n\r\na") < said.index(b"\r\n\r\nb")
            writer.close()

    run(test)


def test_the_end_cuts_off_what_is_going_out_and_closes_the_rest() -> None:
    async def test() -> None:
        held = Chunks(b"one", held=True)
        async with serving(held) as served:
            idle, second = await served.open()
            reader, writer = await served.open()
            writer.write(POST)
            await reader.readuntil(b"one\r\n")
            await served.server.close()
            assert (served.last.ending, held.closed.is_set()) == ("cut", True)
            assert await idle.read() == b""
            writer.close()
            second.close()

    run(test)


def test_the_end_gives_what_is_going_out_its_time() -> None:
    async def test() -> None:
        held = Chunks(b"one", held=True)
        async with serving(held) as served:
            reader, writer = await served.open()
            writer.write(POST)
            await reader.readuntil(b"one\r\n")
            closing = asyncio.ensure_future(served.server.close(grace=10))
            await asyncio.sleep(0)
            held.gate.set()
            await closing
            assert await reader.read() == b"0\r\n\r\n"
            assert served.last.ending == "whole"
            writer.close()

    run(test)


def test_what_breaks_in_the_code_that_answers_is_raised_at_the_end() -> None:
    async def test() -> None:
        served = Served(ZeroDivisionError())
        await served.server.start()
        reader, writer = await served.open()
        writer.write(POST)
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(ZeroDivisionError):
            await served.server.close()

    run(test)


@pytest.mark.parametrize("host", ["0.0.0.0", "localhost", "192.168.0.1", "::"])
def test_only_this_machine_reaches_it(host: str) -> None:
    async def test() -> None:
        server = Served().server
        with pytest.raises(UsageError, match="no requests from other machines"):
            await server.start(host)

    run(test)


def test_a_port_that_is_taken_or_none() -> None:
    async def test() -> None:
        async with serving() as served:
            for port in (served.port, 70_000):
                with pytest.raises(UsageError, match=f"port {port} of 127.0.0.1 cannot be had"):
                    await Served().server.start(port=port)

    run(test)


def test_ipv6() -> None:
    async def test() -> None:
        server = Served().server
        try:
            await server.start("::1")
        except UsageError:
            pytest.skip("there is no IPv6 here")
        assert server.url.startswith("http://[::1]:")
        await server.close()

    run(test)
