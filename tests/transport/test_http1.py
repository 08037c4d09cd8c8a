"""HTTP/1.1 as bytes: what is read, what is refused, what is written."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.transport.exchange import Break, Broken, Whole
from harness.transport.http1 import (
    CONTINUE,
    Limits,
    Malformed,
    Reader,
    Received,
    Sending,
    chunk,
    head,
    refusal,
)
from harness.wire.http import Headers, Request, Response

GET = b"GET /v1/models HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b"POST /v1/x?a=1 HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /x HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nhel\r\n2;name=value\r\nlo\r\n0\r\nChecksum: none\r\n\r\n"
)

USUAL = Limits()


def read(data: bytes, size: int = 0, limits: Limits = USUAL) -> list[Received]:
    """All requests in some bytes that come in pieces of a size."""
    reader, found = Reader(limits), []
    for at in range(0, len(data), size or len(data)):
        reader.feed(data[at : at + (size or len(data))])
        while (received := reader.take()) is not None:
            found.append(received)
    assert not reader.begun
    return found


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
def test_requests_are_read_from_bytes_that_are_cut_anywhere(size: int) -> None:
    get, post, chunked = [each.request for each in read(GET + POST + b"\r\n" + CHUNKED, size)]
    assert (get.method, get.path, get.body) == ("GET", "/v1/models", b"")
    assert (post.method, post.path, post.query, post.body) == (
        "POST",
        "/v1/x",
        {"a": "1"},
        b"hello",
    )
    assert (chunked.body, chunked.header("Transfer-Encoding")) == (b"hello", "chunked")


def test_who_keeps_the_connection_and_who_knows_chunks() -> None:
    (keeps,) = read(GET)
    (closes,) = read(GET.replace(b"Host", b"Connection: x, Close\r\nHost"))
    (old,) = read(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert (keeps.keep, keeps.chunks) == (True, True)
    assert (closes.keep, closes.chunks) == (False, True)
    assert (old.keep, old.chunks) == (False, False)


def test_a_client_that_waits_for_100_continue_is_told_once() -> None:
    reader = Reader()
    lines, body = POST.replace(b"Host", b"Expect: 100-Continue\r\nHost").split(b"\r\n\r\n")
    reader.feed(lines + b"\r\n\r\n")
    assert reader.take() is None
    assert reader.begun
    assert [reader.asks_to_continue(), reader.asks_to_continue()] == [True, False]
    reader.feed(body)
    received = reader.take()
    assert received is not None
    assert received.request.body == body
    assert CONTINUE.endswith(b"\r\n\r\n")


def test_a_client_that_sends_its_body_anyway_is_not_told_to_continue() -> None:
    reader = Reader()
    reader.feed(POST.replace(b"Host", b"Expect: 100-continue\r\nHost")[:-1])
    assert reader.take() is None
    assert reader.held == 4
    assert not reader.asks_to_continue()


SMALL = Limits(head=80, lines=2, body=8)
HOSTILE = {
    "no request line": (400, b"hello\r\n\r\n"),
    "a method that is none": (400, b"G@T / HTTP/1.1\r\nHost: x\r\n\r\n"),
    "no path": (400, b"GET here HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a space in the path": (400, b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a proxy's request": (400, b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n"),
    "lines that end in LF": (400, b"GET / HTTP/1.1\nHost: x\n\nX\r\n\r\n"),
    "another protocol": (505, b"GET / HTTP/2.0\r\nHost: x\r\n\r\n"),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two hosts": (400, b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),
    "a line without a colon": (400, b"GET / HTTP/1.1\r\nHost: x\r\nabc\r\n\r\n"),
    "a space before the colon": (400, b"GET / HTTP/1.1\r\nHost : x\r\n\r\n"),
    "a folded line": (400, b"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n"),
    "a control character": (400, b"GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n"),
    "a lone CR in a value": (400, b"GET / HTTP/1.1\r\nHost: x\ry: z\r\n\r\n"),
    "another expectation": (417, b"GET / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n"),
    "a length that is none": (400, b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n"),
    "two lengths": (
        400,
        b"P / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
    ),
    "a length and chunks": (
        400,
        b"P / HTTP/1.1\r\nHost:x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    "another coding": (400, b"P / HTTP/1.1\r\nHost:x\r\nTransfer-Encoding: gzip\r\n\r\n"),
    "chunks in HTTP/1.0": (400, b"P / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "a long body": (413, b"P / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"),
}
IN_CHUNKS = b"P / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
HOSTILE |= {
    "a size that is none": (400, IN_CHUNKS + b"x\r\n"),
    "a negative size": (400, IN_CHUNKS + b"-1\r\n"),
    "no end of a chunk": (400, IN_CHUNKS + b"1\r\naXX"),
    "a chunk too large": (413, IN_CHUNKS + b"9\r\n"),
    "chunks too many": (413, IN_CHUNKS + b"8\r\n12345678\r\n1\r\n"),
    "an endless size": (400, IN_CHUNKS + b"1" * 2000),
    "endless lines behind the body": (431, IN_CHUNKS + b"0\r\n" + b"a: b\r\n" * 60),
}


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(("status", "data"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_request_is_refused(status: int, data: bytes, size: int) -> None:
    limits = Limits(head=200, lines=9, body=8)
    with pytest.raises(Malformed) as caught:
        read(data, size, limits)
    assert caught.value.status == status
    answer = refusal(caught.value)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nconnection: close\r\n" in answer


def test_a_head_that_is_too_long_is_refused_before_it_ends() -> None:
    for data in (b"GET /" + b"a" * 200, b"GET / HTTP/1.1\r\nHost: x\r\na: " + b"b" * 200):
        with pytest.raises(Malformed, match="longer than 80 bytes") as caught:
            read(data, 1, SMALL)
        assert caught.value.status == 431
    with pytest.raises(Malformed, match="more than 2 header lines") as caught:
        read(b"GET / HTTP/1.1\r\nHost: x\r\na: b\r\nc: d\r\n\r\n", 0, SMALL)
    assert caught.value.status == 431


class Scripted:
    """An exchange that gives some chunks and may then break."""

    status = 200
    headers: Headers = (("content-type", "text/plain"),)
    place = "1.1"

    def __init__(self, *chunks: bytes, streamed: bool, how: Break | None = None) -> None:
        self.streamed = streamed
        self._chunks = [*chunks]
        self._how = how

    def __aiter__(self) -> Scripted:
        return self

    async def __anext__(self) -> bytes:
        if self._chunks:
            return self._chunks.pop(0)
        if self._how is not None:
            raise Broken(self._how, "as scripted")
        raise StopAsyncIteration

    def ready(self) -> bytes | None:
        return self._chunks.pop(0) if self._chunks else b""

    async def aclose(self) -> None:
        pass


def sent(exchange: Scripted | Whole, received: Received) -> tuple[list[bytes], str | None]:
    """The pieces that go out, and how the connection breaks."""

    async def work() -> tuple[list[bytes], str | None]:
        pieces = []
        try:
            async for piece in Sending(exchange, received):
                pieces += [piece]
        except Broken as error:
            return pieces, error.how
        return pieces, None

    return asyncio.run(work())


ASKED = Received(Request("POST", "/x"))
OLD = Received(Request("POST", "/x"), keep=False, chunks=False)
BARE = Received(Request("HEAD", "/x"))
START = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


def test_a_stream_goes_out_a_chunk_a_piece() -> None:
    pieces, broken = sent(Scripted(b"one", b"two", streamed=True), ASKED)
    begin = START + b"transfer-encoding: chunked\r\n\r\n"
    assert pieces == [begin, b"3\r\none\r\n", b"3\r\ntwo\r\n", b"0\r\n\r\n"]
    assert broken is None


def test_what_is_there_already_is_taken_without_waiting() -> None:
    async def work(received: Received, *, streamed: bool) -> list[bytes | None]:
        sending = Sending(Scripted(b"one", b"two", streamed=streamed), received)
        assert sending.ready() is None
        await anext(sending)
        taken = [sending.ready(), await anext(sending), sending.ready(), sending.ready()]
        return [*taken, b"%d" % sending.frames]

    chunks, bare, whole = [
        asyncio.run(work(received, streamed=streamed))
        for received, streamed in ((ASKED, True), (OLD, True), (ASKED, False))
    ]
    assert chunks == [b"3\r\none\r\n", b"3\r\ntwo\r\n", b"0\r\n\r\n", None, b"2"]
    assert bare == [b"one", b"two", None, None, b"2"]
    assert whole == [None, b"onetwo", None, None, b"1"]


def test_a_client_that_knows_no_chunks_reads_to_the_end_of_the_connection() -> None:
    pieces, broken = sent(Scripted(b"one", b"two", streamed=True), OLD)
    assert pieces == [START + b"connection: close\r\n\r\n", b"one", b"two"]
    assert broken is None


def test_an_answer_that_is_there_goes_out_with_its_length() -> None:
    assert sent(Scripted(b"one", b"two", streamed=False), ASKED) == (
        [START + b"content-length: 6\r\n\r\n", b"onetwo"],
        None,
    )
    assert sent(Whole(Response(204)), ASKED) == (
        [b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n"],
        None,
    )


def test_head_gets_no_body() -> None:
    for streamed in (True, False):
        answer = sent(Scripted(b"one", streamed=streamed), BARE)
        assert answer == ([START + b"content-length: 3\r\n\r\n"], None)


def test_a_stream_that_breaks_has_no_end() -> None:
    pieces, broken = sent(Scripted(b"one", streamed=True, how="torn"), ASKED)
    assert pieces[1:] == [b"3\r\none\r\n"]
    assert broken == "torn"


@pytest.mark.parametrize("how", ["torn", "reset"])
def test_an_answer_that_breaks_in_the_middle_is_shorter_than_it_says(how: Break) -> None:
    pieces, broken = sent(Scripted(b"one", streamed=False, how=how), ASKED)
    assert pieces == [START + b"content-length: 4\r\n\r\n", b"one"]
    assert broken == how


def test_an_answer_that_breaks_before_it_begins() -> None:
    assert sent(Scripted(streamed=False, how="reset"), ASKED) == ([], "reset")
    pieces, broken = sent(Scripted(streamed=False, how="torn"), ASKED)
    assert pieces == [START + b"content-length: 1\r\n\r\n"]
    assert broken == "torn"


def test_a_status_without_a_name_and_a_length_that_is_said() -> None:
    assert head(529, (("content-length", "9"),), 2) == (
        b"HTTP/1.1 529 \r\ncontent-length: 9\r\n\r\n"
    )


@pytest.mark.parametrize("pair", [("a b", "c"), ("a", "b\r\nc: d")])
def test_a_header_that_would_be_two_is_not_written(pair: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        head(200, (pair,), 0)


def test_a_chunk() -> None:
    assert chunk(b"a" * 17) == b"11\r\n" + b"a" * 17 + b"\r\n"


def understood(data: bytes, size: int) -> tuple[list[bytes], int]:
    """The bodies that were read, and the status of what is no request; 0 for none."""
    reader, bodies = Reader(Limits(head=200, body=50)), []
    try:
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
            while (received := reader.take()) is not None:
                bodies += [received.request.body]
    except Malformed as error:
        return bodies, error.status
    return bodies, 0


@given(
    data=st.lists(st.sampled_from([GET, POST, CHUNKED]), min_size=1, max_size=3).map(b"".join),
    edits=st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=3)), max_size=3),
    size=st.integers(1, 40),
)
def test_how_bytes_are_cut_never_changes_what_they_say(
    data: bytes, edits: list[tuple[int, bytes]], size: int
) -> None:
    for at, new in edits:
        data = data[: at % len(data)] + new + data[at % len(data) + 1 :]
    assert understood(data, size) == understood(data, len(data))
