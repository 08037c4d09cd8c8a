"""How the kernel compares with stock asyncio, in one process.

A ratio below 1 means that the kernel is the quicker. Both sides run the same coroutines. A run has
a kernel of its own; stock asyncio is measured with one loop for all runs, and with a loop a run.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

from harness.sim.kernel import Kernel, Limits

ROUNDS = 9
WIDE = Limits(steps=10**9, steps_per_instant=10**9)


async def ping_pong(steps: int) -> None:
    async def player() -> None:
        for _ in range(steps // 2):
            await asyncio.sleep(0)

    await asyncio.gather(player(), player())


async def wakes(steps: int) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(steps):
        future = loop.create_future()
        loop.call_soon(future.set_result, None)
        await future


async def crowd(steps: int) -> None:
    async def member() -> None:
        for _ in range(steps // 100):
            await asyncio.sleep(0)

    await asyncio.gather(*(member() for _ in range(100)))


async def timers(steps: int) -> None:
    async def sleeper() -> None:
        for _ in range(steps // 4):
            await asyncio.sleep(1e-9)

    await asyncio.gather(*(sleeper() for _ in range(4)))


async def four_tasks() -> None:
    async def tool() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(tool())


async def many_groups(groups: int) -> None:
    for _ in range(groups):
        await four_tasks()


async def three_by_five() -> None:
    async def tool() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    await asyncio.gather(tool(), tool(), tool())


async def nothing() -> None: ...


def on_stock(make: Callable[[], Coroutine[Any, Any, None]], times: int) -> float:
    loop = asyncio.new_event_loop()
    try:
        start = perf_counter()
        for _ in range(times):
            loop.run_until_complete(make())
        return (perf_counter() - start) / times
    finally:
        loop.close()


def on_fresh_stock(make: Callable[[], Coroutine[Any, Any, None]], times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        asyncio.run(make())
    return (perf_counter() - start) / times


def on_kernel(make: Callable[[], Coroutine[Any, Any, None]], times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        kernel = Kernel(WIDE)
        task = kernel.spawn(make(), "1")
        stop = kernel.run_until(task.done)
        assert stop.reason == "done", stop
        kernel.tear_down()
    return (perf_counter() - start) / times


def best(measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(ROUNDS))


def compare(
    name: str, make: Callable[[], Coroutine[Any, Any, None]], steps: int, times: int
) -> None:
    kernel, stock, fresh = 1e9, 1e9, 1e9
    for _ in range(ROUNDS):
        kernel = min(kernel, on_kernel(make, times))
        stock = min(stock, on_stock(make, times))
        fresh = min(fresh, on_fresh_stock(make, times))
    print(
        f"{name:28} kernel {kernel / steps * 1e6:7.3f} us   stock {stock / steps * 1e6:7.3f} us"
        f"   ratio {kernel / stock:.2f}   to a loop a run {kernel / fresh:.2f}"
    )


def life(times: int = 2_000) -> float:
    start = perf_counter()
    for _ in range(times):
        Kernel().tear_down()
    return (perf_counter() - start) / times


def main() -> None:
    print(sys.version.split()[0])
    compare("ping-pong of 2, a step", lambda: ping_pong(20_000), 20_000, 1)
    compare("wake-up by a future, a step", lambda: wakes(10_000), 20_000, 1)
    compare("100 tasks, a step", lambda: crowd(20_000), 20_000, 1)
    compare("4 sleepers, a step", lambda: timers(10_000), 20_000, 1)
    compare("TaskGroup of 4 x 3, a group", lambda: many_groups(500), 500, 1)
    compare("TaskGroup of 4 x 3, a run", four_tasks, 1, 300)
    compare("3 x 5 steps, a run", three_by_five, 1, 300)
    compare("nothing, a run", nothing, 1, 300)
    print(f"{'create and tear down':28} kernel {best(life) * 1e6:8.3f} us")


if __name__ == "__main__":
    main()
