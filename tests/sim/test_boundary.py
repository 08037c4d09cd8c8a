"""What is not simulated is refused, with the user's line and the way out."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from harness.core.errors import OutOfSimulation
from harness.sim.kernel import Kernel

HERE = f"tests/sim/{Path(__file__).name}"

real_sleep = time.sleep


def blocking_sleep() -> None:
    time.sleep(0)


def blocking_run() -> None:
    subprocess.run(["true"], check=True)


async def connect() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


async def serve() -> None:
    await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)


async def resolve() -> None:
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


async def run_program() -> None:
    await asyncio.create_subprocess_exec("true")


async def run_shell() -> None:
    await asyncio.create_subprocess_shell("true")


async def catch_signal() -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, print)


async def read_descriptor() -> None:
    asyncio.get_running_loop().add_reader(0, print)


async def sleep_really() -> None:
    blocking_sleep()


async def join_thread() -> None:
    thread = threading.Thread(target=time.sleep, args=(1,))
    thread.start()
    thread.join()


async def resolve_at_once() -> None:
    socket.create_connection(("127.0.0.1", 9))


async def connect_at_once() -> None:
    with socket.socket() as connection:
        connection.connect(("127.0.0.1", 9))


async def run_at_once() -> None:
    blocking_run()


@pytest.mark.parametrize(
    ("reach", "what", "instead"),
    [
        (connect, "loop.create_connection()", "the env's model"),
        (serve, "loop.create_server()", "the env's model"),
        (resolve, "loop.getaddrinfo()", "the env's model"),
        (run_program, "loop.subprocess_exec()", "a fake tool"),
        (run_shell, "loop.subprocess_shell()", "a fake tool"),
        (catch_signal, "loop.add_signal_handler()", "a cancel() method"),
        (read_descriptor, "loop.add_reader()", "a fake tool"),
        (sleep_really, "time.sleep()", "await asyncio.sleep()"),
        (join_thread, "a wait for a real thread", "await asyncio's Event"),
        (resolve_at_once, "socket.getaddrinfo()", "the env's model"),
        (connect_at_once, "socket.connect()", "the env's model"),
        (run_at_once, "a subprocess", "a fake tool"),
    ],
)
def test_reaching_outside_names_the_line_and_what_to_do_instead(
    kernel: Kernel, reach: Callable[[], Any], what: str, instead: str
) -> None:
    task = kernel.spawn(reach(), "1")
    stop = kernel.run_until(task.done)
    error = task.exception()
    assert isinstance(error, OutOfSimulation)
    line = re.escape(f"{HERE}:") + rf"\d+ in ({reach.__name__}|blocking_\w+)"
    assert re.match(f"{line} used {re.escape(what)}, which the simulation", str(error))
    assert instead in str(error)
    assert (stop.reason, stop.detail) == ("out_of_simulation", str(error))
    assert kernel.escapes == [str(error)]


def test_an_error_that_the_agent_swallows_still_stops_the_run(kernel: Kernel) -> None:
    log: list[str] = []

    async def careless() -> None:
        for name in ("first", "second"):
            try:
                await run_program()
            except Exception:
                log.append(name)
            await asyncio.sleep(1)

    task = kernel.spawn(careless(), "1")
    stop = kernel.run_until(task.done)
    assert (stop.reason, stop.detail, log) == ("out_of_simulation", kernel.escapes[0], ["first"])
    assert stop.waits[0].startswith(f"1: waits at {HERE}:")
    stop = kernel.run_until(task.done)
    assert (stop.detail, log) == (kernel.escapes[1], ["first", "second"])
    assert kernel.run_until(task.done).reason == "done"


def test_a_thread_of_the_users_may_not_call_in(kernel: Kernel) -> None:
    caught: list[BaseException] = []

    def foreign() -> None:
        try:
            kernel.call_soon_threadsafe(print)
        except OutOfSimulation as error:
            caught.append(error)

    thread = threading.Thread(target=foreign)
    thread.start()
    thread.join()
    (error,) = caught
    assert "in foreign used call_soon_threadsafe from another thread" in str(error)
    assert kernel.run_until(lambda: False).reason == "out_of_simulation"


def test_the_runs_own_thread_may_call_in(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.call_soon_threadsafe(log.append, "before")

    async def main() -> None:
        asyncio.get_running_loop().call_soon_threadsafe(log.append, "within")

    kernel.spawn(main(), "1")
    kernel.settle()
    assert log == ["before", "within"]


def test_there_is_nothing_to_remove(kernel: Kernel) -> None:
    assert kernel.remove_reader(0) is False
    assert kernel.remove_writer(0) is False
    assert kernel.remove_signal_handler(signal.SIGINT) is False


def test_outside_of_a_run_the_process_is_free(kernel: Kernel) -> None:
    kernel.spawn(asyncio.sleep(1), "1")
    kernel.settle()
    time.sleep(0)
    thread = threading.Thread(target=real_sleep, args=(0,))
    thread.start()
    thread.join()
    subprocess.run(["true"], check=True)
    assert kernel.escapes == []


def test_another_thread_is_free_while_a_run_goes_on(kernel: Kernel) -> None:
    slept = threading.Lock()  # nothing stands before a lock, so the run can wait for it
    slept.acquire()
    go = threading.Event()

    def foreign() -> None:
        go.wait(10)
        time.sleep(0)
        slept.release()

    thread = threading.Thread(target=foreign)
    thread.start()

    async def main() -> bool:
        go.set()
        return slept.acquire(timeout=10)

    task = kernel.spawn(main(), "1")
    kernel.run_until(task.done)
    thread.join()
    assert task.result() is True


@pytest.mark.parametrize("file", ["/x/_pydevd_bundle/pydevd.py", "/x/debugpy/a.py", "/lib/bdb.py"])
def test_a_debugger_in_a_run_is_free(kernel: Kernel, file: str) -> None:
    space: dict[str, Any] = {"time": time, "threading": threading}
    stop = "def stop():\n  time.sleep(0)\n  threading.Event().wait(0.001)"
    exec(compile(stop, file, "exec"), space)

    async def main() -> None:
        space["stop"]()

    task = kernel.spawn(main(), "1")
    assert kernel.run_until(task.done).reason == "done"
    assert task.exception() is None


def test_a_debugger_is_free_whatever_the_users_functions_are_called(kernel: Kernel) -> None:
    def _run_batch() -> None:
        blocking_sleep()

    space: dict[str, Any] = {"call": _run_batch}
    exec(compile("def evaluate():\n  call()", "/x/debugpy/a.py", "exec"), space)

    async def main() -> None:
        space["evaluate"]()

    task = kernel.spawn(main(), "1")
    assert kernel.run_until(task.done).reason == "done"
    assert task.exception() is None


def test_what_a_callback_is_refused_is_told_once(kernel: Kernel) -> None:
    kernel.call_soon(blocking_sleep)
    kernel.spawn(sleep_really(), "1")
    assert kernel.run_until(lambda: False).reason == "out_of_simulation"
    assert len(kernel.escapes) == 2
    gc.collect()
    assert kernel.callback_errors == []


# --- names that modules hold


@pytest.fixture
def users_module(monkeypatch: pytest.MonkeyPatch) -> Callable[[], ModuleType]:
    """A module that holds two of the functions by names of its own, as if it was loaded anew."""

    def load() -> ModuleType:
        made = ModuleType("users")
        vars(made).update(nap=time.sleep, resolve=socket.getaddrinfo, pause=asyncio.sleep)
        monkeypatch.setitem(sys.modules, "users", made)
        return made

    return load


def test_a_name_that_a_module_holds_is_refused_too(
    kernel: Kernel, users_module: Callable[[], ModuleType]
) -> None:
    kernel.tear_down()
    for _ in range(2):  # the second has the name of the first
        users = users_module()
        real = dict(vars(users))
        later = Kernel()

        async def main(users: ModuleType = users) -> None:
            users.nap(0)

        task = later.spawn(main(), "1")
        assert later.run_until(task.done).reason == "out_of_simulation"
        assert "in test_a_name_that" not in later.escapes[0]
        assert " in main used time.sleep(), which" in later.escapes[0]
        assert vars(users)["resolve"] is not real["resolve"]
        assert vars(users)["pause"] is real["pause"]
        assert isinstance(task.exception(), OutOfSimulation)
        later.tear_down()
        assert vars(users) == real


def test_a_name_that_is_something_else_by_now_is_left_alone(
    users_module: Callable[[], ModuleType],
) -> None:
    users = users_module()
    Kernel().tear_down()
    slept: list[float] = []
    vars(users)["nap"] = slept.append
    del vars(users)["resolve"]
    kernel = Kernel()

    async def main() -> None:
        users.nap(1)

    task = kernel.spawn(main(), "1")
    assert kernel.run_until(task.done).reason == "done"
    kernel.tear_down()
    assert slept == [1]
    assert set(vars(users)) & {"nap", "resolve"} == {"nap"}


def test_a_function_that_a_test_takes_away_is_left_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "system")
    Kernel().tear_down()
    assert not hasattr(os, "system")


def test_a_module_that_loads_itself_when_it_is_touched_is_not_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Lazy(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    monkeypatch.setitem(sys.modules, "strange", 7)
    Kernel().tear_down()


# --- futures of other threads


def test_a_future_that_another_thread_completes_stops_the_run_by_its_name(
    kernel: Kernel, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whether the other thread is quick or slow, it is told nothing and nothing is printed."""
    go, gone = threading.Event(), threading.Lock()
    gone.acquire()
    future: Future[str] = Future()

    def complete() -> None:
        go.wait(10)
        future.set_result("late")
        gone.release()

    thread = threading.Thread(target=complete)
    thread.start()

    async def main(*, slow: bool) -> Any:
        waiting = asyncio.wrap_future(future)
        if not slow:
            go.set()
            gone.acquire(timeout=10)
        return await waiting

    for slow in (True, False):
        task = kernel.spawn(main(slow=slow), f"{slow}")
        stop = kernel.run_until(task.done)
        assert stop.reason == "out_of_simulation"
        assert " in main used a future that another thread completes, which the" in stop.detail
        assert stop.detail == kernel.escapes[-1]
    thread.join()
    kernel.tear_down()
    gc.collect()
    assert capfd.readouterr() == ("", "")


def test_a_thread_that_completes_a_future_when_all_is_over_is_told_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    kernel = Kernel()
    future: Future[str] = Future()
    kept: list[Any] = []

    async def main() -> None:
        kept.append(asyncio.wrap_future(future))

    kernel.spawn(main(), "1")
    kernel.settle()
    kernel.tear_down()
    thread = threading.Thread(target=future.set_result, args=("late",))
    thread.start()
    thread.join()
    assert capfd.readouterr() == ("", "")


def test_a_future_that_the_run_itself_completes_is_simulated(kernel: Kernel) -> None:
    future: Future[str] = Future()

    async def completes() -> None:
        await asyncio.sleep(1)
        future.set_result("in time")

    async def main() -> tuple[str, str]:
        loop = asyncio.get_running_loop()
        child = loop.create_task(completes())
        other = asyncio.run_coroutine_threadsafe(asyncio.sleep(1, "other"), loop)
        found = await asyncio.wrap_future(future), await asyncio.wrap_future(other)
        await child
        return found

    task = kernel.spawn(main(), "1")
    assert kernel.run_until(task.done).reason == "done"
    assert task.result() == ("in time", "other")


def test_a_refusal_at_the_end_of_a_run_does_not_stop_the_end() -> None:
    kernel = Kernel()
    log: list[str] = []

    async def leftover(name: str) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            try:
                await run_program()
            finally:
                log.append(name)

    for name in "ab":
        kernel.spawn(leftover(name), name)
    kernel.settle()
    kernel.tear_down()
    assert log == ["a", "b"]
