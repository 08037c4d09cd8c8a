"""Programs that a cancel breaks, each as it is often written, and as it should be."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress


class Pool:
    """Hands a connection that comes back straight to who waits longest."""

    def __init__(self, size: int) -> None:
        self.free = [f"connection {number}" for number in range(size)]
        self.waiters: deque[asyncio.Future[str]] = deque()

    async def acquire(self) -> str:
        if self.free:
            return self.free.pop()
        waiter: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.waiters.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            self.give_up(waiter)
            raise

    def give_up(self, waiter: asyncio.Future[str]) -> None:
        """A hand-off may have come just before the cancel: it is lost."""

    def release(self, connection: str) -> None:
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        self.free.append(connection)


class CarefulPool(Pool):
    def give_up(self, waiter: asyncio.Future[str]) -> None:
        if not waiter.cancelled():
            self.release(waiter.result())


class Queries:
    """Three workers share one connection; when all is quiet it must be there."""

    pool_class: type[Pool] = Pool

    def __init__(self) -> None:
        self.pool = self.pool_class(1)

    async def query(self) -> None:
        connection = await self.pool.acquire()
        try:
            await asyncio.sleep(0.01)
        finally:
            self.pool.release(connection)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(self.query())

    async def check(self) -> None:
        """The next use works."""
        await self.query()


class CarefulQueries(Queries):
    pool_class = CarefulPool


async def fetch(answer: str = "page") -> str:
    await asyncio.sleep(0.2)
    return answer


async def fetch_in_time() -> str:
    """Python 3.11's `wait_for` gives the result of what is done, and forgets the cancel."""
    return await asyncio.wait_for(fetch(), 5)


async def fetch_with_timeout() -> str:
    async with asyncio.timeout(5):
        return await fetch()


async def fetch_both() -> list[str]:
    """Only the task that is waited for hears of the cancel."""
    first = asyncio.create_task(fetch("first"))
    second = asyncio.create_task(fetch("second"))
    return [await first, await second]


async def fetch_both_in_a_group() -> list[str]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fetch(name)) for name in ("first", "second")]
    return [task.result() for task in tasks]


class Writer:
    """Writes all that is put into its queue, up to the None, and must not be cut short."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()
        self.written: list[str] = []

    async def write(self) -> None:
        while (line := await self.queue.get()) is not None:
            await asyncio.sleep(0.01)
            self.written.append(line)

    async def produce(self) -> None:
        for number in range(3):
            await asyncio.sleep(0.1)
            await self.queue.put(f"line {number}")
        await self.queue.put(None)

    async def run(self) -> None:
        producer = asyncio.create_task(self.produce())
        try:
            await asyncio.shield(self.write())
        finally:
            producer.cancel()


class EndingWriter(Writer):
    async def produce(self) -> None:
        for number in range(3):
            await asyncio.sleep(0.1)
            await self.queue.put(f"line {number}")

    async def run(self) -> None:
        writer = asyncio.create_task(self.write())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.produce())
        finally:
            self.queue.put_nowait(None)
            await asyncio.shield(writer)


async def saving() -> None:
    """Ends only when what it saves is saved, however often it is cancelled."""
    try:
        await asyncio.sleep(3_600)
    finally:
        saved = asyncio.create_task(asyncio.sleep(0.5))
        while not saved.done():
            with suppress(asyncio.CancelledError):
                await asyncio.shield(saved)


async def stop_by_force() -> None:
    """Cancels its worker again and again, and keeps the processor busy meanwhile."""
    worker = asyncio.create_task(saving())
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        while not worker.done():
            worker.cancel()
            await asyncio.sleep(0)
        raise
    worker.cancel()
    await asyncio.wait([worker])


async def stop_patiently() -> None:
    worker = asyncio.create_task(saving())
    try:
        await asyncio.sleep(1)
    finally:
        worker.cancel()
        await asyncio.wait([worker])


class Transaction:
    """Rolls back and then unlocks; a second cancel comes in between."""

    def __init__(self) -> None:
        self.locked = False

    async def roll_back(self) -> None:
        await asyncio.sleep(0.01)

    async def run(self) -> None:
        self.locked = True
        try:
            await asyncio.sleep(0.1)
        finally:
            await self.roll_back()
            self.locked = False


class ShieldedTransaction(Transaction):
    async def end(self) -> None:
        await self.roll_back()
        self.locked = False

    async def run(self) -> None:
        self.locked = True
        try:
            await asyncio.sleep(0.1)
        finally:
            await asyncio.shield(self.end())

    def check(self) -> None:
        assert not self.locked


async def tokens() -> AsyncIterator[str]:
    try:
        for token in ("To", " be", " or"):
            await asyncio.sleep(0.01)
            yield token
    finally:
        await asyncio.sleep(0.01)  # hangs up


async def first_words() -> str:
    """Leaves the stream in the middle."""
    said = ""
    async for token in tokens():
        said += token
        if len(said) > 3:
            break
    return said


async def first_words_closing() -> str:
    said = ""
    async with aclosing(tokens()) as stream:
        async for token in stream:
            said += token
            if len(said) > 3:
                break
    return said
