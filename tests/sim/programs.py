"""Small random programs of asyncio that note what they do, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

Program: TypeAlias = list[list[str]]
"""For each of some tasks, the names of what it does, one after the other."""

YIELDS = 80
"""How many steps of a program without timers are waited for before all is cancelled."""


class Play:
    """One play of a program: what its tasks share, and the `log` of what they did."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.event, self.lock = asyncio.Event(), asyncio.Lock()
        self.limit, self.condition = asyncio.Semaphore(2), asyncio.Condition()
        self.queue: asyncio.Queue[str] = asyncio.Queue(1)
        self.futures: list[asyncio.Future[int]] = []
        self.timers: list[asyncio.TimerHandle] = []
        self.workers: list[asyncio.Task[None]] = []
        self.others: list[asyncio.Task[Any]] = []

    async def run(self, program: Program, *, timed: bool) -> None:
        """Have the tasks do all of it, or as much as they can, and cancel them."""
        loop = asyncio.get_running_loop()
        start = loop.time()

        async def worker(number: int, names: list[str]) -> None:
            try:
                for at, name in enumerate(names):
                    self.log.append((number, at, round(loop.time() - start, 3) if timed else 0))
                    await EVERYTHING[name](self, f"{number}.{at}")
            except asyncio.CancelledError:
                self.log.append((number, "cancelled"))
                raise
            self.log.append((number, "done"))

        self.workers += [loop.create_task(worker(*each)) for each in enumerate(program)]
        if timed:
            await asyncio.sleep(60)
        else:
            for _ in range(YIELDS):
                await asyncio.sleep(0)
        tasks = [*self.workers, *self.others]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def leaf(self, name: str) -> str:
        """A task that makes three steps."""
        self.log.append((name, "begins"))
        try:
            await asyncio.sleep(0)
            self.log.append((name, "goes on"))
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.log.append((name, "cancelled"))
            raise
        self.log.append((name, "ends"))
        return name

    def two(self, name: str) -> list[asyncio.Task[Any]]:
        """Two such tasks."""
        made = [asyncio.create_task(self.leaf(name + each)) for each in "ab"]
        self.others += made
        return made


async def _yield(_play: Play, _name: str) -> None:
    await asyncio.sleep(0)


async def _soon(play: Play, name: str) -> None:
    loop = asyncio.get_running_loop()
    never = loop.call_soon(play.log.append, (name, "never"))
    loop.call_soon(play.log.append, (name, "soon"))
    never.cancel()


async def _future(play: Play, name: str) -> None:
    made = asyncio.get_running_loop().create_future()
    made.add_done_callback(lambda _done: play.log.append((name, "callback")))
    play.futures.append(made)
    await made


async def _resolve(play: Play, _name: str) -> None:
    for each in [each for each in play.futures if not each.done()][:1]:
        each.set_result(1)


async def _set(play: Play, _name: str) -> None:
    play.event.set()


async def _wait(play: Play, _name: str) -> None:
    await play.event.wait()
    play.event.clear()


async def _hold(play: Play, name: str) -> None:
    for each in (play.lock, play.limit, play.condition):
        async with each:
            play.log.append((name, type(each).__name__))
            await asyncio.sleep(0)


async def _put(play: Play, name: str) -> None:
    await play.queue.put(name)


async def _get(play: Play, name: str) -> None:
    play.log.append((name, await play.queue.get()))


async def _group(play: Play, name: str) -> None:
    async with asyncio.TaskGroup() as group:
        for each in "ab":
            group.create_task(play.leaf(name + each))


async def _gather(play: Play, name: str) -> None:
    play.log.append((name, await asyncio.gather(*play.two(name))))


async def _first(play: Play, name: str) -> None:
    done, _ = await asyncio.wait(play.two(name), return_when=asyncio.FIRST_COMPLETED)
    play.log.append((name, len(done)))


async def _completed(play: Play, name: str) -> None:
    for each in asyncio.as_completed(play.two(name)):
        play.log.append((name, await each))


async def _shield(play: Play, name: str) -> None:
    await asyncio.shield(play.two(name)[0])


async def _cancel_first(play: Play, name: str) -> None:
    if play.workers[0] is not asyncio.current_task():
        play.log.append((name, play.workers[0].cancel()))


async def _cancel_last(play: Play, name: str) -> None:
    if play.workers[-1] is not asyncio.current_task():
        play.log.append((name, play.workers[-1].cancel()))


def _sleeps(seconds: float) -> Action:
    async def sleeps(_play: Play, _name: str) -> None:
        await asyncio.sleep(seconds)

    return sleeps


def _sets_timer(seconds: float) -> Action:
    async def sets_timer(play: Play, name: str) -> None:
        loop = asyncio.get_running_loop()
        when = loop.time() + seconds
        play.timers.append(loop.call_at(when, play.log.append, (name, "timer")))

    return sets_timer


async def _cancel_timer(play: Play, _name: str) -> None:
    if play.timers:
        play.timers.pop().cancel()


async def _time_out(play: Play, name: str) -> None:
    try:
        async with asyncio.timeout(1):
            await asyncio.sleep(2)
    except TimeoutError:
        play.log.append((name, "timeout"))


async def _wait_for(play: Play, name: str) -> None:
    try:
        await asyncio.wait_for(asyncio.sleep(1), 1)
    except TimeoutError:
        play.log.append((name, "timeout"))


async def _poll(play: Play, name: str) -> None:
    done, _ = await asyncio.wait(play.two(name), timeout=0)
    play.log.append((name, len(done)))


async def _job(play: Play, name: str) -> None:
    await asyncio.to_thread(play.log.append, (name, "job"))


Action: TypeAlias = Callable[[Play, str], Awaitable[None]]

PLAIN: dict[str, Action] = {
    "yield": _yield,
    "soon": _soon,
    "future": _future,
    "resolve": _resolve,
    "set": _set,
    "wait": _wait,
    "hold": _hold,
    "put": _put,
    "get": _get,
    "group": _group,
    "gather": _gather,
    "first": _first,
    "completed": _completed,
    "shield": _shield,
    "cancel first": _cancel_first,
    "cancel last": _cancel_last,
}
TIMED: dict[str, Action] = {
    **{f"sleep {n}": _sleeps(n) for n in (1, 2)},
    **{f"timer {n}": _sets_timer(n) for n in (-2, -1, 0, 1, 2)},
    "cancel timer": _cancel_timer,
    "time out": _time_out,
    "wait for": _wait_for,
    "poll": _poll,
    "job": _job,
}
EVERYTHING = {**PLAIN, **TIMED}
