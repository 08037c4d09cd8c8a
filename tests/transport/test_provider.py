"""A scripted provider: requests as bytes in, answers as bytes out, and the trace of it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from harness.core.choices import Choices
from harness.core.events import ReplyEnded
from harness.core.messages import ModelRequest, Usage, tool_result, user
from harness.core.trace import Recorder
from harness.fakes.model import FakeModel
from harness.fakes.place import Stage
from harness.fakes.script import Reply, ScriptedCall, Torn
from harness.fakes.wire_faults import CutAt, Stall
from harness.sim.kernel import Kernel
from harness.transport.exchange import Exchange
from harness.transport.framing import NOISY, PLAIN, Framing
from harness.transport.provider import Provider
from harness.wire import CODECS
from harness.wire.codec import Asked, Codec
from harness.wire.http import Request

T = TypeVar("T")
FULL = Reply(
    say="Let me look.",
    think="Two tools.",
    signature="sig",
    calls=(ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("clock", {})),
    usage=Usage(10, 5, 15),
)
MODELS = {
    "openai_chat": "gpt-x",
    "openai_responses": "gpt-x",
    "anthropic": "claude-x",
    "gemini": "gemini-3-x",
}


class World:
    """A provider on a kernel, and what it has recorded."""

    def __init__(self, *replies: Reply, framing: Framing = PLAIN) -> None:
        self.kernel = Kernel()
        self.recorder = Recorder(self.kernel.now, self.kernel.current_path)
        self.stage = Stage((), self.recorder)
        model = FakeModel(self.stage, self.recorder, Choices())
        self.provider = Provider(self.stage, model, lambda: 1_700_000_000, framing=framing)
        self.stage.start_turn(1, "Go", replies)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        task = self.kernel.spawn(work, "1")
        self.kernel.run_until(task.done)
        return task.result()

    def kinds(self) -> list[str]:
        return [type(each.event).__name__ for each in self.recorder.trace()]


@pytest.fixture
def worlds() -> Any:
    made: list[World] = []

    def make(*replies: Reply, framing: Framing = PLAIN) -> World:
        made.append(World(*replies, framing=framing))
        return made[-1]

    yield make
    for each in made:
        each.kernel.tear_down()


def asking(codec: Codec, *, stream: bool) -> Request:
    asked = Asked(ModelRequest(MODELS[codec.name], "", (user("Go"),)), stream)
    return codec.write(asked, base="http://provider.test", key="k")


async def read_all(exchange: Exchange) -> list[bytes]:
    return [chunk async for chunk in exchange]


async def read_ready(exchange: Exchange) -> list[bytes | None]:
    """All chunks, those that are there without waiting first; None where it had to be waited."""
    chunks: list[bytes | None] = []
    while True:
        while (chunk := exchange.ready()) is not None:
            if not chunk:
                return chunks
            chunks.append(chunk)
        chunks.append(None)
        try:
            chunks.append(await anext(exchange))
        except StopAsyncIteration:
            return chunks


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_what_is_there_can_be_taken_without_waiting(codec: Codec, worlds: Any) -> None:
    reply = Reply(say="a" * 100, think="Hm.", chunk=10, calls=(ScriptedCall("clock", {}),))
    took, waited = [worlds(reply, framing=framing) for framing in (PLAIN, PLAIN)]
    read = took.run(read_ready(took.run(took.provider.answer(asking(codec, stream=True)))))
    pieces = waited.run(read_all(waited.run(waited.provider.answer(asking(codec, stream=True)))))
    assert [chunk for chunk in read if chunk is not None] == pieces
    assert read.index(None) > 10  # behind all of the text
    assert took.kinds() == waited.kinds()


@pytest.mark.parametrize(
    ("reply", "framing", "ready"),
    [
        (Reply(say="abcd", chunk=1, each=5), PLAIN, 1),
        (Reply(say="abcd", chunk=1, fault=Torn(after=2)), PLAIN, 2),
        (Reply(say="abcd", chunk=1, fault=Stall(after=3)), PLAIN, 3),
        (Reply(say="abcd", chunk=1, fault=CutAt(byte=400)), PLAIN, 0),
        (Reply(say="abcd", chunk=1), Framing(1), 0),
        (Reply(calls=(ScriptedCall("clock", {}),)), PLAIN, 0),
    ],
    ids=["time", "torn", "stall", "cut", "split", "calls"],
)
def test_what_has_to_be_waited_for_is_not_there(
    reply: Reply, framing: Framing, ready: int, worlds: Any
) -> None:
    world = worlds(reply, framing=framing)
    exchange = world.run(world.provider.answer(asking(CODECS[3], stream=True)))
    read = world.run(read_ready(exchange))
    assert read.index(None) == ready


FRAMINGS = {
    "frames": PLAIN,
    "whole": Framing(None),
    "bytes": Framing(1),
    "noisy": Framing(noise=NOISY),
    "comments": Framing(comments=True),
    "crlf": Framing(crlf=True),
}


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_reply_comes_as_scripted(codec: Codec, framing: Framing, worlds: Any) -> None:
    world = worlds(FULL, framing=framing)
    exchange = world.run(world.provider.answer(asking(codec, stream=True)))
    decoder = codec.decoder()
    chunks = world.run(read_all(exchange))
    for chunk in chunks:
        decoder.feed(chunk)
    answer = decoder.end()
    assert answer.message.text == FULL.say
    assert [call.name for call in answer.message.calls] == ["weather", "clock"]
    assert answer.stopped == "calls"
    assert world.kinds()[-1] == "ReplyEnded"
    assert (len(chunks) == 1) is (framing.size is None)


def test_a_reply_is_over_for_the_script_with_the_frame_that_says_why(worlds: Any) -> None:
    world = worlds(Reply(say="Hi."))
    codec = CODECS[0]
    exchange = world.run(world.provider.answer(asking(codec, stream=True)))
    seen = b""
    while b'"finish_reason": "stop"' not in seen:
        assert "ReplyEnded" not in world.kinds()
        seen = world.run(exchange.__anext__())
    assert world.recorder.trace().entries[-1].event == ReplyEnded(
        "1.1", "complete", world.recorder.trace().entries[-1].event.message, None
    )
    world.run(exchange.aclose())


def test_a_client_that_goes_away_closes_the_reply(worlds: Any) -> None:
    world = worlds(Reply(say="A long answer that takes several chunks.", chunk=4))
    exchange = world.run(world.provider.answer(asking(CODECS[0], stream=True)))
    world.run(exchange.__anext__())
    world.run(exchange.aclose())
    (end,) = [e.event for e in world.recorder.trace() if isinstance(e.event, ReplyEnded)]
    assert end.end == "closed"


def test_a_task_that_is_cancelled_between_two_chunks_closes_the_reply(worlds: Any) -> None:
    world = worlds(Reply(say="Hi."))

    async def cancelled() -> None:
        exchange = await world.provider.answer(asking(CODECS[0], stream=True))
        task = asyncio.current_task()
        async for _chunk in exchange:
            assert task is not None
            task.cancel()

    with pytest.raises(asyncio.CancelledError):
        world.run(cancelled())
    (end,) = [e.event for e in world.recorder.trace() if isinstance(e.event, ReplyEnded)]
    assert end.end == "closed"


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_whole_reply(codec: Codec, worlds: Any) -> None:
    world = worlds(FULL)
    exchange = world.run(world.provider.answer(asking(codec, stream=False)))
    body = b"".join(world.run(read_all(exchange)))
    assert exchange.status == 200
    assert b"Let me look." in body
    assert world.kinds() == ["RequestSent", "Received", "Delta", "Delta", "ReplyEnded"]


def test_a_history_that_a_provider_refuses_gets_its_error(worlds: Any) -> None:
    world = worlds(FULL)
    asked = Asked(ModelRequest("gpt-x", "", (user("Go"), tool_result("c", "x"))))
    request = CODECS[0].write(asked)
    exchange = world.run(world.provider.answer(request))
    assert exchange.status == 400
    assert b"must be a response to a prece" in world.run(exchange.__anext__())
    assert [e.event.end for e in world.recorder.trace() if isinstance(e.event, ReplyEnded)] == [
        "refused"
    ]


def test_a_stream_that_tears_ends_without_its_end(worlds: Any) -> None:
    world = worlds(Reply(say="Hello there.", fault=Torn(1)))
    exchange = world.run(world.provider.answer(asking(CODECS[0], stream=True)))
    text = b"".join(world.run(read_all(exchange)))
    assert b'finish_reason": "' not in text
    assert b"[DONE]" not in text


def test_an_address_that_nobody_knows(worlds: Any) -> None:
    world = worlds(FULL)
    exchange = world.run(world.provider.answer(Request("GET", "/v1/models")))
    assert exchange.status == 404
    assert b"GET /v1/models is no request of a protocol that is known" in world.run(
        exchange.__anext__()
    )


def test_what_a_client_is_told_of_its_request_has_no_secret(worlds: Any) -> None:
    world = worlds()
    path = "/v1/chat/completions"
    for url, body, status in (
        (path, b'{"model": "m", "messages": [{"role": "sk-0123456789", "content": "x"}]}', 400),
        (path, b'{"model": "m", "messages": [{"role": "user", "content": "sk-0123456789"}]}', 404),
        ("/sk-0123456789?key=sk-0123456789", b"{}", 404),
    ):
        exchange = world.run(world.provider.answer(Request("POST", url, (), body)))
        told = b"".join(world.run(read_all(exchange)))
        assert exchange.status in (400, status)
        assert b"sk-0123456789" not in told
