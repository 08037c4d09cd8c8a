"""What is recorded of an answer while the client reads it, and that the client notices nothing."""

from __future__ import annotations

import asyncio
import gzip
import sys
import threading
import types
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest

from harness.transport.cassettes.form import Chunk, Interaction
from harness.transport.cassettes.recording import recorded
from harness.transport.exchange import Broken, Exchange, Whole
from harness.wire.http import Request, Response
from tests.transport.cassettes.raw import LAST, STREAMED, chunk, head, raw, whole
from tests.transport.cassettes.tapes import CLIENTS, MODULES, Ticking, ask, taped
from tests.transport.slow import Slow

MS = 1_000_000
clients = pytest.mark.parametrize(("library", "kind"), CLIENTS)


@clients
def test_each_chunk_reaches_the_client_before_the_next_one_is_sent(library: str, kind: str) -> None:
    had = [threading.Event() for _ in range(3)]
    pieces = [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]
    steps: list[Any] = [STREAMED]
    for event, piece in zip(had, pieces, strict=True):
        steps += [chunk(piece), event]
    waiting = iter(had)
    with raw([*steps, LAST]) as server, taped() as tape:
        heard = ask(library, kind, server.url, on_chunk=lambda _: next(waiting).set())
    assert heard.error is None
    assert heard.chunks == pieces
    [interaction] = tape.kept
    assert [each.data for each in interaction.chunks] == pieces
    times = [interaction.head_at, *[each.at for each in interaction.chunks], interaction.ended_at]
    assert times == sorted(set(times))
    assert interaction.begun == 1 * MS
    assert (interaction.status, interaction.reason) == (200, "OK")
    assert interaction.ended == "complete"
    assert interaction.headers == (("content-type", "text/event-stream"),)


@clients
def test_the_request_is_kept_as_it_went_out(library: str, kind: str) -> None:
    with raw([whole(b"{}")]) as server, taped() as tape:
        url = f"{server.url}/v1/messages?beta=true"
        ask(library, kind, url, content=b'{"model": "x"}', headers={"X-Api-Key": "k"})
    [interaction] = tape.kept
    request = interaction.request
    assert (request.method, request.url, request.body) == ("POST", url, b'{"model": "x"}')
    assert request.header("x-api-key") == "k"
    assert interaction.protocol == "anthropic"
    assert server.asked[0].endswith(b'\r\n\r\n{"model": "x"}')


def _pieces() -> Iterator[bytes]:
    yield b"one"
    yield b"two"


async def _async_pieces() -> AsyncIterator[bytes]:
    yield b"one"
    yield b"two"


@clients
def test_bodies_that_come_from_iterators_are_read_once_and_sent(library: str, kind: str) -> None:
    content: Any = _pieces() if kind == "sync" else _async_pieces()
    with raw([whole(b"{}")]) as server, taped() as tape:
        heard = ask(library, kind, server.url, content=content)
    assert heard.error is None
    assert tape.kept[0].request.body == b"onetwo"
    assert b"onetwo" in server.asked[0]


CODINGS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, gzip": lambda data: gzip.compress(zlib.compress(data)),
    "identity": lambda data: data,
}


@pytest.mark.parametrize("coding", CODINGS)
@clients
def test_codings_are_undone_chunk_by_chunk_while_the_client_gets_its_bytes(
    library: str, kind: str, coding: str
) -> None:
    text = b"".join([b"data: %d\n\n" % n for n in range(500)])
    coded = CODINGS[coding](text)
    parts = [coded[:100], coded[100:200], coded[200:]]
    lines = ["content-type: text/event-stream", f"content-encoding: {coding}"]
    steps = [head(*lines, "transfer-encoding: chunked"), *[chunk(part) for part in parts], LAST]
    with raw(list(steps)) as server, taped() as tape:
        heard = ask(library, kind, server.url)
    assert heard.body == coded
    assert ("content-encoding", coding) in heard.headers
    [interaction] = tape.kept
    assert interaction.body == text
    assert interaction.headers == (("content-type", "text/event-stream"),)


def coded(body: bytes, coding: str, *lines: str) -> Interaction:
    """What is recorded of a body with a coding."""
    with raw([whole(body, f"content-encoding: {coding}", *lines)]) as server, taped() as tape:
        assert ask("httpx2", "sync", server.url).body == body
    return tape.kept[0]


def test_the_length_of_what_was_coded_is_that_of_what_is_kept() -> None:
    kept = coded(gzip.compress(b"hello" * 99), "gzip")
    assert dict(kept.headers)["content-length"] == str(5 * 99)


def test_deflate_without_its_header_is_undone_too() -> None:
    bare = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    assert coded(bare.compress(b"hello") + bare.flush(), "deflate").body == b"hello"


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        pytest.param(b"no gzip at all", "gzip", id="none"),
        pytest.param(zlib.compress(b"x") + b"rest", "deflate", id="more behind its end"),
        pytest.param(gzip.compress(b"x" * 999)[:-5], "gzip", id="cut short"),
        pytest.param(gzip.compress(b"x")[:12] + b"\xff\xff\xff", "gzip", id="spoilt"),
        pytest.param(b"abc", "compress", id="unknown"),
        pytest.param(b"abc", "zstd", id="no library"),
    ],
)
def test_what_cannot_be_undone_is_kept_as_it_came(body: bytes, coding: str) -> None:
    kept = coded(body, coding)
    assert kept.body == body
    assert dict(kept.headers)["content-encoding"] == coding
    assert dict(kept.headers)["content-length"] == str(len(body))


def test_a_body_that_grows_without_bounds_is_kept_as_it_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.transport.cassettes.decoding.MOST", 1000)
    bomb = gzip.compress(b"\0" * 100_000)
    assert coded(bomb, "gzip").body == bomb
    twice = gzip.compress(gzip.compress(b"\0" * 100_000, 0), 0)  # each less than that at a time
    with taped() as tape:
        take = tape.begin(Request("POST", "/"))
        take.answered(200, "", (("content-encoding", "gzip"),))
        once = gzip.compress(b"\0" * 3000, 0)
        for at in range(0, len(once), 500):
            take.came(once[at : at + 500])
        take.over("complete")
    assert tape.kept[0].body == once
    assert coded(twice, "gzip, gzip").body == twice


class _Inflater:
    """What the libraries for other codings have, over zlib."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj()

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    def is_finished(self) -> bool:
        return self._inflate.eof

    def process(self, data: bytes) -> bytes:
        return self._inflate.decompress(data)

    decompress = process


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_other_codings_are_undone_where_their_library_is_there(
    monkeypatch: pytest.MonkeyPatch, coding: str
) -> None:
    brotli: Any = types.ModuleType("brotli")
    brotli.error, brotli.Decompressor = zlib.error, _Inflater
    zstandard: Any = types.ModuleType("zstandard")
    zstandard.ZstdError = zlib.error
    zstandard.ZstdDecompressor = lambda: types.SimpleNamespace(decompressobj=_Inflater)
    monkeypatch.setitem(sys.modules, "brotli", brotli)
    monkeypatch.setitem(sys.modules, "zstandard", zstandard)
    assert coded(zlib.compress(b"hello"), coding).body == b"hello"
    assert coded(b"none of it", coding).body == b"none of it"
    more = zlib.compress(b"x") + b"more"
    assert coded(more, coding).body == (more if coding == "zstd" else b"x")


@clients
def test_answers_without_a_body_stay_as_they_are(library: str, kind: str) -> None:
    """An empty body is no gzip, and need not be any."""
    empty = head("content-encoding: gzip", "content-length: 120", "connection: close")
    with raw([empty]) as server, taped() as tape:
        heard = ask(library, kind, server.url, method="HEAD", raw=False)
    assert heard.error is None
    [interaction] = tape.kept
    assert interaction.chunks == ()
    assert dict(interaction.headers)["content-length"] == "120"
    assert interaction.ended == "complete"


@pytest.mark.parametrize("library", MODULES)
def test_a_synchronous_client_inside_a_running_loop_is_recorded(library: str) -> None:
    async def inside(url: str) -> bytes:
        return ask(library, "sync", url).body

    with raw([whole(b"hello")]) as server, taped() as tape:
        assert asyncio.run(inside(server.url)) == b"hello"
    assert tape.kept[0].body == b"hello"


def test_threads_are_recorded_side_by_side() -> None:
    """Each is in the middle of its answer while the others are in theirs."""
    gate = threading.Barrier(4)
    bodies = [b"body %d" % n for n in range(4)]
    steps: list[list[Any]] = [
        [STREAMED, chunk(body), gate.wait, chunk(body), LAST] for body in bodies
    ]
    with raw(*steps) as server, taped() as tape:
        asking = [threading.Thread(target=ask, args=("httpx2", "sync", server.url)) for _ in bodies]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
    assert sorted(each.body for each in tape.kept) == [body * 2 for body in bodies]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_one_request_through_two_layers_is_recorded_once(kind: str) -> None:
    """A transport of one library that sends through the other's."""
    outer, inner = MODULES["httpx"], MODULES["httpx2"]

    before = outer.HTTPTransport.handle_request
    before_async = outer.AsyncHTTPTransport.handle_async_request

    def through(transport: Any, request: Any) -> Any:
        with inner.Client(trust_env=False) as client:
            answer = client.request(request.method, str(request.url), content=request.read())
        return outer.Response(answer.status_code, content=answer.content)

    async def through_async(transport: Any, request: Any) -> Any:
        async with inner.AsyncClient(trust_env=False) as client:
            body = await request.aread()
            answer = await client.request(request.method, str(request.url), content=body)
        return outer.Response(answer.status_code, content=answer.content)

    outer.HTTPTransport.handle_request = through
    outer.AsyncHTTPTransport.handle_async_request = through_async
    try:
        with raw([whole(b"hello")]) as server, taped() as tape:
            assert ask("httpx", kind, server.url, raw=False).body == b"hello"
    finally:
        outer.HTTPTransport.handle_request = before
        outer.AsyncHTTPTransport.handle_async_request = before_async
    assert [each.body for each in tape.kept] == [b"hello"]


@clients
def test_hosts_that_are_ignored_are_not_recorded(library: str, kind: str) -> None:
    with raw([whole(b"hello")]) as server, taped() as tape:
        tape.ignored = {"127.0.0.1"}
        assert ask(library, kind, server.url).body == b"hello"
    assert tape.kept == []


def test_what_comes_behind_the_end_is_not_kept() -> None:
    with taped() as tape:
        take = tape.begin(Request("POST", "/"))
        take.answered(200, "", ())
        take.came(b"")
        take.over("torn")
        take.came(b"late")
        take.over("complete")
        take.left()
    assert [(each.ended, each.chunks) for each in tape.kept] == [("torn", ())]


# --- at our own port


def kept_of(exchange: Exchange | Broken, *, until: int | None = None) -> tuple[Interaction, Any]:
    """What is recorded of an answer of ours, and what its reader has had."""
    kept: list[Interaction] = []

    async def answer(request: Request) -> Exchange:
        if isinstance(exchange, Broken):
            raise exchange
        return exchange

    async def read() -> list[bytes]:
        given = await recorded(answer, kept.append, Ticking())(Request("POST", "/v1/messages"))
        had: list[bytes] = []
        async for piece in given:
            had.append(piece)
            if len(had) == until:
                break
        await given.aclose()
        return had

    try:
        had: Any = asyncio.run(read())
    except Broken as error:
        had = error
    return kept[0], had


def test_an_answer_of_our_own_is_recorded_on_its_way() -> None:
    kept, had = kept_of(Slow(0, 0))
    assert had == [b"chunk", b"chunk"]
    assert kept.chunks == (Chunk(2 * MS, b"chunk"), Chunk(3 * MS, b"chunk"))
    assert (kept.status, kept.headers, kept.head_at) == (200, Slow.headers, 1 * MS)
    assert (kept.ended, kept.protocol) == ("complete", "anthropic")


def test_an_answer_of_our_own_that_breaks_or_is_left_is_recorded_as_such() -> None:
    broken = Broken("refused", "no")
    kept, had = kept_of(broken)
    assert had is broken
    assert (kept.status, kept.ended) == (None, "refused")
    kept, had = kept_of(Slow(0, breaks="reset"))
    assert isinstance(had, Broken)
    assert (kept.body, kept.ended) == (b"chunk", "reset")
    slow = Slow(0, 0)
    kept, had = kept_of(slow, until=1)
    assert (kept.body, kept.ended) == (b"chunk", "cancelled")
    assert slow.closed


def test_chunks_that_are_there_already_are_recorded_too() -> None:
    class Ready(Whole):
        def __init__(self) -> None:
            super().__init__(Response(200, (), b"whole"))
            self.there: list[bytes | None] = [None, b"one", b""]

        def ready(self) -> bytes | None:  # type: ignore[override]
            return self.there.pop(0)

    kept: list[Interaction] = []

    async def answer(request: Request) -> Exchange:
        return Ready()

    async def read() -> None:
        given = await recorded(answer, kept.append, Ticking())(Request("POST", "/"))
        assert [given.ready(), given.ready()] == [None, b"one"]
        assert kept == []
        assert given.ready() == b""
        assert (given.streamed, given.place, given.rule) == (False, "", "")

    asyncio.run(read())
    assert (kept[0].body, kept[0].ended) == (b"one", "complete")


def test_httpx2_gives_the_class_that_it_asks_for() -> None:
    with raw([whole(b"hello")]) as server, taped():
        response = httpx2.Client(trust_env=False).get(server.url)
        assert isinstance(response.stream, httpx2.SyncByteStream)
        assert response.elapsed is not None
