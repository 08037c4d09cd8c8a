"""Clients that an agent makes by itself, in a run: their requests come to the run's provider."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import httpx2
import openai
import pytest
import respx
from respx.mocks import HTTPCoreMocker

from harness.sim.hold import swap_also
from harness.transport.exchange import Broken
from harness.transport.framing import Framing
from harness.transport.libraries import library
from harness.transport.router import Routes, swaps
from tests.transport.sdks import ASYNC, CASES, FULL, SYNC, World, check, world
from tests.transport.slow import ERRORS, Slow, giving

swap_also(swaps)

BOTH = pytest.mark.parametrize("name", ["httpx", "httpx2"])
WAYS = pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
CHAT = "https://api.openai.com/v1/chat/completions"


def routed(made: World, answer: Any = None) -> Routes:
    call = partial(made.blocking.call, abortable=True)
    routes = Routes(lambda: answer or made.provider.answer, call, "http://provider.test")
    made.kernel.routes = routes
    return routes


@pytest.mark.parametrize(("sdk", "framing"), CASES)
def test_an_asynchronous_sdk_hears_what_the_script_says(sdk: str, framing: Framing) -> None:
    with world(FULL, framing=framing) as made:
        routes = routed(made)
        check(made.run(ASYNC[sdk]()), sdk)
        assert made.kinds()[-1] == "ReplyEnded"
        assert made.kernel.now() >= 2_500_000_000
        assert routes.router["provider"].calls.call_count == 1


@pytest.mark.parametrize(("sdk", "framing"), CASES)
def test_a_synchronous_sdk_hears_what_the_script_says(sdk: str, framing: Framing) -> None:
    with world(FULL, framing=framing) as made:
        routes = routed(made)
        check(made.play(SYNC[sdk]), sdk)
        assert made.kinds()[-1] == "ReplyEnded"
        assert made.kernel.now() >= 2_500_000_000
        assert routes.router["provider"].calls.call_count == 1


def test_without_it_the_run_is_stopped_at_the_line() -> None:
    with world(FULL) as made, pytest.raises(AssertionError, match="out_of_simulation") as caught:
        made.run(ASYNC["openai"]())
    assert "sdks.py" in str(caught.value)
    assert "by openai > httpx2 > httpcore2 > anyio" in str(caught.value)


def read(made: World, name: str, *, sync: bool, url: str = CHAT) -> list[float]:
    """Read an answer through a client that is made here; the times of its chunks, in seconds."""
    module = library(name).client
    times: list[float] = []

    async def reads() -> None:
        async with module.AsyncClient(timeout=5) as asking, asking.stream("POST", url) as response:
            times.extend([made.kernel.now() / 1e9 async for _chunk in response.aiter_raw()])

    def reads_sync() -> None:
        with module.Client(timeout=5) as asking, asking.stream("POST", url) as response:
            times.extend([made.kernel.now() / 1e9 for _chunk in response.iter_raw()])

    if sync:
        made.play(reads_sync)
    else:
        made.run(reads())
    return times


@BOTH
@WAYS
def test_chunks_come_when_they_are_there(name: str, sync: bool) -> None:
    with world() as made:
        exchange = Slow(1, 4, 4)
        routed(made, giving(exchange, after=3))
        assert read(made, name, sync=sync) == [4, 8, 12]
        assert exchange.closed


@BOTH
@WAYS
@pytest.mark.parametrize(("pauses", "after"), [((1,), 6), ((1, 6), 0)], ids=["head", "chunk"])
def test_each_wait_is_as_long_as_the_client_allows(
    name: str, sync: bool, pauses: tuple[float, ...], after: float
) -> None:
    with world() as made:
        routes = routed(made, giving(Slow(*pauses), after=after))
        with pytest.raises(library(name).client.ReadTimeout, match="timed out"):
            read(made, name, sync=sync)
        assert made.kernel.now() == (5 if after else 6) * 1_000_000_000
        (call,) = routes.router["provider"].calls
        assert call.has_response is (not after)


@BOTH
@WAYS
@pytest.mark.parametrize("how", ERRORS)
def test_a_connection_that_breaks_is_an_error_of_the_library(
    name: str, sync: bool, how: Any
) -> None:
    kind, text = ERRORS[how]
    error = getattr(library(name).client, kind)
    for answer in (giving(Broken(how, "it breaks")), giving(Slow(1, breaks=how))):
        with world() as made:
            routed(made, answer)
            with pytest.raises(error, match=text):
                read(made, name, sync=sync)


def test_all_of_the_hosts_own_paths_are_the_providers_and_of_others_none() -> None:
    with world() as made:
        routed(made, giving(Slow(1)))
        assert read(made, "httpx2", sync=False, url="http://provider.test/anything") == [1]
    with world() as made:
        routed(made, giving(Slow(1)))
        with pytest.raises(AssertionError, match="out_of_simulation"):
            read(made, "httpx2", sync=True, url="http://elsewhere.test/anything")


def test_a_client_from_before_the_run_is_answered_too() -> None:
    client = openai.AsyncOpenAI(api_key="k")

    async def ask() -> str:
        messages: Any = [{"role": "user", "content": "Go"}]
        said = await client.chat.completions.create(model="gpt-x", messages=messages)
        return said.choices[0].message.content or ""

    with world(FULL) as made:
        routed(made)
        assert made.run(ask()) == FULL.say


class OfHttpx2(HTTPCoreMocker):
    """What pytest-httpx2 brings."""

    name = "httpcore2"
    targets: ClassVar[list[str]] = [
        each.replace("httpcore.", "httpcore2.") for each in HTTPCoreMocker.targets
    ]

    @classmethod
    def from_sync_httpx_response(cls, httpx_response: Any, target: Any, **kwargs: Any) -> Any:
        return import_module("httpcore2").Response(
            status=httpx_response.status_code,
            headers=httpx_response.headers.raw,
            content=httpx_response.stream,
        )


@pytest.mark.parametrize(("name", "using"), [("httpx", "httpcore"), ("httpx2", "httpcore2")])
@WAYS
def test_a_tests_own_routes_go_first_and_the_rest_is_the_runs(
    name: str, using: str, sync: bool
) -> None:
    with respx.mock(using=using) as mine, world() as made:
        route = mine.post(CHAT).respond(stream=import_module("httpx").ByteStream(b"mine"))
        routed(made, giving(Slow(1, 1)))
        assert read(made, name, sync=sync) == [0]
        assert route.call_count == 1
    with respx.mock(using=using) as mine, world() as made:
        mine.post("https://elsewhere.test", name="else").respond()
        routed(made, giving(Slow(1, 1)))
        assert read(made, name, sync=sync) == [1, 2]
        mine.pop("else")


def test_routes_of_a_test_that_begin_in_a_run_go_first() -> None:
    with world() as made:
        routed(made, giving(Slow(1, 1)))

        async def ask() -> bytes:
            with respx.mock(using="httpcore2") as mine:
                mine.post(CHAT).respond(text="mine")
                async with httpx2.AsyncClient() as client:
                    return (await client.post(CHAT)).content

        assert made.run(ask()) == b"mine"


def test_what_clients_need_for_tls_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made_for: list[object] = []
    transports = import_module("httpx2._transports.default")
    real = transports.create_ssl_context

    def make(*args: Any, **options: Any) -> Any:
        made_for.append(options)
        return real(*args, **options)

    monkeypatch.setattr(transports, "create_ssl_context", make)

    async def clients() -> None:
        for _ in range(3):
            httpx2.AsyncClient()
        httpx2.AsyncClient(verify=False)
        await asyncio.sleep(0)

    with world() as made:
        routed(made)
        made.run(clients())
    assert len(made_for) == 2
    httpx2.Client().close()
    assert len(made_for) == 3


LATE = """
import sys
from harness import run
from harness.fakes.script import Reply
from harness.runner.scenario import Scenario, Turn

class Late:
    def __init__(self, env):
        pass

    async def turn(self, text):
        import openai
        async with openai.AsyncOpenAI(api_key="k") as client:
            messages = [{"role": "user", "content": text}]
            await client.chat.completions.create(model="gpt-x", messages=messages)

assert not {"httpx", "httpx2", "openai"} & sys.modules.keys()
scenario = Scenario("late", turns=(Turn("Go", (Reply(say="Hi."),)),))
first, second = run(scenario, Late), run(scenario, Late)
assert first.trace == second.trace
print(first.outcomes)
"""


def test_a_library_that_is_first_loaded_in_a_run_is_answered_too() -> None:
    command = [sys.executable, "-c", LATE]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.stdout == "(Completed(),)\n", said.stderr
