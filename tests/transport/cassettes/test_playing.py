"""What was recorded, played again: when chunks come, in which pieces, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from harness.transport.cassettes.form import Chunk, Ended, Interaction
from harness.transport.cassettes.playing import Player, Timing
from harness.transport.in_memory import client
from harness.transport.loopback import client as connected
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
                    heard.append((made.kernel.now() / S, chunk))
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
