"""What programs use of asyncio, anyio and httpx2 works in virtual time as it does in real time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import anyio
import httpx2
import pytest

Play: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]


def now() -> float:
    return round(asyncio.get_running_loop().time() - 1_000, 9)


def test_timeouts_expire_exactly(play: Play) -> None:
    async def main() -> list[Any]:
        log: list[Any] = []
        try:
            async with asyncio.timeout(2.5):
                await asyncio.sleep(60)
        except TimeoutError:
            log.append(now())
        try:
            await asyncio.wait_for(asyncio.sleep(60), 0.1)
        except TimeoutError:
            log.append(now())
        async with asyncio.timeout(5) as scope:
            await asyncio.sleep(1)
            scope.reschedule(None)
            await asyncio.sleep(60)
        log.append(now())
        log.append(await asyncio.wait_for(asyncio.sleep(1, "value"), 5))
        return log

    assert play(main) == [2.5, 2.6, 63.6, "value"]


def test_a_shield_keeps_the_inner_task(play: Play) -> None:
    async def main() -> list[Any]:
        log: list[Any] = []

        async def inner() -> None:
            await asyncio.sleep(2)
            log.append(("inner done", now()))

        async def outer() -> None:
            await asyncio.shield(inner())

        task = asyncio.create_task(outer())
        await asyncio.sleep(1)
        task.cancel()
        log.append((type((await asyncio.gather(task, return_exceptions=True))[0]), now()))
        await asyncio.sleep(5)
        return log

    assert play(main) == [(asyncio.CancelledError, 1), ("inner done", 2)]


def test_queues_locks_events_conditions_semaphores_and_barriers(play: Play) -> None:
    async def main() -> list[Any]:
        log: list[Any] = []
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        lock, event, limit = asyncio.Lock(), asyncio.Event(), asyncio.Semaphore(2)
        condition, barrier = asyncio.Condition(), asyncio.Barrier(3)

        async def producer() -> None:
            for n in range(3):
                await queue.put(n)
                await asyncio.sleep(1)
            event.set()

        async def consumer() -> None:
            for _ in range(3):
                log.append(("got", await queue.get(), now()))
                queue.task_done()
            await event.wait()
            log.append(("event", now()))

        async def worker(n: int) -> None:
            async with lock:
                await asyncio.sleep(1)
                log.append(("lock", n, now()))
            async with limit:
                await asyncio.sleep(1)
            async with condition:
                condition.notify_all()
            await barrier.wait()
            log.append(("barrier", n, now()))

        async with asyncio.TaskGroup() as group:
            group.create_task(producer())
            group.create_task(consumer())
            await queue.join()
            async with condition:
                for n in range(3):
                    group.create_task(worker(n))
                await asyncio.wait_for(condition.wait(), 10)
                log.append(("notified", now()))
        return log

    assert play(main) == [
        ("got", 0, 0),
        ("lock", 0, 1),
        ("got", 1, 1),
        ("lock", 1, 2),
        ("got", 2, 2),
        ("notified", 2),
        ("lock", 2, 3),
        ("event", 3),
        ("barrier", 2, 4),
        ("barrier", 0, 4),
        ("barrier", 1, 4),
    ]


def test_a_failing_tool_aborts_its_group(play: Play) -> None:
    async def main() -> list[Any]:
        log: list[Any] = []

        async def tool(span: float, *, fails: bool = False) -> None:
            try:
                await asyncio.sleep(span)
                if fails:
                    raise ValueError(span)
            except asyncio.CancelledError:
                log.append((span, now()))
                raise

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(tool(5))
                group.create_task(tool(1, fails=True))
                group.create_task(tool(3))
        except* ValueError as errors:
            log.append(str(errors.exceptions[0]))
        return log

    assert play(main) == [(5, 1), (3, 1), "1"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 loses one of the two")
def test_a_cancel_in_the_instant_of_a_timeout_wins(play: Play) -> None:
    async def main() -> bool:
        async def worker() -> None:
            async with asyncio.timeout(1):
                await asyncio.sleep(60)

        task = asyncio.create_task(worker())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert play(main) is True


def test_anyio_scopes_groups_and_streams(play: Play) -> None:
    async def main() -> list[Any]:
        log: list[Any] = []
        with anyio.move_on_after(1) as scope:
            await anyio.sleep(60)
        log.append((scope.cancelled_caught, now()))
        with pytest.raises(TimeoutError), anyio.fail_after(0.5):
            await anyio.sleep_forever()
        log.append(now())
        send, receive = anyio.create_memory_object_stream[int](1)

        async def producer() -> None:
            async with send:
                for n in range(3):
                    await send.send(n)
                    await anyio.sleep(1)

        async with anyio.create_task_group() as group:
            group.start_soon(producer)
            async with receive:
                log += [(n, now()) async for n in receive]
        with anyio.CancelScope() as outer:
            outer.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(2)
            log.append(now())
            await anyio.sleep(60)
        log.append(now())
        return log

    assert play(main) == [(True, 1), 1.5, (0, 1.5), (1, 2.5), (2, 3.5), 6.5, 6.5]


def test_an_http_client_with_a_transport_of_its_own(play: Play) -> None:
    async def answer(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(3)
        return httpx2.Response(200, json={"path": request.url.path})

    async def main() -> Any:
        transport = httpx2.MockTransport(answer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://fake") as client:
            return (await client.get("/hello")).json(), now()

    assert play(main) == ({"path": "/hello"}, 3)


def test_the_shortcuts_of_asyncio_know_the_loop(play: Play) -> None:
    async def main() -> list[bool]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        return [
            asyncio.get_event_loop() is loop,
            asyncio.current_task(loop) is task,
            asyncio.all_tasks() == {task},
            loop.is_running(),
            loop.get_debug(),
        ]

    assert play(main) == [True, True, True, True, False]
