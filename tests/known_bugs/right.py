"""Programs that are right, as people write them: no sweep and no search may blame one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Self

import anyio

from harness import choose


async def fetch(name: str, takes: float = 0.1) -> str:
    await asyncio.sleep(takes)
    return name


class GroupWithCleanUp:
    """Each task of a group gives back what it took, with an await."""

    def __init__(self) -> None:
        self.open: set[str] = set()

    async def use(self, name: str) -> None:
        self.open.add(name)
        try:
            await fetch(name)
        finally:
            try:
                await asyncio.sleep(0.01)
            finally:
                self.open.discard(name)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("a", "b", "c"):
                group.create_task(self.use(name))

    def check(self) -> None:
        assert not self.open


async def gathers_with_exceptions() -> list[str]:
    async def fails() -> str:
        await asyncio.sleep(0.1)
        raise ConnectionError("refused")

    found = await asyncio.gather(fetch("a"), fails(), fetch("b"), return_exceptions=True)
    if any(isinstance(each, asyncio.CancelledError) for each in found):
        raise asyncio.CancelledError  # one of them was cancelled, so that all is
    return [each for each in found if isinstance(each, str)]


async def waits_under_a_timeout() -> str | None:
    try:
        async with asyncio.timeout(0.05):
            return await fetch("slow")
    except TimeoutError:
        return None


async def retries() -> str:
    async def refused() -> str:
        await asyncio.sleep(0.01)
        if choose("server", 2) == 0:
            raise ConnectionError("refused")
        return "page"

    for attempt in range(3):
        try:
            async with asyncio.timeout(1):
                return await refused()
        except (ConnectionError, TimeoutError):
            await asyncio.sleep(0.1 * 2**attempt)
    return "none"


class ShieldedCommit:
    """The commit is one step: it is waited for to its end, whoever cancels."""

    def __init__(self) -> None:
        self.begun = self.committed = False

    async def commit(self) -> None:
        await asyncio.sleep(0.05)
        self.committed = True

    async def run(self) -> None:
        await asyncio.sleep(0.1)
        self.begun = True
        commit = asyncio.create_task(self.commit())
        try:
            await asyncio.shield(commit)
        finally:
            await asyncio.wait([commit])

    def check(self) -> None:
        """What was begun is done; a commit that was itself cancelled is nobody's to mend."""
        assert self.begun or not self.committed


class WorkersWithSentinel:
    def __init__(self) -> None:
        self.queue: asyncio.Queue[int | None] = asyncio.Queue()
        self.seen: list[int] = []

    async def work(self) -> None:
        while (item := await self.queue.get()) is not None:
            await asyncio.sleep(0.01)
            self.seen.append(item)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(self.work()) for _ in range(2)]
            for item in range(5):
                await self.queue.put(item)
            for _ in workers:
                await self.queue.put(None)


class WorkersWithJoin:
    def __init__(self) -> None:
        self.queue: asyncio.Queue[int] = asyncio.Queue()
        self.done = 0

    async def work(self) -> None:
        while True:
            await self.queue.get()
            try:
                await asyncio.sleep(0.01)
                self.done += 1
            finally:
                self.queue.task_done()

    async def run(self) -> None:
        for item in range(5):
            self.queue.put_nowait(item)
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(self.work()) for _ in range(2)]
            joined = asyncio.create_task(self.queue.join())
            try:
                await asyncio.wait([joined, *workers], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in (joined, *workers):
                    each.cancel()
                await asyncio.wait([joined])


class Guarded:
    """At most two at a time, and each update of the value under a lock."""

    def __init__(self) -> None:
        self.permits = asyncio.Semaphore(2)
        self.lock = asyncio.Lock()
        self.inside = self.most = self.value = 0

    async def add(self) -> None:
        async with self.permits:
            self.inside += 1
            self.most = max(self.most, self.inside)
            try:
                async with self.lock:
                    value = self.value
                    await asyncio.sleep(0.01)
                    self.value = value + 1
            finally:
                self.inside -= 1

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(self.add())

    async def check(self) -> None:
        assert self.most <= 2
        assert self.inside == 0
        async with asyncio.timeout(1):
            for _ in range(2):
                await self.permits.acquire()
        assert not self.lock.locked()


class Meeting:
    """Consumers wait on a condition until there is something; the event ends them."""

    def __init__(self) -> None:
        self.condition = asyncio.Condition()
        self.ready = asyncio.Event()
        self.items: list[int] = []
        self.taken: list[int] = []

    async def consume(self) -> None:
        await self.ready.wait()
        async with self.condition:
            await self.condition.wait_for(lambda: bool(self.items))
            self.taken.append(self.items.pop())
            if self.items:
                self.condition.notify()

    async def produce(self) -> None:
        self.ready.set()
        for item in range(2):
            await asyncio.sleep(0.01)
            async with self.condition:
                self.items.append(item)
                self.condition.notify_all()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            consumers = [group.create_task(self.consume()) for _ in range(2)]
            producer = group.create_task(self.produce())
            await asyncio.wait([producer])
            if producer.cancelled():
                for each in consumers:
                    each.cancel()

    def check(self) -> None:
        assert not self.condition.locked()


class Connection:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    async def __aenter__(self) -> Self:
        await asyncio.sleep(0.01)
        self.log.append("open")
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.sleep(0.01)
        finally:
            self.log.append("closed")

    async def ask(self) -> str:
        await asyncio.sleep(0.1)
        return "answer"


class Connects:
    def __init__(self) -> None:
        self.log: list[str] = []

    async def run(self) -> str:
        async with Connection(self.log) as connection:
            return await connection.ask()

    def check(self) -> None:
        assert self.log.count("open") == self.log.count("closed"), "opened but not closed"


class Stacks(Connects):
    async def run(self) -> str:
        async with AsyncExitStack() as stack:
            connections = [await stack.enter_async_context(Connection(self.log)) for _ in range(3)]
            return await connections[-1].ask()


async def numbers() -> AsyncIterator[int]:
    try:
        for number in range(5):
            await asyncio.sleep(0.01)
            yield number
    finally:
        await asyncio.sleep(0.01)


async def reads_some() -> int:
    async with aclosing(numbers()) as stream:
        async for number in stream:
            if number == 2:
                return number
    return -1


async def uses_anyio() -> list[str]:
    found: list[str] = []

    async def ask(name: str) -> None:
        await anyio.sleep(0.1)
        found.append(name)

    async with anyio.create_task_group() as group:
        for name in ("a", "b"):
            group.start_soon(ask, name)
    return found


async def moves_on() -> list[str]:
    """The first answer is enough; a scope gives up after a while, and cleans up behind a shield."""
    found: list[str] = []

    async def ask(name: str, takes: float, scope: anyio.CancelScope) -> None:
        try:
            await anyio.sleep(takes)
            found.append(name)
            scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)

    with anyio.move_on_after(1):
        async with anyio.create_task_group() as group:
            for name, takes in (("fast", 0.1), ("slow", 5)):
                group.start_soon(ask, name, takes, group.cancel_scope)
    return found


async def anyio_streams() -> list[int]:
    send, receive = anyio.create_memory_object_stream[int](1)
    got: list[int] = []

    async def produce() -> None:
        async with send:
            for item in range(3):
                await send.send(item)

    with send, receive:
        async with anyio.create_task_group() as group:
            group.start_soon(produce)
            with suppress(anyio.EndOfStream):
                while True:
                    got.append(await receive.receive())
    return got


async def has_a_heartbeat() -> str:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.03)
            beats += 1

    task = asyncio.create_task(beat())
    try:
        return await fetch("page")
    finally:
        task.cancel()
        await asyncio.wait([task])


async def works_in_a_thread() -> int:
    return await asyncio.to_thread(sum, range(10))


class Debounce:
    """Only the last of several calls within a while does anything."""

    def __init__(self) -> None:
        self.saved: list[str] = []
        self.task: asyncio.Task[None] | None = None

    async def save(self, text: str) -> None:
        await asyncio.sleep(0.05)
        self.saved.append(text)

    async def change(self, text: str) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])
        self.task = asyncio.create_task(self.save(text))

    async def run(self) -> None:
        try:
            for text in ("a", "ab", "abc"):
                await self.change(text)
                await asyncio.sleep(0.01)
            assert self.task is not None
            await asyncio.wait([self.task])
        finally:
            if self.task is not None and not self.task.done():
                self.task.cancel()
                await asyncio.wait([self.task])

    def check(self) -> None:
        assert self.saved in ([], ["abc"])


async def fans_out_and_in() -> list[str]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fetch(str(number), 0.01 * number)) for number in range(4)]
        await asyncio.wait(tasks)
    return [task.result() for task in tasks]
