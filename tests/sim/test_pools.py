"""Jobs are to code under test what the threads of a pool are, in all that it can see of them."""
# ruff: noqa: TID251 - what is banned elsewhere is what is tested here

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.core.choices import choices_from
from harness.core.durations import SECOND
from harness.sim.jobs import TAKES
from harness.sim.kernel import Kernel
from tests.sim.common import as_stock

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="none")


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (SystemExit(3), SystemExit),
        (GeneratorExit(), GeneratorExit),
        (asyncio.CancelledError(), asyncio.CancelledError),
        (concurrent.futures.CancelledError(), asyncio.CancelledError),
        (concurrent.futures.InvalidStateError(), asyncio.InvalidStateError),
        (TimeoutError(), TimeoutError),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, BaseException) else None,
)
def test_whatever_a_job_raises_is_raised_where_it_is_awaited(
    play: Callable[..., Any], error: BaseException, seen: type[BaseException]
) -> None:
    def fails() -> None:
        raise error

    async def main() -> type[BaseException]:
        try:
            await asyncio.to_thread(fails)
        except BaseException as caught:
            return type(caught)
        return type(None)  # type: ignore[return-value]

    assert as_stock(main, play) is seen


def test_an_error_that_nobody_asks_for_is_told_while_the_run_lasts() -> None:
    async def main() -> list[str]:
        loop: Any = asyncio.get_running_loop()
        loop.run_in_executor(None, int, "x")
        await asyncio.sleep(1)
        return list(loop.callback_errors)

    kernel = Kernel()
    task = kernel.spawn(main(), "1")
    kernel.drain(2 * SECOND)
    kernel.tear_down()
    told = "Future exception was never retrieved: ValueError: invalid literal for int() with base"
    assert [each[: len(told)] for each in task.result()] == [told]


def test_an_interrupt_in_a_job_ends_the_run_at_once() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    kernel = Kernel()
    kernel.spawn(asyncio.to_thread(interrupted), "1")
    with pytest.raises(KeyboardInterrupt):
        kernel.drain(SECOND)
    kernel.tear_down()


def test_a_job_has_no_context_but_what_it_is_given(play: Callable[..., Any]) -> None:
    async def main() -> list[str]:
        NAME.set("mine")
        loop = asyncio.get_running_loop()
        return [
            await loop.run_in_executor(None, NAME.get),
            await asyncio.to_thread(NAME.get),
            NAME.get(),
        ]

    assert as_stock(main, play) == ["none", "mine", "mine"]


def test_each_worker_is_initialized_before_its_first_job(play: Callable[..., Any]) -> None:
    async def main() -> tuple[int, list[str]]:
        begun: list[str] = []
        own = threading.local()

        def begin(name: str) -> None:
            begun.append(name)
            own.name = name

        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(2, initializer=begin, initargs=("worker",)) as pool:
            for _ in range(3):
                assert await loop.run_in_executor(pool, lambda: own.name) == "worker"
            alone = len(begun)
            await asyncio.gather(*[loop.run_in_executor(pool, len, "") for _ in range(5)])
        return alone, begun

    assert play(main) == (1, ["worker", "worker"])
    assert asyncio.run(main())[1][0] == "worker"


def test_a_worker_of_a_later_python_says_itself_how_it_begins(play: Callable[..., Any]) -> None:
    """Python 3.14 has a context for each worker, and no name for the initializer."""
    begun: list[str] = []

    class Context:
        def initialize(self) -> None:
            begun.append("worker")

    class Pool(ThreadPoolExecutor):
        _create_worker_context = Context

    async def main() -> None:
        await asyncio.get_running_loop().run_in_executor(Pool(1), len, "")

    play(main)
    assert begun == ["worker"]


def test_a_pool_whose_workers_cannot_begin_is_broken(play: Callable[..., Any]) -> None:
    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, initializer=int, initargs=("x",)) as pool:
            jobs = [loop.run_in_executor(pool, len, "") for _ in range(3)]
            results = await asyncio.gather(*jobs, return_exceptions=True)
        return [type(each).__name__ for each in results]

    assert play(main) == ["BrokenThreadPool"] * 3


def test_a_pool_that_is_left_has_run_all_its_jobs(play: Callable[..., Any]) -> None:
    async def main() -> list[Any]:
        ran: list[int] = []
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:
            jobs = [loop.run_in_executor(pool, ran.append, n) for n in range(3)]
        seen = ran[:]
        return [seen, await asyncio.gather(*jobs), ran]

    assert as_stock(main, play) == [[0, 1, 2], [None] * 3, [0, 1, 2]]


@pytest.mark.parametrize("wait", [False, True])
def test_a_pool_that_is_shut_down_may_cancel_what_waits(
    play: Callable[..., Any], wait: bool
) -> None:
    async def main() -> list[Any]:
        ran: list[int] = []
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(1)

        def first() -> None:
            ran.append(0)
            if not isinstance(loop, Kernel):
                while not pool._shutdown:  # so that no thread is quicker than we are
                    time.sleep(0.0001)
                with pool._shutdown_lock:  # type: ignore[attr-defined]
                    pass

        jobs = [loop.run_in_executor(pool, first)]
        jobs += [loop.run_in_executor(pool, ran.append, n) for n in (1, 2)]
        await asyncio.sleep(0)
        pool.shutdown(wait=wait, cancel_futures=True)
        await asyncio.wait(jobs)
        return [[job.cancelled() for job in jobs], ran]

    assert as_stock(main, play) == [[False, True, True], [0]]


def test_a_pool_of_the_run_may_be_shut_down_by_others_later() -> None:
    pool = ThreadPoolExecutor(1)
    kernel = Kernel()
    kernel.run_in_executor(pool, len, "")
    pool.shutdown()
    kernel.tear_down()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(len, "")


def test_the_pools_of_others_are_shut_down_as_ever(play: Callable[..., Any]) -> None:
    async def main() -> bool:
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        return pool._shutdown

    assert play(main) is True


def refused_in_a_job(function: Callable[[], Any]) -> str:
    kernel = Kernel()
    task = kernel.spawn(asyncio.to_thread(function), "1")
    stop = kernel.run_until(task.done)
    kernel.tear_down()
    assert stop.reason == "out_of_simulation"
    return stop.detail


def test_a_loop_that_a_job_runs_waits_in_virtual_time(play: Callable[..., Any]) -> None:
    async def inner() -> float:
        await asyncio.sleep(5)
        return asyncio.get_running_loop().time() - 1_000

    async def main() -> float:
        return await asyncio.to_thread(asyncio.run, inner())

    assert play(main) == 5


def test_a_job_is_in_its_run_after_a_run_of_its_own(play: Callable[..., Any]) -> None:
    async def main() -> Any:
        def plays() -> Any:
            async def inner() -> float:
                await asyncio.sleep(5)
                return await asyncio.to_thread(time.time)

            before = time.time()
            return play(inner) - before, time.time() - before

        return await asyncio.to_thread(plays)

    assert play(main) == (5, 0)


def test_a_job_may_start_jobs_and_tell_its_loop() -> None:
    seen: list[str] = []

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()

        def starts() -> None:
            loop.call_soon_threadsafe(seen.append, "told")
            loop.run_in_executor(None, lambda: seen.append(loop.current_path()))

        await asyncio.to_thread(starts)
        await asyncio.sleep(1)

    kernel = Kernel(choices=choices_from({("job", "1.job1"): (1, len(TAKES))}))
    kernel.spawn(main(), "1")
    assert kernel.drain(2 * SECOND).reason == "quiescent"
    kernel.tear_down()
    assert seen == ["told", "1.job1.job2"]


def test_a_job_whose_loop_is_closed_never_runs() -> None:
    ran: list[int] = []
    kernel = Kernel()
    future = kernel.run_in_executor(None, ran.append, 1)
    kernel.close()
    assert not future.done()
    with pytest.raises(RuntimeError, match="closed"):
        kernel.run_in_executor(None, ran.append, 2)
    assert ran == []
