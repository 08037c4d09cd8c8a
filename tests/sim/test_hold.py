"""A run holds the collector and what blocks, for as long as it lasts and not longer."""
# ruff: noqa: TID251, ASYNC251 - what is banned elsewhere is what is tested here

from __future__ import annotations

import _thread
import asyncio
import gc
import os
import random
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.sim import hold
from harness.sim.hold import kept
from harness.sim.kernel import Kernel


def state() -> list[Any]:
    return [
        gc.isenabled(),
        time.sleep,
        time.time,
        time.strftime,
        random.random,
        random._urandom,  # type: ignore[attr-defined]
        random.Random.seed,
        uuid.uuid4,
        os.urandom,
        threading.Thread.start,
        threading.Thread.join,
        threading.Condition.wait,
        _thread.start_new_thread,
        os.system,
        select.select,
        selectors.DefaultSelector.select,
        signal.signal,
        socket.getaddrinfo,
        socket.gethostbyname,
        socket.socket.connect,
        socket.socket.listen,
        subprocess.Popen.__init__,
        ThreadPoolExecutor.submit,
        asyncio.futures._chain_future,
        "set" in vars(asyncio.tasks),
        "connect" in vars(socket.socket),
    ]


def test_all_is_as_before_after_a_run() -> None:
    before = state()
    kernel = Kernel()
    assert not any(a == b for a, b in zip(before, state(), strict=True))
    kernel.tear_down()
    assert state() == before


def test_the_last_of_several_runs_lets_go() -> None:
    before = state()
    first, second = Kernel(), Kernel()
    first.tear_down()
    first.tear_down()
    assert not gc.isenabled()
    assert time.sleep is not before[1]
    second.tear_down()
    assert state() == before


def test_a_kernel_that_is_only_closed_lets_go_too() -> None:
    before = state()
    kernel = Kernel()
    kernel.close()
    kernel.close()
    assert state() == before


def test_a_process_without_collector_stays_without() -> None:
    gc.disable()
    try:
        Kernel().tear_down()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_tests_own_patch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    kernel = Kernel()
    time.sleep(1)
    kernel.tear_down()
    time.sleep(2)
    assert slept == [1, 2]


def test_the_run_after_a_patch_finds_the_real_function(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", slept.append)
        Kernel().tear_down()
    kernel = Kernel()
    time.sleep(0)
    kernel.tear_down()
    assert slept == []


def test_a_function_that_is_taken_away_in_a_run_is_left_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = state()
    kernel = Kernel()
    monkeypatch.delattr(os, "system")
    kernel.tear_down()
    assert not hasattr(os, "system")
    monkeypatch.undo()
    Kernel().tear_down()
    assert state() == before


def test_a_patch_made_during_a_run_is_kept() -> None:
    real = time.sleep
    kernel = Kernel()

    def patched(_seconds: float) -> None: ...

    time.sleep = patched
    kernel.tear_down()
    try:
        assert time.sleep is patched
    finally:
        time.sleep = real


@pytest.mark.parametrize("owner", [time, threading.Thread], ids=["module", "class"])
def test_a_patch_that_outlasts_its_run_is_no_trouble_for_the_next(
    owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end puts back what it had found: what stood in for the real function in the run."""
    before = state()
    name = "sleep" if owner is time else "join"
    kernel = Kernel()
    monkeypatch.setattr(owner, name, lambda *_arguments: None)
    kernel.tear_down()
    monkeypatch.undo()
    assert state() != before
    time.sleep(0)
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    Kernel().tear_down()
    assert state() == before


def test_the_collector_closes_no_generator_in_the_middle_of_a_run() -> None:
    """However much is allocated, a generator in a cycle is closed at the end of the run only."""

    def run(garbage: int) -> list[str]:
        kernel = Kernel()
        log: list[str] = []

        async def stream() -> AsyncIterator[int]:
            try:
                yield 1
            finally:
                log.append("closed")

        async def main() -> None:
            cycle: list[Any] = [stream()]
            await anext(cycle[0])
            cycle.append(cycle)
            del cycle
            keep = [[] for _ in range(garbage)]
            await asyncio.sleep(1)
            log.append("slept")
            del keep

        task = kernel.spawn(main(), "1")
        kernel.run_until(task.done)
        between = [[] for _ in range(garbage)]
        kernel.drain(10**10)
        log.append("drained")
        kernel.tear_down()
        del between
        return log

    assert run(0) == run(5_000) == ["slept", "drained", "closed"]


def test_what_a_run_leaves_is_collected_at_its_end() -> None:
    class Left:
        alive = 0

        def __init__(self) -> None:
            self.me = self
            Left.alive += 1

        def __del__(self) -> None:
            Left.alive -= 1

    kernel = Kernel()
    Left()
    assert Left.alive == 1
    kernel.tear_down()
    assert Left.alive == 0


def test_between_runs_that_follow_each_other_nothing_is_put_back() -> None:
    before = state()
    with kept():
        Kernel().tear_down()
        between = state()
        assert between[0] == before[0]  # the collector is not held
        assert not any(a == b for a, b in zip(before[1:], between[1:], strict=True))
        started = time.perf_counter_ns()
        assert time.perf_counter_ns() > started  # real time goes on by itself
        with kept():
            for _ in range(2):
                Kernel().tear_down()
        assert state() == between
    assert state() == before


def test_a_run_that_is_not_over_when_others_are_lets_go_at_its_end() -> None:
    before = state()
    with kept():
        kernel = Kernel()
    assert time.sleep is not before[1]
    kernel.tear_down()
    assert state() == before


class Unplaceable:
    def place(self) -> None:
        raise LookupError("no place")

    def lift(self) -> None:
        pass


def test_a_kernel_that_cannot_be_made_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = state()
    with monkeypatch.context() as patch:
        patch.setattr(hold._aliases, "swaps", lambda: [Unplaceable()])
        with pytest.raises(LookupError, match="no place"):
            Kernel()
    assert state() == before
    kernel = Kernel()
    assert not any(a == b for a, b in zip(before, state(), strict=True))
    kernel.tear_down()
    assert state() == before


def test_names_of_modules_that_are_loaded_between_runs_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        late.sleep(1)

    real = time.sleep
    late: Any = types.ModuleType("loaded_between_runs")
    with kept():
        Kernel().tear_down()
        late.sleep = real
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, late.__name__, late)
            kernel = Kernel()
            task = kernel.spawn(main(), "1")
            assert kernel.run_until(task.done).reason == "out_of_simulation"
            kernel.tear_down()


def test_a_patch_between_runs_is_seen_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> float:
        return time.time()

    with kept():
        Kernel().tear_down()
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: 7.0)
            kernel = Kernel()
            task = kernel.spawn(main(), "1")
            kernel.drain(0)
            kernel.tear_down()
            assert task.result() == 7.0
        kernel = Kernel()
        task = kernel.spawn(main(), "1")
        kernel.drain(0)
        kernel.tear_down()
        assert task.result() > 1_000


PATCHED: list[tuple[Any, str]] = [(time, "sleep"), (time, "time"), (threading.Thread, "join")]
IDS = ["guard", "clock", "method"]


def seen_in_a_run(name: str) -> Any:
    """What comes of a call in a run, by one of those names."""

    async def main() -> Any:
        match name:
            case "sleep":
                return time.sleep(0)
            case "join":
                return threading.main_thread().join()
        return time.time()

    kernel = Kernel()
    task = kernel.spawn(main(), "1")
    stop = kernel.drain(0)
    kernel.tear_down()
    return task.result() if stop.reason == "quiescent" else stop.reason


@pytest.mark.parametrize(("owner", "name"), PATCHED, ids=IDS)
def test_a_patch_that_ends_between_runs_leaves_the_next_as_ever(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state()
    usual = seen_in_a_run(name)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *_arguments: 7.0)
        patched = seen_in_a_run(name)
        with kept():
            assert seen_in_a_run(name) == patched
            patch.undo()
            assert seen_in_a_run(name) == usual
            patch.setattr(owner, name, lambda *_arguments: 7.0)
            assert seen_in_a_run(name) == patched
            patch.undo()
            assert seen_in_a_run(name) == usual
    assert state() == before


@pytest.mark.parametrize(("owner", "name"), PATCHED, ids=IDS)
def test_a_patch_that_ends_some_runs_later_is_gone_for_good(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end puts back the stand-in that it had found, which knows nothing of the patch."""
    before = state()
    kernel = Kernel()
    monkeypatch.setattr(owner, name, lambda *_arguments: 7.0)
    kernel.tear_down()
    Kernel().tear_down()
    assert getattr(owner, name)(threading.main_thread()) == 7.0
    monkeypatch.undo()
    assert time.time() > 7.0
    Kernel().tear_down()
    assert state() == before


def test_a_function_may_be_taken_away_between_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    before = state()
    with kept():
        Kernel().tear_down()
        with monkeypatch.context() as patch:
            patch.delattr(os, "system")
            Kernel().tear_down()
            assert not hasattr(os, "system")
            assert seen_in_a_run("sleep") == "out_of_simulation"
        assert seen_in_a_run("sleep") == "out_of_simulation"
    assert state() == before


def test_what_a_class_has_lost_is_left_away(monkeypatch: pytest.MonkeyPatch) -> None:
    before = state()
    monkeypatch.delattr(threading.Thread, "join")
    Kernel().tear_down()
    assert not hasattr(threading.Thread, "join")
    monkeypatch.undo()
    assert state() == before
