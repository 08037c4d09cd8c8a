"""Programs that are right in the usual order, and wrong in another that may come as well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

Wait: TypeAlias = Callable[[], Awaitable[object]]


async def a_tick() -> None:
    """All who wait so are due at one instant."""
    await asyncio.sleep(0.01)


async def a_yield() -> None:
    """All who yield are ready at once."""
    await asyncio.sleep(0)


class Sink:
    """A file that takes what is flushed into it, until it is closed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.closed = False

    def write(self, line: str) -> None:
        if self.closed:
            raise ValueError("write to closed file")
        self.lines.append(line)


class Pipeline:
    """Eight workers flush what they have into a sink when they end.

    The sink belongs to one of them, which closes it if it is cut short: so it matters in which
    order a group cancels them, and asyncio does it in the order of a set.
    """

    def __init__(self) -> None:
        self.sink = Sink()
        self.ends: list[int] = []

    async def work(self, number: int) -> None:
        try:
            await asyncio.sleep(10 + number)
        except asyncio.CancelledError:
            self.cut(number)
            raise
        finally:
            self.ends.append(number)

    def cut(self, number: int) -> None:
        self.sink.write(f"worker {number}")
        if number == 3:
            self.sink.closed = True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(8):
                group.create_task(self.work(number))


class ScopedPipeline(Pipeline):
    def cut(self, number: int) -> None:
        self.sink.write(f"worker {number}")

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            self.sink.closed = True


class Counter:
    """Five clients add one each to a number, by reading and then writing it; each begins when the
    one before it should be done.
    """

    locked = False

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self.value = 0
        self.lock = asyncio.Lock()

    async def add(self) -> None:
        before = self.value
        await self.wait()
        self.value = before + 1

    async def client(self, number: int) -> None:
        for _ in range(number):
            await self.wait()
        if self.locked:
            async with self.lock:
                await self.add()
        else:
            await self.add()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(self.client(number))

    def check(self) -> None:
        assert self.value == 5, "an update was lost"


class LockedCounter(Counter):
    locked = True


class Startup:
    """Five services start side by side, and three of them must not do so in one certain order."""

    order: Sequence[str] = ("billing", "cache", "auth")

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self.started: list[str] = []

    async def start(self, name: str) -> None:
        await self.wait()
        self.started.append(name)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("auth", "billing", "cache", "docs", "email"):
                group.create_task(self.start(name))

    def check(self) -> None:
        told = [name for name in self.started if name in self.order]
        assert told != list(self.order), "auth has asked the cache, which has asked billing"


class OrderedStartup(Startup):
    async def run(self) -> None:
        for name in ("auth", "billing", "cache"):
            await self.start(name)


class Buffer:
    """Four producers put items into a buffer for sixteen, until the consumer comes; it overflows
    only where the consumer is kept waiting for sixteen steps of the others.
    """

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self.items = 0
        self.lost = 0
        self.consuming = asyncio.Event()

    async def consume(self) -> None:
        await self.wait()
        self.consuming.set()

    async def produce(self) -> None:
        await self.wait()
        for _ in range(5):
            await self.put()
            await asyncio.sleep(0)

    async def put(self) -> None:
        if self.consuming.is_set():
            return
        if self.items == 16:
            self.lost += 1
        else:
            self.items += 1

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.consume())
            for _ in range(4):
                group.create_task(self.produce())

    def check(self) -> None:
        assert not self.lost, "items were lost"


class BoundedBuffer(Buffer):
    """Who finds it full waits."""

    async def put(self) -> None:
        if self.items == 16:
            await self.consuming.wait()
        await super().put()
