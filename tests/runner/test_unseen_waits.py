"""Agents that wait for what the run does not see, in their turn or in a thread, end by a name."""

from __future__ import annotations

import _thread
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from harness.core.events import RunStopped
from harness.core.ports import Env
from harness.runner.files.load import load_text
from harness.runner.run import run
from harness.sim import stillness

SCENARIO = """
about: The agent waits for something real.
turns:
  - user: Go.
    model:
      - say: Gone.
"""
HERE = "tests/runner/test_unseen_waits.py:"


class Store:
    """Made before any run, and its lock is held by nobody who would let it go."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.lock.acquire()


STORE, FREE = Store(), Store()
FREE.lock.release()
SHARED = threading.Lock()


def opens_a_socket() -> None:
    socket.create_connection(("127.0.0.1", 9))


def waits_for_a_lock() -> None:
    lock = _thread.allocate_lock()
    lock.acquire()
    lock.acquire()


def waits_for_the_store() -> None:
    with STORE.lock:
        pass


class InItsTurn:
    def __init__(self, env: Env, work: Callable[[], None]) -> None:
        self.env = env
        self.work = work

    def turn(self, text: str | None) -> None:
        self.work()


class InAThread(InItsTurn):
    def turn(self, text: str | None) -> None:
        thread = threading.Thread(target=self.work)
        thread.start()
        thread.join()


def stop_of(agent: type[InItsTurn], work: Callable[[], None]) -> RunStopped:
    began = time.perf_counter()
    result = run(load_text(SCENARIO, "x.yaml"), lambda env: agent(env, work))
    assert time.perf_counter() - began < 3
    assert result.trace.stop is not None
    return result.trace.stop[1]


@pytest.mark.parametrize("agent", [InItsTurn, InAThread])
def test_a_socket_leaves_the_simulation(agent: type[InItsTurn]) -> None:
    stop = stop_of(agent, opens_a_socket)
    assert stop.reason == "out_of_simulation"
    assert stop.detail.startswith(HERE)
    assert " in opens_a_socket used socket." in stop.detail


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stillness, "PATIENCE", 0.1)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("work", [waits_for_a_lock, waits_for_the_store])
def test_a_turn_that_stands_still_is_stuck(work: Callable[[], None]) -> None:
    stop = stop_of(InItsTurn, work)
    assert stop.reason == "stuck"
    assert stop.detail.startswith("the thread 1 has stood still for 2 s of real time; it is at ")
    assert f" in {work.__name__}, called from {HERE}" in stop.detail
    assert stop.waits == ()


@pytest.mark.usefixtures("impatient")
def test_a_turn_that_stands_still_is_stuck_where_the_process_does_not_heed_ctrl_c() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background, and in workers
    try:
        assert stop_of(InItsTurn, waits_for_a_lock).reason == "stuck"
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("impatient")
def test_a_turn_that_stands_still_after_it_has_waited_is_stuck() -> None:
    class Shares(InItsTurn):
        def turn(self, text: str | None) -> None:
            thread = threading.Thread(target=self.hold)
            thread.start()
            time.sleep(1)
            with FREE.lock:
                pass

        def hold(self) -> None:
            with FREE.lock:
                time.sleep(3600)

    stop = stop_of(Shares, int)
    assert stop.reason == "stuck"
    assert "the thread 1 has stood still" in stop.detail
    [thread] = stop.waits
    assert thread.startswith(f"1.1: waits at {HERE}")
    assert not FREE.lock.locked()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("work", [waits_for_a_lock, waits_for_the_store])
def test_a_thread_that_stands_still_is_stuck(work: Callable[[], None]) -> None:
    stop = stop_of(InAThread, work)
    assert stop.reason == "stuck"
    assert stop.detail.startswith("the thread 1.1 has stood still for 2 s of real time; it is at ")
    assert f" in {work.__name__}" in stop.detail
    [turn] = stop.waits
    assert turn.startswith(f"1: waits at {HERE}")
    assert turn.endswith(" in InAThread.turn")


@pytest.mark.usefixtures("impatient")
def test_locks_of_objects_from_before_the_run_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("aaa_agent")
    module.STORE = STORE
    monkeypatch.setitem(sys.modules, "aaa_agent", module)
    stop = stop_of(InAThread, waits_for_the_store)
    assert "; made before the run, and locked: aaa_agent.STORE.lock" in stop.detail
    assert stop == stop_of(InAThread, waits_for_the_store)


@pytest.mark.usefixtures("impatient")
def test_a_job_that_has_just_begun_to_wait_is_said_to_be_started() -> None:
    class Begins(InItsTurn):
        def turn(self, text: str | None) -> None:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda work: work(), [lambda: time.sleep(1), waits_for_a_lock]))

    stop = stop_of(Begins, int)
    assert stop.reason == "stuck"
    [turn, job] = stop.waits
    assert turn.startswith("1: waits at ")
    assert job.startswith(f"1.job1: started at {HERE}")
    assert job.endswith(" in Begins.turn, has not waited yet")


def test_clocks_and_chance_are_the_runs_own_in_a_turn_and_in_its_threads() -> None:
    seen: list[tuple[float, float]] = []
    clock: Any = time
    chance: Any = random

    def look() -> None:
        seen.append((clock.time(), chance.random()))
        clock.sleep(60)
        seen.append((clock.time(), chance.random()))

    for agent in (InItsTurn, InAThread):
        run(load_text(SCENARIO, "x.yaml"), lambda env, agent=agent: agent(env, look))
    assert seen[:2] == seen[2:]
    assert seen[1][0] - seen[0][0] == 60


def test_a_lock_at_the_top_of_a_module_is_waited_for_in_virtual_time() -> None:
    order: list[str] = []

    class Shares(InItsTurn):
        def turn(self, text: str | None) -> None:
            thread = threading.Thread(target=self.hold)
            thread.start()
            time.sleep(1)
            with SHARED:
                order.append("turn")
            thread.join()

        def hold(self) -> None:
            with SHARED:
                time.sleep(3600)
                order.append("thread")

    result = run(load_text(SCENARIO, "x.yaml"), lambda env: Shares(env, list))
    assert order == ["thread", "turn"]
    assert result.trace.entries[-1].at == 3600 * 10**9
