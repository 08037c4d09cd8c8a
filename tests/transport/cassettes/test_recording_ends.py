"""How an answer ended is recorded, and the client is told of it as without a recorder."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from harness.transport.cassettes.form import Chunk, Interaction
from harness.transport.cassettes.playing import Course
from harness.wire.http import Request
from tests.transport.cassettes.raw import LAST, RESET, STREAMED, Step, chunk, head, raw, whole
from tests.transport.cassettes.tapes import CLIENTS, MODULES, ask, taped

clients = pytest.mark.parametrize(("library", "kind"), CLIENTS)

FRAME = b'data: {"n": 1}\n\n'
ENDS: dict[str, tuple[list[Step], str, str | None]] = {
    "torn": ([STREAMED, chunk(FRAME)], "RemoteProtocolError", "torn"),
    "torn by its length": ([head("content-length: 99"), FRAME], "RemoteProtocolError", "torn"),
    "dropped": ([], "RemoteProtocolError", "dropped"),
    "dropped in its head": ([b"HTTP/1.1 200 OK\r\nx"], "RemoteProtocolError", "dropped"),
}


@pytest.mark.parametrize("end", ENDS)
@clients
def test_a_connection_that_breaks_is_recorded_as_it_broke(
    library: str, kind: str, end: str
) -> None:
    steps, told, ended = ENDS[end]
    with raw(steps) as server, taped() as tape:
        heard = ask(library, kind, server.url)
    assert type(heard.error).__name__ == told
    [kept] = tape.kept
    assert kept.ended == ended
    assert kept.body == heard.body
    assert (kept.status is None) == (ended == "dropped")


@clients
def test_a_reset_connection_is_recorded_as_such(library: str, kind: str) -> None:
    had = threading.Event()
    with raw([STREAMED, chunk(FRAME), had, RESET]) as server, taped() as tape:
        heard = ask(library, kind, server.url, on_chunk=lambda _: had.set())
    assert isinstance(heard.error, MODULES[library].ReadError)
    assert (tape.kept[0].ended, tape.kept[0].body) == ("reset", FRAME)
    with raw([RESET]) as server, taped() as tape:
        heard = ask(library, kind, server.url)
    assert isinstance(heard.error, MODULES[library].ReadError)
    assert (tape.kept[0].ended, tape.kept[0].status) == ("reset", None)


@clients
def test_a_connection_that_nobody_takes_is_recorded_as_refused(library: str, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with taped() as tape:
        heard = ask(library, kind, url)
    assert isinstance(heard.error, MODULES[library].ConnectError)
    assert (tape.kept[0].ended, tape.kept[0].status) == ("refused", None)


@pytest.mark.parametrize("before", [[], [STREAMED, chunk(FRAME)]], ids=["head", "body"])
@clients
def test_a_client_that_waits_no_longer_is_recorded_as_such(
    library: str, kind: str, before: list[Step]
) -> None:
    over = threading.Event()
    with raw([*before, over]) as server, taped() as tape:
        heard = ask(library, kind, server.url, timeout=0.05)
        over.set()
    assert isinstance(heard.error, MODULES[library].ReadTimeout)
    [kept] = tape.kept
    assert (kept.ended, kept.body) == ("timeout", heard.body)
    assert kept.status == (heard.status or None)
    if not before:
        assert kept.status is None


@clients
def test_a_client_that_leaves_is_recorded_with_what_it_had(library: str, kind: str) -> None:
    over = threading.Event()
    steps: list[Step] = [STREAMED]
    for n in range(3):
        had = threading.Event()
        steps += [chunk(b"data: %d\n\n" % n), had]
    events = [each for each in steps if isinstance(each, threading.Event)]
    waiting = iter(events[:1])
    with raw([*steps[:4], over]) as server, taped() as tape:
        heard = ask(
            library, kind, server.url, stop_after=2, on_chunk=lambda _: next(waiting, over).set()
        )
    assert heard.error is None
    [kept] = tape.kept
    assert (kept.ended, [each.data for each in kept.chunks]) == ("cancelled", heard.chunks)
    assert len(kept.chunks) == 2


FRAMES = {
    "/v1/chat/completions": [
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        b'[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\n',
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        b'[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
        b"data: [DONE]\n\n",
    ],
    "/v1/messages": [
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message",'
        b'"role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,'
        b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
        b'"stop_sequence":null},"usage":{"output_tokens":1}}\n\n',
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ],
    "told failure": [
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error",'
        b'"message":"Overloaded"}}\n\n',
    ],
}


@pytest.mark.parametrize("path", FRAMES)
@clients
def test_a_client_that_leaves_behind_the_last_frame_had_it_all(
    library: str, kind: str, path: str
) -> None:
    """Clients know the frame that ends a reply, and close at it; the connection's end is unseen."""
    frames = FRAMES[path]
    over = threading.Event()
    url = "/v1/messages" if path == "told failure" else path
    steps: list[Step] = [STREAMED, *[chunk(frame) for frame in frames], over]
    got = b"".join(frames)
    heard = b""

    def had(data: bytes) -> None:
        nonlocal heard
        heard += data

    class Done(Exception):
        pass

    def until_all(data: bytes) -> None:
        had(data)
        if heard == got:
            raise Done

    with raw(steps) as server, taped() as tape:
        with pytest.raises(Done):
            ask(library, kind, server.url + url, on_chunk=until_all)
        over.set()
    [kept] = tape.kept
    assert kept.ended == "complete"
    assert kept.body == got


def test_a_coded_stream_that_is_left_behind_its_last_frame_is_whole_and_readable() -> None:
    """The end of the coding is not there then."""
    coding = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    body = b"".join(FRAMES["/v1/chat/completions"])
    coded = coding.compress(body) + coding.flush(zlib.Z_SYNC_FLUSH)
    over = threading.Event()
    lines = ["content-type: text/event-stream", "content-encoding: gzip"]
    steps: list[Step] = [head(*lines, "transfer-encoding: chunked"), chunk(coded), over]
    with raw(steps) as server, taped() as tape:
        ask("httpx2", "sync", server.url + "/v1/chat/completions", stop_after=1)
        over.set()
    [kept] = tape.kept
    assert (kept.ended, kept.body) == ("complete", body)
    assert kept.headers == (("content-type", "text/event-stream"),)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/elsewhere"])
def test_a_client_that_leaves_before_it_had_not(path: str) -> None:
    frames = FRAMES.get(path, [FRAME])[:1]
    over = threading.Event()
    with raw([STREAMED, chunk(frames[0]), over]) as server, taped() as tape:
        ask("httpx2", "sync", server.url + path, stop_after=1)
        over.set()
    assert [each.ended for each in tape.kept] == ["cancelled"]


@pytest.mark.parametrize("body", [b"\xff\xfe\n\n", b"data: {no json\n\n"])
def test_bytes_that_are_no_reply_are_none(body: bytes) -> None:
    over = threading.Event()
    with raw([STREAMED, chunk(body), over]) as server, taped() as tape:
        ask("httpx2", "sync", server.url + "/v1/messages", stop_after=1)
        over.set()
    assert [each.ended for each in tape.kept] == ["cancelled"]


def test_a_body_of_its_length_is_whole_though_the_client_looks_for_no_end() -> None:
    with raw([whole(b"hello")]) as server, taped() as tape:
        ask("httpx2", "sync", server.url, stop_after=1)
    assert [(each.ended, each.body) for each in tape.kept] == [("complete", b"hello")]


@pytest.mark.parametrize("library", MODULES)
@pytest.mark.parametrize("sent", [False, True], ids=["head", "body"])
def test_a_cancelled_task_is_recorded_as_a_client_that_left(library: str, sent: bool) -> None:
    over, waiting = threading.Event(), threading.Event()
    steps: list[Step] = [STREAMED, chunk(FRAME)] if sent else []

    async def go(url: str) -> None:
        async def read() -> None:
            async with (
                MODULES[library].AsyncClient(trust_env=False) as client,
                client.stream("GET", url) as response,
            ):
                async for _data in response.aiter_raw():
                    waiting.set()

        task = asyncio.create_task(read())
        await asyncio.to_thread(waiting.wait)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with raw([*steps, waiting.set if not sent else over, over]) as server, taped() as tape:
        asyncio.run(go(server.url))
        over.set()
    [kept] = tape.kept
    assert kept.ended == "cancelled"
    assert kept.body == (FRAME if sent else b"")
    assert (kept.status is None) == (not sent)


def test_a_stream_that_nobody_reads_is_one_that_was_left() -> None:
    """Nothing tells of it: whoever ends the session ends it."""
    over = threading.Event()
    with raw([STREAMED, over]) as server, taped() as tape:
        client = MODULES["httpx2"].Client(trust_env=False)
        request = client.build_request("GET", server.url)
        client.send(request, stream=True)
        assert tape.kept == []
        tape.takes[0].left()
        over.set()
        client.close()
    assert [(each.ended, each.status) for each in tape.kept] == [("cancelled", 200)]


def test_an_answer_that_has_no_body_is_whole_though_nobody_reads_it() -> None:
    with raw([head(status="204 No Content")]) as server, taped() as tape:
        client = MODULES["httpx2"].Client(trust_env=False)
        client.send(client.build_request("GET", server.url), stream=True).close()
        client.close()
    assert [(each.ended, each.status) for each in tape.kept] == [("complete", 204)]


def test_a_generator_that_nobody_reads_on_is_one_that_was_left() -> None:
    over = threading.Event()
    with raw([STREAMED, chunk(FRAME), over]) as server, taped() as tape:
        client = MODULES["httpx2"].Client(trust_env=False)
        response = client.send(client.build_request("GET", server.url), stream=True)
        reading = response.iter_raw()
        assert next(reading) == FRAME
        del reading
        response.close()
        over.set()
        client.close()
    assert [(each.ended, each.body) for each in tape.kept] == [("cancelled", FRAME)]


@pytest.mark.parametrize("library", MODULES)
@pytest.mark.parametrize("sent", [False, True], ids=["head", "body"])
def test_control_c_during_a_wait_is_recorded_as_a_client_that_left(
    library: str, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_args: Any) -> Any:
        raise KeyboardInterrupt

    kind = MODULES[library].HTTPTransport
    if sent:
        stream = sys.modules[f"{library}._transports.default"].ResponseStream
        monkeypatch.setattr(stream, "__iter__", interrupted)
    else:
        monkeypatch.setattr(kind, "handle_request", interrupted)
    with raw([STREAMED, chunk(FRAME), LAST]) as server, taped() as tape:
        with pytest.raises(KeyboardInterrupt):
            ask(library, "sync", server.url)
        if not sent:
            socket.create_connection(server.address).close()
    assert [each.ended for each in tape.kept] == ["cancelled"]
    assert (tape.kept[0].status is None) == (not sent)


def test_what_never_went_out_is_not_recorded() -> None:
    with taped() as tape:
        heard = ask("httpx2", "sync", "gopher://127.0.0.1/")
    assert isinstance(heard.error, MODULES["httpx2"].UnsupportedProtocol)
    assert tape.kept == []


def test_an_error_that_nobody_knows_ends_what_there_was() -> None:
    with taped() as tape:
        take = tape.begin(Request("POST", "/"))
        take.answered(200, "", ())
        take.came(b"one")
        take.failed(ZeroDivisionError())
    assert [(each.ended, each.body) for each in tape.kept] == [("cancelled", b"one")]


def test_a_body_that_never_ends_is_kept_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.transport.cassettes.recording.MOST", 10)
    steps = [STREAMED, *[chunk(b"1234")] * 4, LAST]
    with raw([*steps]) as server, taped() as tape:
        assert ask("httpx2", "sync", server.url).body == b"1234" * 4
    assert [(each.ended, each.body) for each in tape.kept] == [("cancelled", b"1234" * 2)]


def test_a_time_limit_without_a_library_is_one() -> None:
    with taped() as tape:
        tape.begin(Request("POST", "/")).failed(TimeoutError())
    assert [(each.ended, each.status) for each in tape.kept] == [("timeout", None)]


def test_a_coded_body_that_breaks_off_is_kept_as_far_as_it_can_be_read() -> None:
    import gzip

    text = b"".join([b"data: %d\n\n" % n for n in range(9999)])
    coded = gzip.compress(text)
    lines = ["content-encoding: gzip", f"content-length: {len(coded)}"]
    with raw([head(*lines), coded[:-200]]) as server, taped() as tape:
        heard = ask("httpx2", "sync", server.url, raw=False)
    assert isinstance(heard.error, MODULES["httpx2"].RemoteProtocolError)
    [kept] = tape.kept
    assert kept.headers == ()
    assert kept.body == heard.body
    assert text.startswith(kept.body)
    assert kept.body


# --- played again


def played(library: str, kind: str, given: Interaction, **options: Any) -> Any:
    """What a client has of an interaction that is played, without any network."""
    with taped() as tape:
        tape.course = Course(given, at_once=True)
        return ask(library, kind, "http://provider.invalid/", **options)


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        ("torn", "RemoteProtocolError"),
        ("reset", "ReadError"),
        ("timeout", "ReadTimeout"),
        ("cancelled", "RemoteProtocolError"),
    ],
)
@clients
def test_what_broke_off_breaks_off_again(library: str, kind: str, ended: Any, error: str) -> None:
    with taped() as tape:
        take = tape.begin(Request("POST", "/"))
        take.answered(206, "Some", (("x-name", "caf\xe9"),))
        take.came(b"one")
        take.came(b"two")
        take.over(ended)
    heard = played(library, kind, tape.kept[0])
    assert heard.chunks == [b"one", b"two"]
    assert type(heard.error) is getattr(MODULES[library], error)
    assert (heard.status, heard.headers) == (206, [("x-name", "caf\xe9")])
    left = played(library, kind, tape.kept[0], stop_after=2)
    assert left.error is None


@pytest.mark.parametrize("library", MODULES)
@pytest.mark.parametrize("answered", [False, True], ids=["head", "body"])
def test_a_task_that_another_one_broke_off_can_be_broken_off_again(
    library: str, answered: bool
) -> None:
    """Though nothing of it takes any time."""
    given = Interaction(request=Request("GET", "/"), ended="cancelled")
    if answered:
        given = replace(given, status=200, chunks=(Chunk(0, b"one"), Chunk(0, b"two")))

    async def main() -> None:
        asked = asyncio.Event()

        async def read() -> None:
            if not answered:
                asked.set()
            async with (
                MODULES[library].AsyncClient() as client,
                client.stream("GET", "http://provider.invalid/") as response,
            ):
                async for _ in response.aiter_raw():
                    asked.set()

        reading = asyncio.create_task(read())
        await asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    with taped() as tape:
        tape.course = Course(given, at_once=True)
        asyncio.run(main())


@clients
def test_headers_that_others_wrote_as_text_go_out_as_text(library: str, kind: str) -> None:
    given = Interaction(request=Request("GET", "/"), status=200, headers=(("x-price", "5 \u20ac"),))
    heard = played(library, kind, given)
    assert (heard.error, heard.headers) == (None, [("x-price", "5 \u20ac")])


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        ("refused", "ConnectError"),
        ("dropped", "RemoteProtocolError"),
        ("reset", "ReadError"),
        ("timeout", "ReadTimeout"),
    ],
)
@clients
def test_what_had_no_answer_has_none_again(library: str, kind: str, ended: Any, error: str) -> None:
    heard = played(library, kind, Interaction(request=Request("POST", "/"), ended=ended))
    assert type(heard.error) is getattr(MODULES[library], error)
    assert heard.status == 0


@clients
def test_recorded_times_are_waited_and_a_time_limit_of_the_client_holds(
    library: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    time = 0

    def sleep(seconds: float) -> None:
        nonlocal time
        slept.append(round(seconds, 6))
        time += round(seconds * 1_000_000_000)

    async def sleep_async(seconds: float) -> None:
        sleep(seconds)

    monkeypatch.setattr("harness.transport.cassettes.playback.time.sleep", sleep)
    monkeypatch.setattr("harness.transport.cassettes.playback.asyncio.sleep", sleep_async)
    with taped(lambda: time) as tape:
        take = tape.begin(Request("POST", "/"))
        time = 1_000_000_000
        take.answered(200, "", ())
        time = 3_000_000_000
        take.came(b"one")
        take.over("complete")
        begun = time
        tape.course = Course(tape.kept[0])
        heard = ask(library, kind, "http://provider.invalid/", timeout=5)
        assert heard.chunks == [b"one"]
        assert slept == [1, 2]
        assert time == begun + 3_000_000_000
        slept.clear()
        impatient = ask(library, kind, "http://provider.invalid/", timeout=1.5)
        assert isinstance(impatient.error, MODULES[library].ReadTimeout)
        assert slept == [1, 1.5]
        slept.clear()
        late = tape.begin(Request("POST", "/"))
        late.over("timeout")
        tape.course = Course(tape.kept[-1])
        assert isinstance(
            ask(library, kind, "http://provider.invalid/", timeout=7).error,
            MODULES[library].ReadTimeout,
        )
        assert slept == [7]
        slept.clear()
        patient = ask(library, kind, "http://provider.invalid/", timeout=None)
        assert isinstance(patient.error, MODULES[library].ReadTimeout)
        assert slept == [366 * 24 * 3600]


@pytest.mark.parametrize("library", MODULES)
def test_a_client_on_an_event_loop_of_another_kind_waits_on_that(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def go() -> list[bytes]:
        request = MODULES[library].Request("GET", "http://provider.invalid/")
        response = await MODULES[library].AsyncHTTPTransport().handle_async_request(request)
        return [data async for data in response.stream]

    monkeypatch.setattr("anyio.sleep", sleep)
    given = Interaction(
        request=Request("GET", "/"),
        status=200,
        head_at=1_000_000_000,
        chunks=(Chunk(3_000_000_000, b"one"),),
        ended_at=3_000_000_000,
    )
    with taped(lambda: 0) as tape:
        tape.course = Course(given)
        with pytest.raises(StopIteration) as done:
            go().send(None)  # as a loop does that asyncio knows nothing of
    assert done.value.value == [b"one"]
    assert slept == [1, 3]


async def _never() -> AsyncIterator[bytes]:
    raise ZeroDivisionError
    yield b""


def test_a_body_that_cannot_be_read_is_the_clients_own_error() -> None:
    with taped() as tape, pytest.raises(ZeroDivisionError):
        ask("httpx2", "async", "http://provider.invalid/", content=_never())
    assert tape.kept == []
