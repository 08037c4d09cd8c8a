"""What is not simulated is refused, with the user's line and the way out."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
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


async def use_thread() -> None:
    await asyncio.to_thread(print)


async def read_descriptor() -> None:
    asyncio.get_running_loop().add_reader(0, print)


async def sleep_really() -> None:
    blocking_sleep()


async def start_thread() -> None:
    threading.Thread(target=print).start()


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
        (use_thread, "loop.run_in_executor()", "without a thread"),
        (read_descriptor, "loop.add_reader()", "a fake tool"),
        (sleep_really, "time.sleep()", "await asyncio.sleep()"),
        (start_thread, "a real thread", "without a thread"),
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
    done = threading.Event()
    go = threading.Event()

    def foreign() -> None:
        go.wait(10)
        time.sleep(0)
        done.set()

    thread = threading.Thread(target=foreign)
    thread.start()

    async def main() -> bool:
        go.set()
        return done.wait(10)

    task = kernel.spawn(main(), "1")
    kernel.run_until(task.done)
    thread.join()
    assert task.result() is True


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
