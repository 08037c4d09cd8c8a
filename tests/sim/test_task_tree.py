"""Tasks are named by their place in the tree, hash by their number, and tell where they are."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.sim.cancel import Point
from harness.sim.kernel import Kernel
from tests.sim.common import never

HERE = f"tests/sim/{Path(__file__).name}"


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


def test_paths_count_children_in_the_order_they_were_made(kernel: Kernel) -> None:
    log: list[str] = []

    async def leaf() -> None:
        log.append(kernel.current_path())

    async def branch() -> None:
        log.append(kernel.current_path())
        await asyncio.gather(leaf(), leaf())

    async def main() -> None:
        log.append(kernel.current_path())
        await branch()
        async with asyncio.TaskGroup() as group:
            group.create_task(branch())
            group.create_task(leaf())

    kernel.spawn(main(), "1")
    kernel.spawn(leaf(), "2")
    kernel.run_until(never)
    assert log == ["1", "1", "2", "1.1", "1.2", "1.3", "1.4", "1.3.1", "1.3.2"]
    assert kernel.current_path() == ""


def test_tasks_made_outside_of_any_task_are_told_apart(kernel: Kernel) -> None:
    async def leaf() -> str:
        return kernel.current_path()

    first = kernel.create_task(leaf())
    made: list[asyncio.Task[str]] = []
    kernel.call_soon(lambda: made.append(kernel.create_task(leaf())))
    kernel.run_until(never)
    assert [first.result(), made[0].result()] == ["x1", "x2"]


def test_a_task_without_a_name_is_named_by_its_path(kernel: Kernel) -> None:
    async def main() -> list[str]:
        tasks = [kernel.create_task(asyncio.sleep(0), name=name) for name in (None, "tool", "")]
        return [task.get_name() for task in tasks]

    task = kernel.spawn(main(), "1")
    kernel.run_until(task.done)
    assert task.result() == ["1.1", "tool", ""]
    assert task.get_name() == "1"


def test_tasks_and_futures_are_printed_as_stock_ones(kernel: Kernel) -> None:
    assert re.match(r"<Task pending name='1' coro=", repr(kernel.spawn(asyncio.sleep(0), "1")))
    assert repr(kernel.create_future()) == "<Future pending>"


def test_tasks_and_futures_hash_by_number_and_equal_only_themselves(kernel: Kernel) -> None:
    def numbers() -> list[int]:
        other = Kernel()
        things: list[Any] = [other.create_task(asyncio.sleep(0)) for _ in range(3)]
        things += [other.create_future() for _ in range(3)]
        assert len(set(things)) == 6
        found = [hash(thing) for thing in things]
        assert found == [hash(thing) for thing in things]
        other.tear_down()
        return found

    assert numbers() == numbers() == [1, 2, 3, 4, 5, 6]
    assert kernel.create_future() != kernel.create_future()


def test_what_is_alive_is_told_with_the_lines_that_matter(kernel: Kernel) -> None:
    async def inner() -> None:
        await wait_for_ever()

    async def main() -> None:
        kernel.create_task(inner())
        await asyncio.sleep(0)

    kernel.spawn(asyncio.sleep(0), "0")
    kernel.spawn(main(), "1")
    kernel.settle()
    (info,) = kernel.alive()
    assert info.path == "1.1"
    assert re.sub(r"\d+", "N", info.where) == f"{HERE}:N in wait_for_ever"
    assert re.sub(r"\d+", "N", info.created) == f"{HERE}:N in main"


def test_nothing_is_alive_when_all_is_done(kernel: Kernel) -> None:
    async def main() -> None:
        kernel.create_task(asyncio.sleep(1))

    kernel.spawn(main(), "1")
    assert [info.path for info in kernel.alive()] == ["1"]
    kernel.settle()
    assert [info.path for info in kernel.alive()] == ["1.1"]
    kernel.run_until(never)
    assert kernel.alive() == []


def test_tasks_of_a_users_factory_are_kept_track_of(kernel: Kernel) -> None:
    class Traced(asyncio.Task[Any]):
        pass

    def factory(loop: Any, coro: Any, **options: Any) -> asyncio.Task[Any]:
        return Traced(coro, loop=loop, **options)

    async def leaf() -> str:
        await asyncio.sleep(1)
        return kernel.current_path()

    async def main() -> list[str]:
        kernel.set_task_factory(factory)
        assert kernel.get_task_factory() is factory
        named = kernel.create_task(leaf(), name="named")
        assert isinstance(named, Traced)
        assert named.get_name() == "named"
        other = kernel.create_task(leaf())
        return [await named, await other]

    task = kernel.spawn(main(), "1")
    kernel.settle()
    assert [info.path for info in kernel.alive()] == ["1", "1.1", "1.2"]
    kernel.run_until(never)
    assert task.result() == ["1.1", "1.2"]
    assert kernel.points == [("1", 1), ("1.1", 1), ("1.2", 1)]
    assert kernel.alive() == []


def test_a_factory_that_fails_costs_nobody_a_path(kernel: Kernel) -> None:
    def factory(loop: Any, coro: Any, **options: Any) -> asyncio.Task[Any]:
        coro.close()
        raise ValueError("no task")

    kernel.set_task_factory(factory)
    with pytest.raises(ValueError, match="no task"):
        kernel.create_task(asyncio.sleep(0))
    asyncio.Task(asyncio.sleep(1), loop=kernel)
    kernel.settle()
    assert [info.path for info in kernel.alive()] == ["x2"]


def test_a_task_made_past_the_loop_is_kept_track_of(kernel: Kernel) -> None:
    async def leaf() -> str:
        await asyncio.sleep(1)
        return kernel.current_path()

    task = asyncio.Task(leaf(), loop=kernel)
    kernel.settle()
    assert [info.path for info in kernel.alive()] == ["x1"]
    kernel.run_until(task.done)
    assert task.result() == "x1"
    assert kernel.points == [("x1", 1)]


needs_eager_tasks = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="eager tasks came with 3.12"
)


@needs_eager_tasks
def test_eager_tasks_have_paths_and_points(kernel: Kernel) -> None:
    log: list[str] = []

    async def quick() -> None:
        log.append(kernel.current_path())

    async def slow() -> None:
        log.append(kernel.current_path())
        await asyncio.create_task(quick())
        await asyncio.sleep(1)
        log.append(kernel.current_path())

    async def main() -> None:
        kernel.set_task_factory(asyncio.eager_task_factory)
        assert kernel.get_task_factory() is asyncio.eager_task_factory
        async with asyncio.TaskGroup() as group:
            group.create_task(slow())
            log.append("created")
            group.create_task(quick())

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert log == ["1.1", "1.1.1", "created", "1.2", "1.1"]
    assert kernel.points == [("1.1", 1), ("1", 1)]
    assert kernel.alive() == []


@needs_eager_tasks
def test_an_eager_task_can_be_cancelled_early_at_its_first_suspension(kernel: Kernel) -> None:
    async def main() -> list[Any]:
        kernel.set_task_factory(asyncio.eager_task_factory)
        return await asyncio.gather(asyncio.create_task(asyncio.sleep(1)), return_exceptions=True)

    task = kernel.spawn(main(), "1")
    kernel.plan(Point("1.1", 1, "early"), lambda task: task.cancel())
    kernel.plan(Point("1.1", 0, "start"), lambda task: task.cancel())
    kernel.run_until(never)
    assert [type(result) for result in task.result()] == [asyncio.CancelledError]
    assert kernel.unreached() == [Point("1.1", 0, "start")]


@needs_eager_tasks
def test_eager_tasks_of_a_users_own_class_have_paths(kernel: Kernel) -> None:
    class Traced(asyncio.Task[Any]):
        pass

    log: list[str] = []

    async def leaf() -> None:
        log.append(kernel.current_path())

    async def branch() -> None:
        await asyncio.gather(leaf(), leaf())
        await asyncio.sleep(1)
        log.append(kernel.current_path())

    async def main() -> None:
        kernel.set_task_factory(asyncio.create_eager_task_factory(Traced))
        await asyncio.gather(branch(), leaf())

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert log == ["1.1.1", "1.1.2", "1.2", "1.1"]
    assert kernel.alive() == []


@needs_eager_tasks
def test_one_task_can_be_made_eagerly(kernel: Kernel) -> None:
    log: list[str] = []

    async def child() -> None:
        log.append("child")

    async def main() -> None:
        kernel.create_task(child(), eager_start=True)
        log.append("main")

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert log == ["child", "main"]


def test_the_default_factory_can_be_put_back(kernel: Kernel) -> None:
    kernel.set_task_factory(None)
    assert kernel.get_task_factory() is None
    with pytest.raises(TypeError, match="callable"):
        kernel.set_task_factory(3)
