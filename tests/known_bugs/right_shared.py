"""More programs that are right: what several tasks share, and how they come to an end."""

# ruff: noqa: ASYNC110 - to look again and again is what is tried here

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.known_bugs.right import fetch


class Bounded:
    """A producer waits where the queue is full; the consumer stops at the end mark."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        self.got: list[int] = []

    async def produce(self) -> None:
        for item in range(4):
            await self.queue.put(item)
        await self.queue.put(-1)

    async def consume(self) -> None:
        while (item := await self.queue.get()) >= 0:
            await asyncio.sleep(0.01)
            self.got.append(item)

    async def run(self) -> None:
        produce = asyncio.create_task(self.produce())
        consume = asyncio.create_task(self.consume())
        both = (produce, consume)
        try:
            done, left = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if left and not any(each.cancelled() for each in done):
                await asyncio.wait(left)
        finally:
            for each in both:
                each.cancel()
            await asyncio.wait(both)

    def check(self) -> None:
        assert self.got == list(range(len(self.got)))


class RateLimited:
    """No more than two calls within a second."""

    def __init__(self) -> None:
        self.calls: deque[float] = deque()
        self.lock = asyncio.Lock()

    async def call(self) -> None:
        loop = asyncio.get_running_loop()
        async with self.lock:
            while len(self.calls) >= 2 and loop.time() - self.calls[-2] < 1:
                await asyncio.sleep(self.calls[-2] + 1 - loop.time())
            self.calls.append(loop.time())
        await fetch("page")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(self.call())

    def check(self) -> None:
        calls = list(self.calls)
        assert all(b - a >= 1 for a, b in zip(calls, calls[2:], strict=False))


class SingleFlight:
    """Who asks for what is being fetched waits for that; who is cancelled harms no other."""

    def __init__(self) -> None:
        self.flights: dict[str, asyncio.Task[str]] = {}
        self.values: dict[str, str] = {}
        self.waiting: dict[str, int] = {}

    async def load(self, key: str) -> str:
        self.values[key] = await fetch(key)
        return self.values[key]

    async def get(self, key: str) -> str:
        while key not in self.values:
            flight = self.flights.get(key)
            if flight is None or flight.done():
                flight = self.flights[key] = asyncio.create_task(self.load(key))
            self.waiting[key] = self.waiting.get(key, 0) + 1
            try:
                await asyncio.wait([flight])
            finally:
                self.waiting[key] -= 1
                if not self.waiting[key] and not flight.done():
                    flight.cancel()
                    await asyncio.wait([flight])
        return self.values[key]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for key in ("a", "a", "b"):
                group.create_task(self.get(key))

    async def check(self) -> None:
        assert await self.get("a") == "a"


class Service:
    """Shuts down gracefully: takes nothing new, finishes what it has, within its time."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.requests: set[asyncio.Task[str]] = set()

    async def accept(self) -> None:
        while not self.stopping.is_set():
            await asyncio.sleep(0.02)
            task = asyncio.create_task(fetch("page", 0.05))
            self.requests.add(task)
            task.add_done_callback(self.requests.discard)

    async def shut_down(self, accepting: asyncio.Task[None]) -> None:
        self.stopping.set()
        accepting.cancel()
        await asyncio.wait([accepting, *self.requests], timeout=1)

    async def run(self) -> None:
        accepting = asyncio.create_task(self.accept())
        try:
            await asyncio.sleep(0.1)
        finally:
            await asyncio.shield(self.shut_down(accepting))

    def check(self) -> None:
        assert not self.requests


class Leases:
    """A pool whose leases are given back by a context manager."""

    def __init__(self) -> None:
        self.free: asyncio.Queue[str] = asyncio.Queue()
        for name in ("a", "b"):
            self.free.put_nowait(name)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[str]:
        name = await self.free.get()
        try:
            yield name
        finally:
            self.free.put_nowait(name)

    async def use(self) -> None:
        async with self.lease() as name:
            await fetch(name)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(self.use())

    async def check(self) -> None:
        assert self.free.qsize() == 2


class Locked:
    """Takes the lock only where it got it, and gives it back once."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.balance = 10

    async def withdraw(self, amount: int) -> bool:
        async with self.lock:
            if self.balance < amount:
                return False
            await asyncio.sleep(0.01)
            self.balance -= amount
            return True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(self.withdraw(6))

    def check(self) -> None:
        assert self.balance in (10, 4), f"the balance is {self.balance}"
        assert not self.lock.locked()


async def races() -> str:
    """The first of two replicas that answers; the other is cancelled and waited for."""
    tasks = [asyncio.create_task(fetch(name, takes)) for name, takes in (("a", 0.1), ("b", 0.2))]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next((each.result() for each in tasks if each in done and not each.cancelled()), "")
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)


async def waits_with_wait_for() -> str | None:
    """`wait_for` of 3.11 gives what is done and forgets the cancel; `timeout` does not."""
    try:
        return await asyncio.wait_for(asyncio.Event().wait(), 0.05) and "set"
    except TimeoutError:
        return None


async def gathers() -> list[str]:
    """Siblings of what fails are cancelled and waited for."""
    tasks = [asyncio.create_task(fetch(name)) for name in ("a", "b")]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)


async def polls() -> bool:
    ready = False

    async def gets_ready() -> None:
        nonlocal ready
        await asyncio.sleep(0.05)
        ready = True

    async with asyncio.TaskGroup() as group:
        task = group.create_task(gets_ready())
        while not ready and not task.done():
            await asyncio.sleep(0.01)
    return ready
