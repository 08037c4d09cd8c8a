"""Timers fire at exact instants, in the order they were set, and cancelled ones leave."""

from __future__ import annotations

import asyncio
import heapq
import math
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.durations import SECOND
from harness.sim.kernel import Kernel


def fired(delays: list[float]) -> list[tuple[int, int]]:
    """(instant, index) of each timer, in the order they fire."""
    kernel = Kernel()
    log: list[tuple[int, int]] = []
    for index, delay in enumerate(delays):
        kernel.call_later(delay, lambda index=index: log.append((kernel.now(), index)))
    assert kernel.drain(3_600 * SECOND).reason == "quiescent"
    kernel.tear_down()
    return log


def test_timers_of_one_instant_fire_in_the_order_they_were_set() -> None:
    assert [index for _, index in fired([0.5] * 6)] == [0, 1, 2, 3, 4, 5]


@given(st.lists(st.integers(0, 20)))
def test_timers_fire_sorted_by_instant_and_then_by_order(tenths: list[int]) -> None:
    expected = sorted((n * SECOND // 10, index) for index, n in enumerate(tenths))
    assert fired([n / 10 for n in tenths]) == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=200))
def test_cancelled_timers_never_fire_and_the_others_all_do(timers: list[tuple[int, bool]]) -> None:
    kernel = Kernel()
    log: list[int] = []
    handles = [kernel.call_later(n, log.append, i) for i, (n, _) in enumerate(timers)]
    for handle, (_, cancel) in zip(handles, timers, strict=True):
        if cancel:
            handle.cancel()
            handle.cancel()
    kernel.drain(10 * SECOND)
    kernel.tear_down()
    kept = [(n, i) for i, (n, cancel) in enumerate(timers) if not cancel]
    assert log == [i for _, i in sorted(kept)]


def test_ten_sleeps_of_a_tenth_are_one_second_exactly(kernel: Kernel) -> None:
    async def sleeper() -> float:
        before = kernel.time()
        for _ in range(10):
            await asyncio.sleep(0.1)
        return kernel.time() - before

    task = kernel.spawn(sleeper(), "1")
    kernel.run_until(task.done)
    assert kernel.now() == SECOND
    assert task.result() == 1.0


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=30))
def test_a_timer_set_by_the_clock_of_the_loop_fires_at_its_nanosecond(instants: list[int]) -> None:
    kernel = Kernel()
    log: list[int] = []
    for instant in instants:
        kernel.call_at(kernel.time() + instant / SECOND, lambda: log.append(kernel.now()))
    kernel.drain(2 * 10**12)
    kernel.tear_down()
    assert log == sorted(instants)


def test_time_begins_at_a_thousand_seconds(kernel: Kernel) -> None:
    assert kernel.time() == 1_000.0
    assert kernel.now() == 0


def test_a_timer_tells_when_it_fires(kernel: Kernel) -> None:
    assert kernel.call_later(1.5, print).when() == 1_001.5
    assert kernel.call_at(1_002.0, print).when() == 1_002.0


def test_a_timer_in_the_past_fires_now_and_after_what_is_ready(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.call_later(-5, log.append, "late")
    kernel.call_soon(log.append, "ready")
    kernel.settle()
    assert log == ["ready", "late"]
    assert kernel.now() == 0


def test_an_infinite_timer_never_fires(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.call_later(math.inf, log.append, "never")
    handle = kernel.call_at(math.inf, log.append, "never")
    assert handle.when() == math.inf
    handle.cancel()
    assert kernel.drain(3_600 * SECOND).reason == "quiescent"
    assert log == []


def test_a_delay_that_is_no_number_is_refused(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match="NaN"):
        kernel.call_later(math.nan, print)


def test_a_hundred_thousand_cancelled_timers_leave_without_delay(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = 0

    def heapify(heap: list[object]) -> None:
        nonlocal moved
        moved += len(heap)
        heapq.heapify(heap)

    monkeypatch.setattr(
        "harness.sim.schedule.heapq", SimpleNamespace(**vars(heapq) | {"heapify": heapify})
    )
    waiting = [kernel.call_later(60, print) for _ in range(100_000)]
    for handle in waiting:
        handle.cancel()
    assert len(kernel._schedule.heap) < 1_000
    assert 0 < moved < 4 * len(waiting)


def test_cancelling_in_the_middle_of_many_keeps_the_rest(kernel: Kernel) -> None:
    log: list[int] = []
    handles = [kernel.call_later(1, log.append, i) for i in range(1_000)]
    for i, handle in enumerate(handles):
        if i % 10:
            handle.cancel()
    assert len(kernel._schedule.heap) < 500
    kernel.drain(2 * SECOND)
    assert log == list(range(0, 1_000, 10))


def test_a_timer_cancelled_in_the_instant_it_is_due_does_not_fire(kernel: Kernel) -> None:
    log: list[str] = []
    second: asyncio.TimerHandle

    def cancel() -> None:
        second.cancel()

    kernel.call_later(1, cancel)
    second = kernel.call_later(1, log.append, "cancelled")
    kernel.drain(2 * SECOND)
    assert log == []


def test_a_timer_that_a_batch_sets_for_now_runs_in_the_next_batch_as_in_stock_asyncio() -> None:
    def order(loop: asyncio.AbstractEventLoop) -> list[str]:
        log: list[str] = []

        def first() -> None:
            log.append("first")
            loop.call_later(0, log.append, "timer")
            loop.call_soon(log.append, "soon")

        loop.call_soon(first)
        loop.call_soon(log.append, "second")
        loop.run_until_complete(asyncio.sleep(0.001))
        return log

    kernel, stock = Kernel(), asyncio.new_event_loop()
    assert order(kernel) == order(stock) == ["first", "second", "soon", "timer"]
    kernel.tear_down()
    stock.close()


@pytest.mark.parametrize("delay", [1e300, sys.float_info.max, float("inf"), 10**30])
def test_a_timer_that_is_farther_than_any_clock_goes_never_fires(
    kernel: Kernel, delay: float
) -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        loop.call_at(delay, print).cancel()
        return await asyncio.wait_for(asyncio.sleep(1, "in time"), delay)

    task = kernel.spawn(main(), "1")
    assert kernel.drain(2 * SECOND).reason == "quiescent"
    assert task.result() == "in time"


def test_callbacks_of_a_debugging_loop_are_checked_as_in_stock_asyncio(kernel: Kernel) -> None:
    async def coroutine() -> None: ...

    kernel.set_debug(True)
    with pytest.raises(TypeError, match="coroutines cannot be used"):
        kernel.call_later(1, coroutine)
    with pytest.raises(TypeError, match="coroutines cannot be used"):
        kernel.call_soon(coroutine)
    assert kernel.call_soon(print)._source_traceback
    assert kernel.call_later(1, print)._source_traceback
    kernel.set_debug(False)


def test_a_closed_loop_takes_no_callbacks() -> None:
    kernel = Kernel()
    kernel.tear_down()
    for call in (
        lambda: kernel.call_soon(print),
        lambda: kernel.call_later(1, print),
        lambda: kernel.call_soon_threadsafe(print),
    ):
        with pytest.raises(RuntimeError, match="Event loop is closed"):
            call()
