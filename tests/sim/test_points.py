"""Suspensions are counted for the right task, and actions happen exactly at their point."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.durations import SECOND
from harness.sim.cancel import Point
from harness.sim.kernel import Kernel
from tests.sim.common import never

Main = Callable[[], Coroutine[Any, Any, Any]]


def cancelled_at(point: str, main: Main) -> tuple[asyncio.Task[Any], list[str]]:
    """The root task of `main` after a run that was cancelled at `point`, and what was unreached."""
    kernel = Kernel()
    task = kernel.spawn(main(), "1")
    kernel.plan(Point.parse(point), lambda task: task.cancel())
    kernel.run_until(never)
    unreached = [str(point) for point in kernel.unreached()]
    kernel.tear_down()
    return task, unreached


# --- counting


def test_each_suspension_is_counted_for_its_task(kernel: Kernel) -> None:
    async def tool(span: float) -> None:
        await asyncio.sleep(span)
        await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(tool(2), tool(1))

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert kernel.points == [
        ("1", 1),
        ("1.1", 1),
        ("1.2", 1),
        ("1.2", 2),
        ("1.1", 2),
    ]


def test_an_await_that_does_not_wait_is_no_suspension(kernel: Kernel) -> None:
    async def inner() -> int:
        return 1

    async def main() -> None:
        await inner()
        future = kernel.create_future()
        future.set_result(None)
        await future

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert kernel.points == []


def test_a_task_used_as_a_callback_is_not_suspended_by_it(kernel: Kernel) -> None:
    """A method of a task belongs to the task, as a step does, but is none."""

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)

    task = kernel.spawn(wait(), "1")
    future = kernel.create_future()
    kernel.call_soon(task.get_name)
    kernel.call_later(2, task.cancel)
    future.add_done_callback(task.cancel)
    kernel.call_later(1, future.set_result, None)
    kernel.run_until(never)
    assert kernel.points == [("1", 1), ("1", 2)]


def test_points_are_those_of_the_run_and_not_of_its_end(kernel: Kernel) -> None:
    async def stubborn() -> None:
        await asyncio.sleep(0)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(60)

    kernel.spawn(stubborn(), "1")
    kernel.settle()
    kernel.tear_down()
    assert kernel.points == [("1", 1), ("1", 2)]


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=5))
def test_every_task_has_as_many_points_as_it_waited(waits: list[list[int]]) -> None:
    kernel = Kernel()

    async def worker(spans: list[int]) -> None:
        for span in spans:
            await asyncio.sleep(span)

    for index, spans in enumerate(waits):
        kernel.spawn(worker(spans), f"{index}")
    kernel.run_until(never)
    kernel.tear_down()
    expected = [(f"{i}", k) for i, spans in enumerate(waits) for k in range(1, len(spans) + 1)]
    assert sorted(kernel.points) == sorted(expected)


# --- modes


def test_start_cancels_before_the_body_is_entered() -> None:
    log: list[str] = []

    async def main() -> None:
        log.append("entered")

    task, unreached = cancelled_at("1#0/start", main)
    assert (task.cancelled(), log, unreached) == (True, [], [])


def test_early_cancels_what_the_task_waits_for() -> None:
    log: list[str] = []

    async def tool() -> str:
        try:
            await asyncio.sleep(1)
        finally:
            log.append("tool left")
        return "result"

    async def main() -> None:
        running = asyncio.create_task(tool())
        await asyncio.sleep(0)
        log.append(await running)

    task, unreached = cancelled_at("1#2/early", main)
    assert (task.cancelled(), log, unreached) == (True, ["tool left"], [])


def test_late_cancels_after_what_the_task_waits_for_is_done() -> None:
    log: list[str] = []

    async def tool() -> str:
        await asyncio.sleep(1)
        log.append("tool done")
        return "result"

    async def main() -> None:
        log.append(await asyncio.create_task(tool()))

    task, unreached = cancelled_at("1#1/late", main)
    assert (task.cancelled(), log, unreached) == (True, ["tool done"], [])


def test_late_finds_the_connection_that_a_pool_loses() -> None:
    """A result handed over in the instant of the cancel is dropped by whoever does not look."""

    class Pool:
        def __init__(self) -> None:
            self.free = ["connection"]
            self.waiters: list[asyncio.Future[str]] = []

        async def take(self) -> str:
            if self.free:
                return self.free.pop()
            waiter = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            try:
                return await waiter
            except asyncio.CancelledError:
                if waiter in self.waiters:
                    self.waiters.remove(waiter)
                raise

        def give(self, connection: str) -> None:
            if self.waiters:
                self.waiters.pop(0).set_result(connection)
            else:
                self.free.append(connection)

    def run(point: str) -> list[str]:
        pool = Pool()

        async def use() -> None:
            connection = await pool.take()
            try:
                await asyncio.sleep(1)
            finally:
                pool.give(connection)

        async def main() -> None:
            await asyncio.gather(use(), use(), return_exceptions=True)

        _, unreached = cancelled_at(point, main)
        assert unreached == []
        return pool.free

    assert run("1.2#1/early") == ["connection"]
    assert run("1.2#1/late") == []


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="3.12 mended wait_for")
def test_late_finds_the_cancel_that_wait_for_swallows_on_3_11() -> None:
    async def main() -> str:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(1, future.set_result, "kept")
        return await asyncio.wait_for(future, 5)

    task, unreached = cancelled_at("1#1/late", main)
    assert unreached == []
    assert task.result() == "kept"


@pytest.mark.parametrize(("point", "now"), [("1#2/early", SECOND), ("1#2/late", 2 * SECOND)])
def test_an_action_waits_for_its_own_suspension(kernel: Kernel, point: str, now: int) -> None:
    seen: list[int] = []

    async def main() -> None:
        await asyncio.sleep(1)
        await asyncio.sleep(1)

    kernel.spawn(main(), "1")
    kernel.plan(Point.parse(point), lambda task: seen.append(kernel.now()))
    kernel.run_until(never)
    assert seen == [now]


def test_late_acts_although_another_wakes_the_task(kernel: Kernel) -> None:
    log: list[str] = []
    future = kernel.create_future()

    async def main() -> None:
        try:
            await future
        except asyncio.CancelledError as error:
            log.append(f"cancelled by {error.args}")
            await asyncio.sleep(0)

    task = kernel.spawn(main(), "1")
    kernel.plan(Point("1", 1, "late"), lambda task: log.append("late"))
    kernel.call_later(1, task.cancel, "another")
    kernel.run_until(task.done)
    assert log == ["late", "cancelled by ('another',)"]


def test_several_points_of_one_run() -> None:
    kernel = Kernel()
    log: list[str] = []

    async def main() -> None:
        for _ in range(3):
            await asyncio.sleep(1)

    kernel.spawn(main(), "1")
    for text in ("1#3/early", "1#1/late", "1#1/early", "1#0/start", "1#1/early"):
        kernel.plan(Point.parse(text), lambda task, text=text: log.append(text))
    kernel.run_until(never)
    kernel.tear_down()
    assert log == ["1#0/start", "1#1/early", "1#1/early", "1#1/late", "1#3/early"]


def test_points_that_the_run_did_not_come_to_are_told(kernel: Kernel) -> None:
    async def main() -> None:
        await asyncio.sleep(1)
        await asyncio.Event().wait()

    kernel.spawn(main(), "1")
    texts = ["1#2/late", "1#3/early", "2#0/start", "1#1/late"]
    for text in texts:
        kernel.plan(Point.parse(text), lambda task: None)
    assert [str(point) for point in kernel.unreached()] == texts
    kernel.run_until(never)
    assert [str(point) for point in kernel.unreached()] == texts[:3]
    kernel.tear_down()
    assert [str(point) for point in kernel.unreached()] == texts[:3]


# --- actions on a task by its path


def test_before_resume_is_called_when_the_wait_is_over(kernel: Kernel) -> None:
    log: list[str] = []

    async def main() -> None:
        await asyncio.sleep(1)
        log.append("resumed")
        await asyncio.sleep(1)

    task = kernel.spawn(main(), "1")
    kernel.settle()
    kernel.before_resume("1", lambda same: log.append(f"before {same is task} {kernel.now()}"))
    kernel.run_until(never)
    assert log == [f"before True {SECOND}", "resumed"]


def test_before_resume_is_called_before_a_cancel_is_thrown_in(kernel: Kernel) -> None:
    log: list[str] = []

    async def main() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    task = kernel.spawn(main(), "1")
    kernel.settle()
    task.cancel()
    kernel.before_resume("1", lambda _: log.append(f"before {kernel.now()}"))
    kernel.run_until(never)
    assert log == ["before 0", "cancelled"]


def test_before_resume_of_a_task_that_is_ready_or_not_even_made(kernel: Kernel) -> None:
    log: list[str] = []

    async def main(name: str) -> None:
        log.append(name)
        await asyncio.sleep(0)

    kernel.before_resume("2", lambda _: log.append("before 2"))
    kernel.spawn(main("1"), "1")
    kernel.before_resume("1", lambda _: log.append("before 1"))
    kernel.spawn(main("2"), "2")
    kernel.run_until(never)
    assert log == ["before 1", "1", "before 2", "2"]


def test_an_action_may_ask_for_the_next_time(kernel: Kernel) -> None:
    log: list[int] = []

    async def main() -> None:
        for _ in range(3):
            await asyncio.sleep(1)

    def again(task: asyncio.Task[Any]) -> None:
        log.append(kernel.now() // SECOND)
        kernel.before_resume("1", again)

    kernel.spawn(main(), "1")
    kernel.before_resume("1", again)
    kernel.run_until(never)
    assert log == [0, 1, 2, 3]


def test_after_suspend_is_called_once_when_the_step_is_over(kernel: Kernel) -> None:
    log: list[str] = []

    async def main() -> None:
        kernel.after_suspend("1", lambda _: log.append("after"))
        log.append("step")
        await asyncio.sleep(1)
        log.append("next step")
        await asyncio.sleep(1)

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert log == ["step", "after", "next step"]


def test_after_suspend_is_called_at_the_end_of_a_task_too(kernel: Kernel) -> None:
    log: list[bool] = []

    async def main() -> None:
        kernel.after_suspend("1", lambda task: log.append(task.done()))

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert log == [True]


def test_actions_happen_outside_of_any_task(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.spawn(asyncio.sleep(1), "1")
    kernel.before_resume("1", lambda _: log.append(kernel.current_path()))
    kernel.after_suspend("1", lambda _: log.append(kernel.current_path()))
    kernel.run_until(never)
    assert log == ["", ""]


def test_the_end_of_a_run_calls_no_actions(kernel: Kernel) -> None:
    log: list[str] = []
    kernel.spawn(asyncio.sleep(60), "1")
    kernel.settle()
    kernel.before_resume("1", lambda _: log.append("before"))
    kernel.after_suspend("1", lambda _: log.append("after"))
    kernel.plan(Point("1", 1, "late"), lambda _: log.append("late"))
    kernel.tear_down()
    assert log == []


# --- every point


def test_every_point_of_an_agent_can_be_reached_in_every_mode() -> None:
    async def tool(n: int) -> int:
        await asyncio.sleep(n)
        return n

    async def main() -> int:
        total = 0
        for _ in range(2):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(tool(n)) for n in range(3)]
            total += sum(task.result() for task in tasks)
            await asyncio.sleep(0.1)
        return total

    base = Kernel()
    base.spawn(main(), "1")
    base.run_until(never)
    base.tear_down()
    points = [Point(path, k, mode) for path, k in base.points for mode in ("early", "late")]
    points += [Point(path, 0, "start") for path in dict.fromkeys(path for path, _ in base.points)]
    assert len(points) == 2 * len(base.points) + 7
    for point in points:
        _, unreached = cancelled_at(str(point), main)
        assert unreached == []
