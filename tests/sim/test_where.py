"""Lines are named alike on every machine, and the line that is shown is the one that matters."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from pathlib import Path
from types import CodeType
from typing import Any

import anyio
import pytest

from harness.sim import where
from harness.sim.clock import VirtualClock
from harness.sim.kernel import Kernel
from tests.sim.common import never

HERE = f"tests/sim/{Path(__file__).name}"


def code_of(filename: str, source: str = "pass") -> CodeType:
    return compile(source, filename, "exec")


def numberless(text: str) -> str:
    return re.sub(r":\d+ in", ": in", text)


# --- names of files, lines and functions


@pytest.mark.parametrize(
    ("filename", "shown"),
    [
        ("/elsewhere/some/project/agent.py", "project/agent.py"),
        ("/agent.py", "agent.py"),
        ("agent.py", "agent.py"),
        ("<string>", "<string>"),
        ("/usr/lib/python3/site-packages/httpx/_client.py", "httpx/_client.py"),
        ("/x/site-packages/y/site-packages/z/a.py", "z/a.py"),
        ("/usr/lib/python3/dist-packages/six.py", "six.py"),
    ],
)
def test_a_file_is_named_without_what_differs_between_machines(filename: str, shown: str) -> None:
    assert where.show((code_of(filename), -1)) == f"{shown}:1 in <module>"


def test_a_file_below_the_working_directory_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (code_of(str(tmp_path / "src" / "deep" / "agent.py")), -1)
    monkeypatch.chdir(tmp_path)
    assert where.show(line) == "src/deep/agent.py:1 in <module>"
    monkeypatch.chdir(tmp_path / "..")
    assert where.show(line) == f"{tmp_path.name}/src/deep/agent.py:1 in <module>"


def test_equal_codes_of_two_files_are_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = code_of("/x/one/a.py"), code_of("/x/two/a.py")
    assert first == second
    monkeypatch.setattr(where, "_SHOWN_MAX", 1)
    for _ in range(2):
        assert where.show((first, -1)) == "one/a.py:1 in <module>"
        assert where.show((second, -1)) == "two/a.py:1 in <module>"
    assert len(where._shown) == 1


def test_a_virtual_environment_below_the_working_directory_makes_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ".venv" / "lib" / "site-packages" / "framework" / "core.py"
    assert where.show((code_of(str(path)), -1)) == "framework/core.py:1 in <module>"


def test_a_function_is_named_within_its_class_and_not_within_its_function() -> None:
    class Agent:
        async def turn(self) -> None: ...

    coroutine = Agent().turn()
    assert numberless(where.suspended(coroutine)) == f"{HERE}: in Agent.turn"
    coroutine.close()
    assert where.suspended(coroutine) == where.UNKNOWN


# --- where a task waits


async def on_event() -> None:
    await asyncio.Event().wait()


async def on_timeout() -> None:
    async with asyncio.timeout(60):
        await asyncio.sleep(60)


async def on_wait_for() -> None:
    await asyncio.wait_for(asyncio.sleep(60), 30)


async def on_gather() -> None:
    await asyncio.gather(asyncio.sleep(60), asyncio.sleep(60))


async def on_queue() -> None:
    await asyncio.Queue[int]().get()


async def on_anyio() -> None:
    with anyio.fail_after(60):
        await anyio.sleep(60)


async def stream() -> AsyncIterator[int]:
    yield 1
    await asyncio.sleep(60)
    yield 2


async def on_stream() -> None:
    async for _ in stream():
        pass


async def on_anext() -> None:
    numbers = stream()
    await anext(numbers)
    await anext(numbers, None)


class Awaitable:
    def __await__(self) -> Generator[Any, None, None]:
        yield from asyncio.sleep(60).__await__()


async def on_awaitable() -> None:
    await Awaitable()


@contextlib.asynccontextmanager
async def resource() -> AsyncIterator[None]:
    await asyncio.sleep(60)
    yield


async def on_context() -> None:
    async with resource():
        pass


async def recursive(depth: int = 50) -> None:
    if depth:
        await recursive(depth - 1)
    else:
        await on_event()


@pytest.mark.parametrize(
    ("main", "function"),
    [
        (on_event, "on_event"),
        (on_timeout, "on_timeout"),
        (on_wait_for, "on_wait_for"),
        (on_gather, "on_gather"),
        (on_queue, "on_queue"),
        (on_anyio, "on_anyio"),
        (on_stream, "stream"),
        (on_anext, "stream"),
        (on_awaitable, "Awaitable.__await__"),
        (on_context, "resource"),
        (recursive, "on_event"),
    ],
)
def test_a_task_waits_at_its_innermost_line_of_the_users_code(
    kernel: Kernel, main: Callable[[], Coroutine[Any, Any, None]], function: str
) -> None:
    kernel.spawn(main(), "1")
    kernel.settle()
    assert numberless(kernel.alive()[0].where) == f"{HERE}: in {function}"


def test_the_line_is_that_of_the_await(kernel: Kernel) -> None:
    async def main() -> None:
        await asyncio.sleep(0)

        await asyncio.Event().wait()

    kernel.spawn(main(), "1")
    kernel.settle()
    line = main.__code__.co_firstlineno + 3
    assert kernel.alive()[0].where == f"{HERE}:{line} in main"


def of_library(source: str) -> Any:
    """The function `run` of an installed library."""
    names: dict[str, Any] = {"asyncio": asyncio}
    exec(code_of("/x/site-packages/framework/core.py", source), names)
    return names["run"]


def test_a_task_of_a_library_waits_in_the_library(kernel: Kernel) -> None:
    run = of_library("async def run():\n    await asyncio.sleep(60)")
    kernel.spawn(run(), "1")
    kernel.settle()
    assert kernel.alive()[0].where == "framework/core.py:2 in run"


def test_the_kernels_own_clock_is_not_where_a_task_waits(kernel: Kernel) -> None:
    async def main() -> None:
        await VirtualClock(kernel).sleep(1)

    kernel.spawn(main(), "1")
    kernel.settle()
    assert numberless(kernel.alive()[0].where) == f"{HERE}: in main"


def test_a_task_of_asyncio_alone_waits_in_asyncio(kernel: Kernel) -> None:
    kernel.spawn(asyncio.sleep(60), "1")
    kernel.settle()
    assert numberless(kernel.alive()[0].where) == "asyncio/tasks.py: in sleep"


def test_something_that_says_nothing_waits_in_an_unknown_place() -> None:
    assert where.suspended(object()) == where.UNKNOWN


# --- which line led here


def test_a_task_is_created_by_the_users_line_and_not_by_the_librarys(kernel: Kernel) -> None:
    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(on_event)

    kernel.spawn(main(), "1")
    kernel.settle()
    assert [numberless(info.created) for info in kernel.alive()] == [
        f"{HERE}: in test_a_task_is_created_by_the_users_line_and_not_by_the_librarys",
        f"{HERE}: in main",
    ]


def test_where_no_user_takes_part_the_librarys_line_is_named(kernel: Kernel) -> None:
    async def child() -> None:
        await asyncio.Event().wait()

    run = of_library("async def run(loop, coro):\n    loop.create_task(coro)")
    kernel.spawn(run(kernel, child()), "1")
    kernel.settle()
    assert kernel.alive()[0].created == "framework/core.py:2 in run"


def test_a_callback_of_no_task_has_its_own_line(kernel: Kernel) -> None:
    def callback() -> None:
        kernel.create_task(on_event())

    kernel.call_soon(callback)
    kernel.settle()
    assert numberless(kernel.alive()[0].created) == f"{HERE}: in callback"


def test_a_generator_is_closed_by_nobodys_line(kernel: Kernel) -> None:
    async def slow() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(60)

    async def main() -> None:
        await anext(slow())

    kernel.spawn(main(), "1")
    kernel.settle()
    (info,) = kernel.alive()
    assert info.path == "gen.slow.1"
    assert numberless(info.where) == f"{HERE}: in slow"
    assert info.created == where.UNKNOWN
    kernel.run_until(never)
