"""Clients that reach the scripted provider without a network, through the vendors' libraries."""

from __future__ import annotations

import gc
import sys
from typing import Any

import httpx2
import openai
import pytest

from harness.core.errors import UsageError
from harness.core.events import ReplyEnded
from harness.fakes.script import Reply
from harness.transport.exchange import Broken
from harness.transport.framing import Framing
from harness.transport.in_memory import client
from harness.transport.libraries import library
from tests.transport.sdks import ASYNC, CASES, FULL, SYNC, World, check, world
from tests.transport.slow import ERRORS, Slow, giving

URL = "http://provider.test"


def make(made: World, name: str = "httpx2", *, sync: bool = False) -> Any:
    return client(name, made.provider.answer, URL, made.blocking.call if sync else None)


@pytest.mark.parametrize(("sdk", "framing"), CASES)
def test_an_asynchronous_sdk_hears_what_the_script_says(sdk: str, framing: Framing) -> None:
    with world(FULL, framing=framing) as made:
        check(made.run(ASYNC[sdk](make(made))), sdk)
        assert made.kinds()[-1] == "ReplyEnded"
        assert made.kernel.now() >= 2_500_000_000


@pytest.mark.parametrize(("sdk", "framing"), CASES)
def test_a_synchronous_sdk_hears_what_the_script_says(sdk: str, framing: Framing) -> None:
    with world(FULL, framing=framing) as made:
        check(made.play(lambda: SYNC[sdk](make(made, sync=True))), sdk)
        assert made.kinds()[-1] == "ReplyEnded"
        assert made.kernel.now() >= 2_500_000_000


@pytest.mark.parametrize("sdk", SYNC)
def test_a_whole_reply_is_heard(sdk: str) -> None:
    with world(FULL) as made:
        check(made.run(ASYNC[sdk](make(made), whole=True)), sdk)
    with world(FULL) as made:
        check(made.play(lambda: SYNC[sdk](make(made, sync=True), whole=True)), sdk)


def times_of(
    made: World, answer: Any, name: str, *, sync: bool, timeout: float | None = 5
) -> list[float]:
    """Read an answer through a client, and give the times of its chunks, in seconds."""
    times: list[float] = []

    async def read() -> None:
        async with client(name, answer, URL) as asking:
            asking.timeout = timeout
            async with asking.stream("POST", "/v1/x", content=b"x") as response:
                assert response.headers["x-name"] == "value"
                times.extend([made.kernel.now() / 1e9 async for _chunk in response.aiter_raw()])

    def read_sync() -> None:
        with client(name, answer, URL, made.blocking.call) as asking:
            asking.timeout = timeout
            with asking.stream("POST", "/v1/x", content=b"x") as response:
                times.extend([made.kernel.now() / 1e9 for _chunk in response.iter_raw()])

    if sync:
        made.play(read_sync)
    else:
        made.run(read())
    return times


BOTH = pytest.mark.parametrize("name", ["httpx", "httpx2"])
WAYS = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])


@BOTH
@WAYS
def test_chunks_come_when_they_are_there(name: str, sync: bool) -> None:
    with world() as made:
        exchange = Slow(1, 4, 4)
        assert times_of(made, giving(exchange, after=3), name, sync=sync) == [4, 8, 12]
        assert exchange.closed


@BOTH
@WAYS
@pytest.mark.parametrize(("pauses", "after"), [((1,), 6), ((1, 6), 0)], ids=["head", "chunk"])
def test_each_wait_is_as_long_as_the_client_allows(
    name: str, sync: bool, pauses: tuple[float, ...], after: float
) -> None:
    with world() as made:
        with pytest.raises(library(name).client.ReadTimeout, match="timed out"):
            times_of(made, giving(Slow(*pauses), after=after), name, sync=sync)
        assert made.kernel.now() == (5 if after else 6) * 1_000_000_000


@BOTH
@WAYS
def test_a_client_without_a_limit_waits(name: str, sync: bool) -> None:
    with world() as made:
        answer = giving(Slow(9_000), after=1_000)
        assert times_of(made, answer, name, sync=sync, timeout=None) == [10_000]


@BOTH
@WAYS
@pytest.mark.parametrize("how", ERRORS)
def test_a_connection_that_breaks_is_an_error_of_the_library(
    name: str, sync: bool, how: Any
) -> None:
    kind, text = ERRORS[how]
    error = getattr(library(name).client, kind)
    with world() as made, pytest.raises(error, match=text):
        times_of(made, giving(Broken(how, "it breaks")), name, sync=sync)
    with world() as made:
        exchange = Slow(1, breaks=how)
        with pytest.raises(error, match=text):
            times_of(made, giving(exchange), name, sync=sync)
        assert exchange.closed


def test_a_consumer_that_leaves_closes_the_reply() -> None:
    with world(Reply(say="A long answer in several chunks.", chunk=4)) as made:

        async def leave() -> None:
            async with openai.AsyncOpenAI(api_key="k", http_client=make(made)) as sdk:
                asked: Any = {"model": "gpt-x", "messages": [{"role": "user", "content": "Go"}]}
                stream: Any = await sdk.chat.completions.create(**asked, stream=True)
                async with stream:
                    async for chunk in stream:
                        if chunk.choices[0].delta.content:
                            break

        made.run(leave())
        assert [e.event.end for e in made.recorder.trace() if isinstance(e.event, ReplyEnded)] == [
            "closed"
        ]


def test_a_client_makes_nothing_for_tls_and_reads_no_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise AssertionError("a context for TLS was made")

    monkeypatch.setattr("httpx2._transports.default.create_ssl_context", fail)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with world() as made:
        for sync in (False, True):
            assert make(made, sync=sync).trust_env is False
            gc.collect()


def test_a_library_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"unknown library for HTTP 'http' \(did you mean 'httpx"):
        library("http")


def test_how_to_get_a_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(UsageError, match=r"install it: pip install httpx$"):
        library("httpx")


def test_clients_are_of_the_librarys_own_kinds() -> None:
    with world() as made:
        assert isinstance(make(made), httpx2.AsyncClient)
        assert isinstance(make(made, sync=True), httpx2.Client)
