"""Twins of programs that are right, each with one mistake that people make."""

# ruff: noqa: ASYNC110, RUF006 - the functions here are wrong on purpose

from __future__ import annotations

import asyncio
from contextlib import suppress

from harness import choose
from tests.known_bugs.right import Connects, Guarded, fetch
from tests.known_bugs.right_shared import Locked, SingleFlight


class LosesItsCleanUp(Connects):
    """Closes only where all went well."""

    async def run(self) -> str:
        await asyncio.sleep(0.01)
        self.log.append("open")
        answer = await fetch("answer")
        self.log.append("closed")
        return answer


async def forgets_its_heartbeat() -> str:
    """No `finally`: who is cancelled leaves it beating."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(0.03)

    task = asyncio.create_task(beat())
    page = await fetch("page")
    task.cancel()
    return page


async def swallows_a_cancel() -> None:
    for _ in range(3):
        try:
            await fetch("page")
        except BaseException:
            print("failed, goes on")


async def fires_and_forgets() -> None:
    """What it starts is of use only as long as it lives itself."""
    await fetch("page")
    try:
        await fetch("more")
    except asyncio.CancelledError:
        asyncio.create_task(fetch("report", takes=5))
        raise


class ReleasesTwice(Locked):
    """The lock is released where it is cancelled, and once more in the end."""

    async def withdraw(self, amount: int) -> bool:
        await self.lock.acquire()
        try:
            await asyncio.sleep(0.01)
            return True
        except asyncio.CancelledError:
            self.lock.release()
            raise
        finally:
            self.lock.release()


class ChecksThenActs(Locked):
    """Others come between the look at the balance and the withdrawal."""

    async def withdraw(self, amount: int) -> bool:
        if self.balance < amount:
            return False
        await asyncio.sleep(0.01)
        self.balance -= amount
        return True

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(self.withdraw(6))


class PoisonsItsCache(SingleFlight):
    """Keeps the future of a flight that was cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.futures: dict[str, asyncio.Future[str]] = {}

    async def get(self, key: str) -> str:
        if key in self.futures:
            return await self.futures[key]
        future = self.futures[key] = asyncio.get_running_loop().create_future()
        future.set_result(await self.load(key))
        return await future


async def retries_cancels() -> str:
    """Takes a cancel for one more thing that can go wrong."""

    async def refused() -> str:
        await asyncio.sleep(0.01)
        if choose("server", 2) == 0:
            raise ConnectionError("refused")
        return "page"

    for attempt in range(3):
        try:
            return await refused()
        except (ConnectionError, asyncio.CancelledError):
            await asyncio.sleep(0.1 * 2**attempt)
    return "none"


class ShieldsAndLeaves:
    """Guards the commit, and does not wait for it; the connection is closed under it."""

    def __init__(self) -> None:
        self.open = True
        self.committed: list[bool] = []

    async def commit(self) -> None:
        await asyncio.sleep(0.05)
        self.committed.append(self.open)

    async def run(self) -> None:
        try:
            await asyncio.shield(self.commit())
        finally:
            self.open = False

    def check(self) -> None:
        assert self.committed != [False], "committed on a connection that was closed"


async def gathers_and_leaves() -> list[str]:
    """What fails ends the gathering, and its siblings go on."""

    async def fails() -> str:
        await asyncio.sleep(0.01)
        raise ConnectionError("refused")

    with suppress(ConnectionError):
        return await asyncio.gather(fails(), fetch("page", takes=100))
    return []


class UnlocksAfterAnAwait:
    """A second cancel comes before the lock is let go of."""

    def __init__(self) -> None:
        self.locked = False

    async def run(self) -> None:
        self.locked = True
        try:
            await fetch("page")
        finally:
            await asyncio.sleep(0.01)
            self.locked = False

    def check(self) -> None:
        assert not self.locked, "it is locked"


class LosesItems:
    """What was taken from the queue is gone where its work is cut short."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[int] = asyncio.Queue()
        self.done: list[int] = []

    async def work(self) -> None:
        while not self.queue.empty():
            item = await self.queue.get()
            await asyncio.sleep(0.01)
            self.done.append(item)

    async def run(self) -> None:
        for item in range(3):
            self.queue.put_nowait(item)
        await self.work()

    def check(self) -> None:
        left = [self.queue.get_nowait() for _ in range(self.queue.qsize())]
        assert self.done + left == [0, 1, 2], f"lost: {self.done} done, {left} left"


class LosesPermits(Guarded):
    """A permit is given back only where all went well."""

    async def add(self) -> None:
        await self.permits.acquire()
        await asyncio.sleep(0.01)
        self.permits.release()
