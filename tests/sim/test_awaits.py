"""Which task waits for which: by every way that asyncio has, and what cannot be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

import anyio
import pytest

from harness.sim.kernel import Kernel

Main: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]


async def child() -> None:
    await asyncio.sleep(1)


def start() -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(child())


async def directly() -> None:
    await start()


async def in_a_coroutine() -> None:
    await directly()


async def gathered() -> None:
    await asyncio.gather(child(), child())


async def gathered_twice() -> None:
    await asyncio.gather(asyncio.gather(child(), child()), child())


async def waited() -> None:
    await asyncio.wait([start(), start()])


async def waited_for_the_first() -> None:
    await asyncio.wait([start(), start()], timeout=9, return_when=asyncio.FIRST_COMPLETED)


async def waited_for_a_gather() -> None:
    await asyncio.wait([asyncio.gather(child(), child())])


async def with_a_limit() -> None:
    await asyncio.wait_for(start(), 5)


async def within_a_timeout() -> None:
    async with asyncio.timeout(5):
        await start()


async def shielded() -> None:
    await asyncio.shield(start())


async def shielded_and_gathered() -> None:
    await asyncio.gather(asyncio.shield(start()), start())


async def in_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(child())
        group.create_task(child())


async def in_a_group_of_anyio() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(child)
        group.start_soon(child)


async def as_completed() -> None:
    for first in asyncio.as_completed([start(), start()]):
        await first


async def by_a_callback() -> None:
    done = asyncio.get_running_loop().create_future()

    def release(future: asyncio.Future[Any], _task: object) -> None:
        future.set_result(None)

    start().add_done_callback(partial(release, done))
    await done


async def by_a_queue() -> None:
    ended: asyncio.Queue[Any] = asyncio.Queue()
    for _ in range(2):
        start().add_done_callback(ended.put_nowait)
    await ended.get()


async def by_an_object() -> None:
    class Waiter:
        def __init__(self) -> None:
            self.ended = asyncio.get_running_loop().create_future()

        def end(self, _task: object) -> None:
            self.ended.set_result(None)

    waiter = Waiter()
    start().add_done_callback(waiter.end)
    await waiter.ended


@pytest.mark.parametrize(
    ("main", "awaits"),
    [
        (directly, ("1.1",)),
        (in_a_coroutine, ("1.1",)),
        (gathered, ("1.1", "1.2")),
        (gathered_twice, ("1.1", "1.2", "1.3")),
        (waited, ("1.1", "1.2")),
        (waited_for_the_first, ("1.1", "1.2")),
        (waited_for_a_gather, ("1.1", "1.2")),
        (with_a_limit, ("1.1",)),
        (within_a_timeout, ("1.1",)),
        (shielded, ("1.1",)),
        (shielded_and_gathered, ("1.1", "1.2")),
        (in_a_group, ("1.1", "1.2")),
        (in_a_group_of_anyio, ("1.1", "1.2")),
        (as_completed, ("1.1", "1.2")),
        (by_a_callback, ("1.1",)),
        (by_a_queue, ("1.1", "1.2")),
        (by_an_object, ("1.1",)),
    ],
)
def test_what_a_task_waits_for_is_seen(kernel: Kernel, main: Main, awaits: tuple[str, ...]) -> None:
    async def bystander() -> None:
        await asyncio.sleep(1)

    kernel.spawn(main(), "1")
    kernel.spawn(bystander(), "2")
    kernel.settle()
    seen = {info.path: info.awaits for info in kernel.alive()}
    assert seen == {"1": awaits, "2": (), **dict.fromkeys(awaits, ())}
    kernel.drain(10**10)
    assert kernel.alive() == []


@pytest.mark.parametrize(
    "make", [asyncio.Lock, asyncio.Condition, asyncio.Semaphore, asyncio.BoundedSemaphore]
)
def test_who_is_within_a_lock_is_waited_for_by_those_who_want_it(
    kernel: Kernel, make: Callable[[], Any]
) -> None:
    async def enter(lock: Any) -> None:
        async with lock:
            await child()

    async def main() -> None:
        lock = make()
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(enter(lock))

    kernel.spawn(main(), "1")
    kernel.settle()
    seen = {info.path: info.awaits for info in kernel.alive()}
    assert seen == {
        "1": ("1.1", "1.2", "1.3"),
        "1.1": (),
        "1.2": ("1.1",),
        "1.3": ("1.1",),
    }
    kernel.drain(10**10)
    assert kernel.alive() == []


def test_locks_that_are_taken_in_two_orders_are_a_circle(kernel: Kernel) -> None:
    async def both(first: asyncio.Lock, second: asyncio.Lock) -> None:
        async with first:
            await asyncio.sleep(0)
            async with second:
                pass

    async def main() -> None:
        one, other = asyncio.Lock(), asyncio.Lock()
        await asyncio.gather(both(one, other), both(other, one))

    kernel.spawn(main(), "1")
    assert kernel.drain(10**10).reason == "deadlock"
    seen = {info.path: info.awaits for info in kernel.alive()}
    assert seen == {"1": ("1.1", "1.2"), "1.1": ("1.2",), "1.2": ("1.1",)}


def test_only_what_is_not_done_is_waited_for(kernel: Kernel) -> None:
    async def quick() -> None: ...

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(quick())
            group.create_task(child())

    kernel.spawn(main(), "1")
    kernel.settle()
    assert kernel.alive()[0].awaits == ("1.2",)


def test_a_task_is_not_said_to_wait_for_what_those_it_waits_for_wait_for(kernel: Kernel) -> None:
    async def between() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

    async def main() -> None:
        await asyncio.gather(between(), child())

    kernel.spawn(main(), "1")
    kernel.settle()
    assert [(info.path, info.awaits) for info in kernel.alive()] == [
        ("1", ("1.1", "1.2")),
        ("1.1", ("1.1.1",)),
        ("1.2", ()),
        ("1.1.1", ()),
    ]


def test_what_a_task_will_do_by_its_own_code_is_not_seen(kernel: Kernel) -> None:
    event = asyncio.Event()

    async def setter() -> None:
        await asyncio.sleep(1)
        event.set()

    async def main() -> None:
        asyncio.get_running_loop().create_task(setter())
        await event.wait()

    kernel.spawn(main(), "1")
    kernel.settle()
    assert [info.awaits for info in kernel.alive()] == [(), ()]


# --- tasks that have not begun


def test_a_task_has_begun_when_it_takes_its_first_step(kernel: Kernel) -> None:
    seen: list[tuple[str, ...]] = []

    async def first() -> None:
        start()
        seen.append(kernel.on_their_way())
        await asyncio.sleep(0)
        seen.append(kernel.on_their_way())

    kernel.spawn(first(), "1")
    kernel.spawn(child(), "2")
    assert kernel.on_their_way() == ("1", "2")
    kernel.settle()
    assert seen == [("2", "1.1"), ()]
    assert kernel.on_their_way() == ()


def test_a_task_that_is_cancelled_before_its_first_step_never_begins(kernel: Kernel) -> None:
    task = kernel.spawn(child(), "1")
    task.cancel()
    assert kernel.on_their_way() == ("1",)
    kernel.settle()
    assert kernel.on_their_way() == ()
    assert task.cancelled()


def test_a_task_of_something_else_than_a_coroutine_begins_too(kernel: Kernel) -> None:
    seen: list[tuple[str, ...]] = []

    class Steps(Coroutine[Any, Any, None]):
        def send(self, _value: object) -> None:
            seen.append(kernel.on_their_way())
            raise StopIteration

        def throw(self, *_error: Any) -> None: ...

        def close(self) -> None: ...

        def __await__(self) -> Any: ...

    kernel.spawn(Steps(), "1")
    assert kernel.on_their_way() == ("1",)
    kernel.settle()
    assert seen == [()]
