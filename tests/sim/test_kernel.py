"""What the kernel runs, in what batches, when it stops and what it says then."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import re
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from harness.core.durations import SECOND
from harness.core.errors import OutOfSimulation, UsageError
from harness.sim.kernel import Kernel, Limits, Stop
from tests.sim.common import never

MakeKernel: TypeAlias = Callable[..., Kernel]

HERE = f"tests/sim/{Path(__file__).name}"


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


async def spin() -> None:
    for _ in count():
        await asyncio.sleep(0)


# --- what runs


def test_handles_run_in_the_batches_of_stock_asyncio() -> None:
    def log_of(loop: asyncio.AbstractEventLoop) -> list[str]:
        log: list[str] = []

        async def worker(name: str) -> None:
            for n in range(3):
                log.append(f"{name}{n}")
                loop.call_soon(log.append, f"{name}{n} callback")
                await asyncio.sleep(0)

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for name in "abc":
                    group.create_task(worker(name))

        loop.run_until_complete(main())
        return log

    kernel, stock = Kernel(), asyncio.new_event_loop()
    assert log_of(kernel) == log_of(stock)
    kernel.tear_down()
    stock.close()


def test_done_is_asked_after_each_batch(kernel: Kernel) -> None:
    log: list[int] = []

    def step() -> None:
        log.append(len(log))
        kernel.call_soon(step)

    kernel.call_soon(step)
    assert kernel.run_until(lambda: len(log) == 3) == Stop("done")
    assert log == [0, 1, 2]
    assert kernel.run_until(lambda: True) == Stop("done")
    assert log == [0, 1, 2]


def test_time_stands_still_while_something_is_ready(kernel: Kernel) -> None:
    seen: list[int] = []

    async def busy() -> None:
        for _ in range(100):
            await asyncio.sleep(0)
            seen.append(kernel.now())

    kernel.call_later(0.5, lambda: seen.append(kernel.now()))
    kernel.spawn(busy(), "1")
    kernel.drain(SECOND)
    assert seen == [0] * 100 + [SECOND // 2]


def test_the_loop_of_a_run_can_be_used_by_asyncio_itself(kernel: Kernel) -> None:
    async def main() -> float:
        await asyncio.sleep(3)
        return asyncio.get_running_loop().time()

    assert kernel.run_until_complete(main()) == 1_003.0
    with pytest.raises(UsageError, match=r"deadlock: 1 task.*\n.*in wait_for_ever"):
        kernel.run_until_complete(wait_for_ever())


def test_a_run_of_asyncios_own_has_limits_too() -> None:
    async def sleeps() -> None:
        time.sleep(1)  # noqa: ASYNC251 - is refused

    kernel = Kernel(Limits(steps_per_instant=100))
    with pytest.raises(UsageError, match="instant_limit: 100 steps at 0s"):
        kernel.run_until_complete(spin())
    kernel.tear_down()
    kernel = Kernel()
    with pytest.raises(OutOfSimulation, match=r"in sleeps used time.sleep\(\)"):
        kernel.run_until_complete(sleeps())
    kernel.tear_down()


def test_a_loop_that_is_stopped_runs_what_is_ready_as_in_stock_asyncio() -> None:
    def log_of(loop: asyncio.AbstractEventLoop) -> list[str]:
        log: list[str] = []
        loop.stop()
        loop.run_forever()
        loop.call_later(0.001, log.append, "timer")
        loop.call_soon(lambda: (log.append("soon"), loop.call_soon(log.append, "next")))
        for name in ("first", "second", "third"):
            loop.stop()
            loop.run_forever()
            log.append(name)
        loop.call_later(0.002, loop.stop)
        loop.run_forever()
        return log

    kernel, stock = Kernel(), asyncio.new_event_loop()
    assert log_of(kernel) == log_of(stock)
    kernel.tear_down()
    stock.close()


def test_a_loop_does_not_run_in_another(kernel: Kernel) -> None:
    async def main() -> None:
        inner = asyncio.sleep(0)
        try:
            with pytest.raises(RuntimeError, match="while another loop is running"):
                Kernel.run_until_complete(other, inner)
        finally:
            inner.close()

    other = Kernel()
    task = kernel.spawn(main(), "1")
    kernel.drain(0)
    other.tear_down()
    assert task.result() is None


# --- why it stops


def test_a_run_with_nothing_left_is_quiescent(kernel: Kernel) -> None:
    task = kernel.spawn(asyncio.sleep(2, "value"), "1")
    assert kernel.run_until(never) == Stop("quiescent")
    assert kernel.now() == 2 * SECOND
    assert task.result() == "value"


def test_tasks_that_nobody_will_wake_are_a_deadlock(kernel: Kernel) -> None:
    async def locked(lock: asyncio.Lock) -> None:
        await lock.acquire()
        await asyncio.sleep(1)
        async with lock:
            pass

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(locked(asyncio.Lock()))
            group.create_task(wait_for_ever(), name="tool weather")

    kernel.spawn(main(), "1")
    stop = kernel.run_until(never, 10 * SECOND)
    assert stop.reason == "deadlock"
    assert stop.detail == "3 tasks will never be woken"
    assert kernel.now() == SECOND
    lines = [re.sub(r":\d+ in", ": in", line) for line in stop.waits]
    assert lines == [
        f"1: waits at {HERE}: in main",
        f"1.1: waits at {HERE}: in locked",
        f"1.2 tool weather: waits at {HERE}: in wait_for_ever",
    ]


def test_a_cancelled_timer_does_not_hide_a_deadlock(kernel: Kernel) -> None:
    kernel.spawn(wait_for_ever(), "1")
    kernel.call_later(5, print).cancel()
    assert kernel.run_until(never).reason == "deadlock"
    assert kernel.now() == 0


def test_time_never_goes_past_the_deadline(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.call_later(1, log.append, "in time")
    kernel.call_later(2, log.append, "just in time")
    kernel.call_later(2.000000001, log.append, "too late")
    stop = kernel.run_until(never, 2 * SECOND)
    assert (stop.reason, kernel.now(), log) == ("deadline", 2 * SECOND, ["in time", "just in time"])
    assert stop.detail == "the next timer is due at 2.000000001s, past 2s"


def test_a_deadline_is_waited_for_where_more_would_happen(kernel: Kernel) -> None:
    kernel.spawn(asyncio.sleep(10), "1")
    stop = kernel.run_until(never, 4 * SECOND)
    assert (stop.reason, kernel.now()) == ("deadline", 4 * SECOND)
    assert len(stop.waits) == 1
    assert kernel.run_until(never, 3 * SECOND).reason == "deadline"
    assert kernel.now() == 4 * SECOND
    assert kernel.drain(10 * SECOND) == Stop("quiescent")


def test_settling_runs_what_needs_no_time(kernel: Kernel) -> None:
    log: list[str] = []

    async def worker() -> None:
        await asyncio.sleep(0)
        log.append("now")
        await asyncio.sleep(1)
        log.append("later")

    kernel.spawn(worker(), "1")
    assert kernel.settle().reason == "deadline"
    assert (log, kernel.now()) == (["now"], 0)
    kernel.drain(SECOND)
    assert kernel.settle() == Stop("quiescent")
    assert log == ["now", "later"]


def test_a_task_that_never_lets_time_move_on_is_stopped_and_named(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(steps_per_instant=500)
    kernel.spawn(wait_for_ever(), "1")
    kernel.spawn(spin(), "2")
    kernel.call_later(1, print)
    stop = kernel.run_until(never)
    assert stop.reason == "instant_limit"
    assert "steps at 0s, and time stands still; most of the last by 2 (" in stop.detail
    assert [line.split(":")[0] for line in stop.waits] == ["1", "2"]
    assert kernel.run_until(never).reason == "instant_limit"


def test_a_callback_that_never_lets_time_move_on_is_named(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(steps_per_instant=500)

    def again() -> None:
        kernel.call_soon(again)

    again()
    stop = kernel.run_until(never)
    assert stop.reason == "instant_limit"
    assert stop.detail.startswith("500 steps at 0s, and time stands still; most of the last by ")
    assert stop.detail.endswith(".again")


def test_the_limit_of_an_instant_is_counted_anew_in_the_next(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(steps_per_instant=50)

    async def patient() -> None:
        for _ in range(10):
            for _ in range(40):
                await asyncio.sleep(0)
            await asyncio.sleep(1)

    kernel.spawn(patient(), "1")
    assert kernel.run_until(never) == Stop("quiescent")


@pytest.mark.parametrize("way", ["run_until", "settle", "drain"])
def test_the_limit_of_an_instant_is_counted_anew_in_each_call(
    make_kernel: MakeKernel, way: str
) -> None:
    kernel = make_kernel(steps_per_instant=50)

    async def turn() -> None:
        for _ in range(40):
            await asyncio.sleep(0)

    for number in range(10):
        task = kernel.spawn(turn(), str(number))
        if way == "run_until":
            assert kernel.run_until(task.done) == Stop("done")
        elif way == "settle":
            assert kernel.settle() == Stop("quiescent")
        else:
            assert kernel.drain(SECOND) == Stop("quiescent")
    assert kernel.now() == 0


def test_a_run_may_wait_for_a_day_and_work_hard_at_one_instant() -> None:
    assert Limits().time >= 2 * 24 * 3_600 * SECOND
    assert Limits().steps_per_instant == 100_000


def test_a_run_that_takes_too_many_steps_is_stopped(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(steps=100)

    async def ticker() -> None:
        for _ in count():
            await asyncio.sleep(1)

    kernel.spawn(ticker(), "1")
    stop = kernel.run_until(never)
    assert stop.reason == "step_limit"
    assert stop.detail == (
        "the run took 100 steps to get to 50s; most of the last by 1 (50 suspensions)"
    )


def test_a_run_that_takes_too_long_is_stopped(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(time=60 * SECOND)
    task = kernel.spawn(asyncio.sleep(61), "1")
    stop = kernel.run_until(task.done, 100 * SECOND)
    assert stop.reason == "time_limit"
    assert stop.detail == "the next timer is due at 61s, past the run's limit of 60s"
    assert len(stop.waits) == 1


def test_a_task_that_did_not_start_is_told_from_one_that_waits(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(steps=1)
    kernel.spawn(wait_for_ever(), "1")
    kernel.spawn(wait_for_ever(), "2")
    stop = kernel.run_until(never)
    assert stop.waits[1].startswith(f"2: not started, created at {HERE}:")


# --- errors that nobody catches


def test_an_error_in_a_callback_is_kept_and_the_run_goes_on(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.call_soon(lambda: 1 // 0)
    kernel.call_soon(log.append, "next")
    kernel.settle()
    assert log == ["next"]
    (told,) = kernel.callback_errors
    assert told.endswith(".<lambda>: ZeroDivisionError: integer division or modulo by zero")
    kernel.callback_errors.clear()


def test_an_error_that_nobody_retrieves_is_kept(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fails() -> None:
        raise ValueError("lost")

    async def main() -> None:
        kernel.create_task(fails())
        kernel.create_future().set_exception(KeyError("lost too"))

    kernel.spawn(main(), "1")
    kernel.settle()
    assert kernel.callback_errors == [
        "Future exception was never retrieved: KeyError: 'lost too'",
        "Task exception was never retrieved in 1.1: ValueError: lost",
    ]
    kernel.callback_errors.clear()
    assert capsys.readouterr() == ("", "")


def test_a_users_own_exception_handler_is_used(kernel: Kernel) -> None:
    seen: list[dict[str, Any]] = []
    kernel.set_exception_handler(lambda loop, context: seen.append(context))
    kernel.call_soon(lambda: 1 // 0)
    kernel.settle()
    assert isinstance(seen[0]["exception"], ZeroDivisionError)
    assert kernel.callback_errors == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_stops_a_process_goes_through_as_in_stock_asyncio(
    kernel: Kernel, error: type[BaseException]
) -> None:
    async def stops() -> None:
        raise error

    stopping = kernel.spawn(stops(), "1")
    other = kernel.spawn(asyncio.sleep(1, "other"), "2")
    with pytest.raises(error):
        kernel.run_until(never)
    assert isinstance(stopping.exception(), error)
    assert asyncio._get_running_loop() is None
    assert kernel.run_until(never) == Stop("quiescent")
    assert other.result() == "other"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["task", "callback"])
def test_what_stops_a_process_loses_nothing_of_the_run(
    kernel: Kernel, error: type[BaseException], where: str
) -> None:
    log: list[str] = []

    async def stops() -> None:
        log.append("stops")
        raise error

    def stop() -> None:
        log.append("stops")
        raise error

    async def other(name: str) -> None:
        log.append(name)
        await asyncio.sleep(1)
        log.append(f"{name} again")

    async def main() -> None:
        children = [kernel.create_task(other("before"))]
        if where == "task":
            children.append(kernel.create_task(stops()))
            kernel.after_suspend("1.2", lambda task: log.append("stopped"))
        else:
            kernel.call_soon(stop)
        children.append(kernel.create_task(other("after")))
        await asyncio.gather(*children, return_exceptions=True)
        log.append("gathered")

    task = kernel.spawn(main(), "1")
    with pytest.raises(error):
        kernel.run_until(task.done)
    stopped = ["stopped"] if where == "task" else []
    assert log == ["before", "stops", *stopped]
    assert {info.path for info in kernel.alive()} == {"1", "1.1", f"1.{2 + len(stopped)}"}
    assert kernel.run_until(task.done) == Stop("done")
    assert log[2 + len(stopped) :] == ["after", "before again", "after again", "gathered"]
    assert not kernel.watched
    assert kernel.drain(10 * SECOND) == Stop("quiescent")


# --- the thread and the process around a run


def test_debug_mode_is_not_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONASYNCIODEBUG", "1")
    kernel = Kernel()
    assert kernel.get_debug() is False
    kernel.tear_down()


def test_a_run_within_another_loop_gives_it_back(kernel: Kernel) -> None:
    async def inner() -> tuple[Any, Any]:
        await asyncio.sleep(5)
        return asyncio.get_running_loop(), asyncio.current_task()

    async def outer() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        hooks = sys.get_asyncgen_hooks()
        ours = kernel.spawn(inner(), "1")
        kernel.run_until(ours.done)
        assert ours.result() == (kernel, ours)
        assert asyncio.get_running_loop() is loop
        assert asyncio.current_task() is task
        assert sys.get_asyncgen_hooks() == hooks
        async with asyncio.timeout(5):
            await asyncio.sleep(0)

    asyncio.run(outer())


def test_a_kernel_within_a_kernel(kernel: Kernel) -> None:
    async def main() -> int:
        inner = Kernel()
        task = inner.spawn(asyncio.sleep(7), "1")
        inner.run_until(task.done)
        inner.tear_down()
        await asyncio.sleep(1)
        return inner.now()

    task = kernel.spawn(main(), "1")
    kernel.run_until(task.done)
    assert (task.result(), kernel.now()) == (7 * SECOND, SECOND)


def test_a_kernel_is_not_run_by_what_it_runs(kernel: Kernel) -> None:
    seen: list[str] = []

    def again() -> None:
        try:
            kernel.run_until(never)
        except AssertionError as error:
            seen.append(str(error).splitlines()[0])  # pytest may add what it knows of the values

    kernel.call_soon(again)
    kernel.settle()
    assert seen == ["the kernel is already running"]


def test_each_task_changes_its_own_context_only(kernel: Kernel) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")
    seen: list[str] = []

    async def child() -> None:
        seen.append(variable.get())
        variable.set("child")

    async def main(name: str) -> None:
        variable.set(name)
        await asyncio.create_task(child())
        seen.append(variable.get())

    kernel.spawn(main("first"), "1")
    kernel.spawn(main("second"), "2")
    given = contextvars.copy_context()
    given.run(variable.set, "given")
    kernel.spawn(child(), "3", given)
    kernel.settle()
    assert sorted(seen) == ["first", "first", "given", "second", "second"]
    assert variable.get() == "outside"
    assert given[variable] == "child"


def test_a_thousand_runs_leave_nothing_behind() -> None:
    def run() -> None:
        kernel = Kernel()

        async def stream() -> Any:
            for n in range(3):
                yield n
                await asyncio.sleep(1)

        async def tool() -> None:
            async for n in stream():
                if n == 1:
                    break
            await asyncio.sleep(0.1)

        async def main() -> None:
            kernel.create_task(wait_for_ever())
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(tool())

        task = kernel.spawn(main(), "1")
        kernel.run_until(task.done)
        kernel.tear_down()

    for _ in range(50):
        run()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1_000):
        run()
    left = len(gc.get_objects()) - before
    gc.collect()
    assert left < 1_000
    assert len(gc.get_objects()) - before < 50
