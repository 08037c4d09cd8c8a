"""What was recorded, played again: when chunks come, in which pieces, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.fakes.script import DoneTwice
from harness.fakes.wire_faults import Dropped, Http, Stall
from harness.transport.cassettes.form import Chunk, Ended, Interaction
from harness.transport.cassettes.playing import Course, Player, Timing, Wait
from harness.transport.exchange import Broken
from harness.transport.in_memory import client
from harness.transport.journal import Journal
from harness.transport.loopback import client as connected
from harness.transport.server import Server
from harness.wire.http import Request
from tests.transport.sdks import World, world

S = 1_000_000_000
URL = "http://provider.test"
ASKED = Request("POST", f"{URL}/v1/chat/completions", (), b'{"model": "m", "messages": []}')
STREAM = (("content-type", "text/event-stream"),)
HEARD = Interaction(
    request=ASKED,
    protocol="openai_chat",
    status=200,
    headers=STREAM,
    chunks=(
        Chunk(2 * S, b"data: 1\n\ndata: 2\n"),
        Chunk(3 * S, b"\ndata: 3\n\n"),
        Chunk(5 * S, b"data: 4\n\n"),
    ),
    head_at=S,
    ended_at=6 * S,
)
LOST = Interaction(request=ASKED, protocol="openai_chat", head_at=2 * S, ended_at=2 * S)


class Shelf:
    """Gives what was recorded in its order, whatever is asked."""

    def __init__(self, *interactions: Interaction) -> None:
        self.interactions: Sequence[Interaction] = interactions
        self.left = list(interactions)

    def take(self, _request: Request) -> Interaction:
        return self.left.pop(0)

    def index_of(self, interaction: Interaction) -> int:
        return next(at for at, each in enumerate(self.interactions) if each is interaction)


def player(*given: Interaction, **how: Any) -> Player:
    return Player(Shelf(*given), now=lambda: 1_700_000_000, **how)


def told(made: World, asking: Any, limit: float | None) -> list[tuple[float, bytes]]:
    """The chunks that a client hears, and when; an error last, by its name."""
    heard: list[tuple[float, bytes]] = []

    async def read() -> None:
        asking.timeout = limit
        try:
            async with asking, asking.stream("POST", "/v1/x", content=b"x") as response:
                async for chunk in response.aiter_raw():
                    heard.append((made.kernel.now() / S, chunk))  # noqa: PERF401 - and keeps them
        except Exception as error:
            heard.append((made.kernel.now() / S, type(error).__name__.encode()))

    made.run(read())
    return heard


def played(
    given: Interaction, *, limit: float | None = None, carrier: Any = client, **how: Any
) -> list[tuple[float, bytes]]:
    with world() as made:
        return told(made, carrier("httpx2", player(given, **how).answer, URL), limit)


CHUNKS = [chunk.data for chunk in HEARD.chunks]


@pytest.mark.parametrize("carrier", [client, connected])
@pytest.mark.parametrize(
    ("timing", "times"),
    [
        ("recorded", [2, 3, 5]),
        (0.5, [1, 1.5, 2.5]),
        (2, [4, 6, 10]),
        ("zero", [0] * 3),
        (0, [0] * 3),
    ],
)
def test_chunks_come_at_the_recorded_times(
    timing: Timing, times: list[float], carrier: Any
) -> None:
    heard = played(HEARD, timing=timing, carrier=carrier)
    assert heard == list(zip(times, CHUNKS, strict=True))


def test_a_client_that_reads_late_finds_what_has_come_in_the_meantime() -> None:
    with world() as made:

        async def read() -> list[tuple[int, bytes]]:
            playing = await player(HEARD).answer(ASKED)
            await asyncio.sleep(3)
            return [(made.kernel.now() // S, chunk) async for chunk in playing]

        assert made.run(read()) == [(4, CHUNKS[0]), (4, CHUNKS[1]), (5, CHUNKS[2])]


@pytest.mark.parametrize("carrier", [client, connected])
@pytest.mark.parametrize(
    ("ended", "timing", "error", "at"),
    [
        ("torn", "recorded", "RemoteProtocolError", 6),
        ("reset", "recorded", "ReadError", 6),
        ("timeout", "recorded", "ReadTimeout", 15),
        ("cancelled", "recorded", "ReadTimeout", 15),
        ("torn", "zero", "RemoteProtocolError", 0),
        ("reset", "zero", "ReadError", 0),
        ("timeout", "zero", "ReadTimeout", 0),
        ("cancelled", "zero", "RemoteProtocolError", 0),
    ],
)
def test_it_ends_as_it_did(
    ended: Ended, timing: Timing, error: str, at: float, carrier: Any
) -> None:
    given = replace(HEARD, ended=ended)
    heard = played(given, timing=timing, limit=10, carrier=carrier)
    assert [chunk for _at, chunk in heard] == [*CHUNKS, error.encode()]
    assert heard[-1][0] == at


@pytest.mark.parametrize(
    ("ended", "timing", "error", "at"),
    [
        ("refused", "recorded", "ConnectError", 2),
        ("dropped", "recorded", "RemoteProtocolError", 2),
        ("timeout", "recorded", "ReadTimeout", 10),
        ("cancelled", "recorded", "ReadTimeout", 10),
        ("refused", "zero", "ConnectError", 0),
        ("timeout", "zero", "ReadTimeout", 0),
    ],
)
def test_what_had_no_answer_has_none(ended: Ended, timing: Timing, error: str, at: float) -> None:
    assert played(replace(LOST, ended=ended), timing=timing, limit=10) == [(at, error.encode())]


# --- what is laid over it


def test_a_body_comes_in_other_pieces() -> None:
    heard = played(HEARD, split=4)
    assert b"".join([chunk for _at, chunk in heard]) == HEARD.body
    assert [len(chunk) for _at, chunk in heard] == [4] * 9
    assert [at for at, _chunk in heard] == [2, 2, 2, 2, 3, 3, 5, 5, 5]


def test_faults_happen_to_interactions_by_their_number() -> None:
    faults = {2: Http(429, "slow down"), 3: Dropped()}
    with world() as made:
        asked = player(HEARD, replace(HEARD, begun=1), replace(HEARD, begun=2), faults=faults)
        asking = client("httpx2", asked.answer, URL)
        assert told(made, asking, None)[0] == (2, CHUNKS[0])
        late = told(made, client("httpx2", asked.answer, URL), None)
        assert b"slow down" in late[0][1]
        [(_at, error)] = told(made, client("httpx2", asked.answer, URL), None)
        assert error == b"RemoteProtocolError"


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"split": 0}, "split is 0; expected a number of bytes, from 1"),
        ({"split": "7"}, "split is '7'; expected a number of bytes, from 1"),
        ({"split": 1.5}, "split is 1.5; expected a number of bytes, from 1"),
        ({"timing": -1}, "timing is -1; expected recorded, zero, or a number from 0"),
        ({"timing": float("inf")}, "timing is inf; expected"),
        ({"timing": float("nan")}, "timing is nan; expected"),
        ({"timing": "fast"}, "timing is 'fast'; expected"),
        (
            {"faults": {2: Dropped()}},
            "there is no interaction 2 for the fault dropped; the cassette ",
        ),
        (
            {"faults": {0: Dropped()}},
            "there is no interaction 0 for the fault dropped; the cassette ",
        ),
        (
            {"faults": {"1": Dropped()}},
            "there is no interaction '1' for the fault dropped; the cassette ",
        ),
        ({"faults": [Dropped()]}, "faults is a list; expected them by number: {1: ...}"),
        ({"faults": {1: "torn"}}, "the fault of interaction 1 is 'torn'; expected a fault as in "),
        ({"faults": {1: DoneTwice()}}, "the fault done_twice cannot happen to the recorded POST"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(how: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        player(HEARD, **how)
    assert str(caught.value).startswith(message)


# --- to others than asynchronous clients


def test_the_same_is_told_as_steps() -> None:
    course = player(replace(HEARD, ended="reset")).course(ASKED)
    assert (list(course.head()), course.number) == ([Wait(S)], 1)
    *steps, last = course.body()
    assert steps == [
        *(Wait(2 * S), CHUNKS[0]),
        *(Wait(3 * S), CHUNKS[1]),
        *(Wait(5 * S), CHUNKS[2]),
        Wait(6 * S),
    ]
    assert isinstance(last, Broken)
    assert (last.how, str(last)) == ("reset", "the recorded connection was reset")


def test_steps_without_waiting_are_chunks_alone() -> None:
    course = player(HEARD, timing="zero").course(ASKED)
    assert [*course.head(), *course.body()] == CHUNKS
    late = player(HEARD, timing="zero", faults={1: Stall(1, 2 * S)}).course(ASKED)
    assert list(late.body())[1] == Wait(2 * S)
    *_, error = Course(replace(HEARD, ended="timeout"), at_once=True).body()
    assert isinstance(error, TimeoutError)


@pytest.mark.parametrize(
    ("ended", "steps"),
    [("timeout", [Wait(2 * S), Wait(None)]), ("cancelled", [Wait(2 * S), Wait(None)])],
)
def test_what_waits_for_the_client_says_so(ended: Ended, steps: list[Wait]) -> None:
    assert list(Course(replace(LOST, ended=ended)).head()) == steps


def test_a_client_that_goes_ends_the_waiting() -> None:
    with world() as made:

        async def read() -> int:
            playing = await player(replace(HEARD, ended="cancelled", chunks=())).answer(ASKED)
            reading = asyncio.ensure_future(anext(playing, None))
            await asyncio.sleep(20)
            await playing.aclose()
            assert await reading is None
            return made.kernel.now() // S

        assert made.run(read()) == 21


# --- to real clients


def test_what_is_there_is_given_without_waiting() -> None:
    with world() as made:

        async def read() -> None:
            playing = await player(HEARD).answer(ASKED)
            assert playing.ready() is None
            await asyncio.sleep(2)
            assert (playing.ready(), playing.ready(), playing.ready()) == (*CHUNKS[:2], None)
            assert await anext(playing) == CHUNKS[2]
            assert playing.ready() is None
            await asyncio.sleep(1)
            assert playing.ready() == b""
            broken = await player(replace(HEARD, ended="torn")).answer(ASKED)
            await asyncio.sleep(9)
            assert [broken.ready() for _ in range(4)] == [*CHUNKS, None]
            silent = await player(replace(HEARD, ended="timeout", chunks=())).answer(ASKED)
            await asyncio.sleep(9)
            assert silent.ready() is None

        made.run(read())


@pytest.mark.parametrize(
    ("headers", "chunks", "streamed"),
    [
        (STREAM, HEARD.chunks, True),
        ((("content-type", "application/json"), ("content-length", "35")), HEARD.chunks, False),
        ((("content-type", "application/json"),), HEARD.chunks, True),
        ((("content-type", "application/json"),), HEARD.chunks[:1], False),
    ],
)
def test_a_body_whose_length_nobody_told_is_streamed(
    headers: Any, chunks: tuple[Chunk, ...], streamed: bool
) -> None:
    given = replace(HEARD, headers=headers, chunks=chunks)

    async def streams() -> bool:
        return (await player(given, timing="zero").answer(ASKED)).streamed

    assert asyncio.run(streams()) is streamed


def test_a_server_gives_it_to_any_client() -> None:
    async def ask() -> tuple[int, bytes]:
        given = replace(HEARD, chunks=HEARD.chunks * 50)
        server = Server(player(given, timing="zero").answer, Journal(lambda: 0))
        await server.start()
        async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as asking:
            response = await asking.post("/v1/chat/completions", content=b"{}")
        await server.close()
        return response.status_code, response.content

    assert asyncio.run(ask()) == (200, HEARD.body * 50)
