"""Reaching for the network is an error of the line that does it, in a run and outside of one."""

from __future__ import annotations

import asyncio
import inspect
import socket
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

import httpx2
import openai
import pytest

from harness.core.events import RunStopped
from harness.core.ports import Env
from harness.fakes.script import Reply
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from harness.sim.hold import swap_also
from harness.transport.guard import NetworkUsed, no_network
from harness.transport.router import swaps
from tests.transport.sdks import world

swap_also(swaps)

URL = "http://api.example.org/v1/nothing"


async def by_httpx2() -> None:
    async with httpx2.AsyncClient() as client:
        await client.get(URL)


async def by_httpx() -> None:
    async with import_module("httpx").AsyncClient() as client:
        await client.get(URL)


async def by_openai() -> None:
    async with openai.AsyncOpenAI(api_key="k", base_url="http://api.example.org/v1") as client:
        await client.models.list()


def by_requests() -> None:
    import_module("requests").get(URL, timeout=1)


def by_urllib() -> None:
    urllib.request.urlopen(URL)


def by_socket() -> None:
    socket.create_connection(("192.0.2.1", 80))


IN_TASKS = {
    "by httpx2 > httpcore2 > anyio": by_httpx2,
    "by httpx > httpcore > anyio": by_httpx,
    "by openai > httpx2 > httpcore2 > anyio": by_openai,
}
IN_THREADS = {"by requests > urllib3": by_requests, "()": by_urllib, "getaddrinfo()": by_socket}


@pytest.mark.parametrize(("by", "work"), IN_TASKS.items(), ids=IN_TASKS)
def test_a_task_of_a_run_that_reaches_out_is_told_of_by_its_line(by: str, work: Any) -> None:
    class Reaches:
        def __init__(self, env: Env) -> None:
            self.env = env

        async def turn(self, text: str) -> None:
            await work()

    (message,) = escapes(Reaches)
    assert message.startswith(f"tests/transport/test_guard.py:{line_of(work, 'await')} in by_")
    assert by in message
    assert "env.http()" in message


@pytest.mark.parametrize(("by", "work"), IN_THREADS.items(), ids=IN_THREADS)
def test_so_is_synchronous_code(by: str, work: Callable[[], None]) -> None:
    class Reaches:
        def __init__(self, env: Env) -> None:
            self.env = env

        def turn(self, text: str) -> None:
            work()

    (message,) = escapes(Reaches)
    assert message.startswith("tests/transport/test_guard.py:")
    assert f" in {work.__name__} used " in message
    assert by in message


def escapes(agent: Any) -> list[str]:
    """What the run of an agent was stopped for."""
    result = run(Scenario("reach", turns=(Turn("Go", (Reply(say="Hi.", optional=True),)),)), agent)
    stops = [e.event for e in result.trace if isinstance(e.event, RunStopped)]
    return [stop.detail for stop in stops if stop.reason == "out_of_simulation"]


def line_of(function: Any, word: str) -> int:
    """The number of the line of a function that has a word."""
    lines, first = inspect.getsourcelines(function)
    return first + next(at for at, text in enumerate(lines) if word in text)


@pytest.mark.parametrize("call", ["recv", "accept", "send"])
def test_a_socket_from_before_the_run_is_refused_at_once(call: str) -> None:
    one, other = socket.socketpair()
    with one, other, world() as made:

        def work() -> None:
            getattr(one, call)(*([] if call == "accept" else [b"x" if call == "send" else 1]))

        with pytest.raises(AssertionError, match=rf"socket\.{call}\(\), which the simulation"):
            made.play(work)


def test_outside_of_runs_only_this_machine_can_be_reached(refused: list[str]) -> None:
    with no_network() as told:
        with pytest.raises(NetworkUsed) as caught, httpx2.Client() as client:
            client.get(URL)
        assert told == [str(caught.value)]
        told.clear()
    assert "test_guard.py:" in str(caught.value)
    assert "reached for api.example.org:80 by httpx2 > httpcore2, and" in str(caught.value)
    refused.clear()


def test_what_is_caught_on_its_way_is_told_at_the_end(refused: list[str]) -> None:
    def caught() -> None:
        with suppress(NetworkUsed):
            socket.gethostbyname("api.example.org")

    told = r"in caught reached for api\.example\.org, and"
    with pytest.raises(NetworkUsed, match=told), no_network():
        caught()
    refused.clear()


def test_what_may_be_reached(tmp_path: Any) -> None:
    with no_network(), socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        socket.getaddrinfo(None, 80)
        with socket.socket(socket.AF_UNIX) as path, pytest.raises(FileNotFoundError):
            path.connect(str(tmp_path / "none"))


@pytest.mark.parametrize("host", ["localhost.", "LOCALHOST", "127.1", socket.gethostname()])
def test_this_machine_may_be_called_by_any_of_its_names(host: str) -> None:
    with no_network(), suppress(socket.gaierror):
        socket.getaddrinfo(host, 80)


def test_to_look_up_an_address_asks_nobody() -> None:
    with no_network():
        assert socket.getaddrinfo("192.0.2.1", 80)


async def by_asyncio() -> None:
    await asyncio.open_connection("api.example.org", 80)


async def by_name() -> None:
    await asyncio.get_running_loop().getnameinfo(("192.0.2.1", 80))


@pytest.mark.parametrize("work", [by_httpx2, by_openai, by_asyncio, by_name])
def test_a_name_that_a_thread_would_look_up_is_told_by_the_line_that_wants_it(
    work: Any, refused: list[str]
) -> None:
    with suppress(Exception):
        asyncio.run(work())
    told, refused[:] = [*refused], []
    assert told
    for message in told:
        assert "tests/transport/test_guard.py:" in message
        assert f"in {work.__name__}" in message
