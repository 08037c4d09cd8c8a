"""Functions that are handed to a pool of threads: not started, running, finished."""

from __future__ import annotations

import asyncio
import contextvars
import os
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import anyio
import anyio.to_thread
import pytest

from harness.core.choices import choices_from
from harness.core.durations import SECOND
from harness.core.errors import ReplayMismatch
from harness.sim.jobs import TAKES, WORKERS
from harness.sim.kernel import Kernel
from harness.sim.sites import SiteKernel
from tests.sim.common import as_stock

MS = SECOND // 1_000


def test_a_job_gives_what_its_function_returns(play: Callable[..., Any]) -> None:
    async def main() -> tuple[Any, ...]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        total = await loop.run_in_executor(None, sum, [1, 2])
        return total, await asyncio.to_thread(lambda: "b"), round((loop.time() - start) * 1_000)

    assert play(main) == (3, "b", 2)


@pytest.mark.parametrize(
    ("error", "seen"),
    [(ValueError("no"), "ValueError: no"), (StopIteration(), "RuntimeError: a job raised Stop")],
)
def test_a_job_raises_what_its_function_raises(
    play: Callable[..., Any], error: Exception, seen: str
) -> None:
    def fails() -> None:
        raise error

    async def main() -> str:
        try:
            await asyncio.to_thread(fails)
        except Exception as caught:
            return f"{type(caught).__name__}: {caught}"
        return "nothing"

    assert play(main).startswith(seen)


def test_a_job_has_the_context_and_no_loop(play: Callable[..., Any]) -> None:
    told: contextvars.ContextVar[str] = contextvars.ContextVar("told")

    def look() -> tuple[str, bool]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return told.get(), False
        return told.get(), True

    async def main() -> tuple[str, bool]:
        told.set("yes")
        return await asyncio.to_thread(look)

    assert play(main) == ("yes", False)


@pytest.mark.parametrize(
    ("step", "effects", "at"),
    [
        (1, [], 0),  # it waits for a worker
        (2, ["done"], 0),  # it runs: its effect stays, its result is lost
        (3, ["done"], MS),  # it has finished, and its result is lost too
    ],
)
def test_a_cancel_finds_a_job_not_started_running_or_finished(
    step: int, effects: list[str], at: int
) -> None:
    seen: list[str] = []

    async def user() -> int:
        try:
            await asyncio.to_thread(seen.append, "done")
        except asyncio.CancelledError:
            return kernel.now()
        return -1

    kernel = SiteKernel()
    task = kernel.spawn(user(), "1")
    kernel.after_step(step, task.cancel)
    assert kernel.drain(SECOND).reason == "quiescent"
    assert (task.result(), seen) == (at, effects)
    kernel.tear_down()


def test_a_worker_is_taken_by_one_job_at_a_time(play: Callable[..., Any]) -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        ends: list[float] = []

        async def use() -> None:
            await loop.run_in_executor(pool, len, "")
            ends.append(round((loop.time() - start) * 1_000))

        await asyncio.gather(use(), use(), use())
        return ends

    with ThreadPoolExecutor(max_workers=1) as pool:
        assert play(main) == [1, 2, 3]
    with ThreadPoolExecutor(max_workers=2) as pool:
        assert play(main) == [1, 1, 2]


def test_a_job_that_waits_for_a_worker_is_cancelled_in_the_queue(play: Callable[..., Any]) -> None:
    ran: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        jobs = [loop.run_in_executor(pool, ran.append, n) for n in range(3)]
        await asyncio.sleep(0.0005)
        jobs[1].cancel()
        await jobs[2]

    with ThreadPoolExecutor(max_workers=1) as pool:
        play(main)
    assert ran == [0, 2]


def test_the_pool_of_the_loop_has_as_many_workers_on_every_machine(
    play: Callable[..., Any],
) -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        jobs = [loop.run_in_executor(None, len, "") for _ in range(WORKERS + 1)]
        await asyncio.sleep(0.0015)
        return sum(job.done() for job in jobs)

    assert play(main) == WORKERS


def test_how_long_a_job_runs_is_a_choice() -> None:
    async def main() -> None:
        await asyncio.to_thread(len, "")

    for value, takes in enumerate(TAKES):
        kernel = Kernel(choices=choices_from({("job", "1.job1"): (value, len(TAKES))}))
        kernel.spawn(main(), "1")
        assert kernel.drain(60 * SECOND).reason == "quiescent"
        assert kernel.now() == takes
        kernel.tear_down()


def test_a_tape_that_does_not_fit_ends_the_run() -> None:
    kernel = Kernel(choices=choices_from({("job", "1.job1"): (1, len(TAKES) + 1)}))
    kernel.spawn(asyncio.to_thread(len, ""), "1")
    with pytest.raises(ReplayMismatch, match=r"decides job '1.job1' as 1 of 4"):
        kernel.drain(SECOND)
    kernel.tear_down()


def test_what_happens_in_a_job_happens_at_its_path(play: Callable[..., Any]) -> None:
    async def main() -> list[str]:
        kernel: Any = asyncio.get_running_loop()
        return [await asyncio.to_thread(kernel.current_path), kernel.current_path()]

    assert play(main) == ["1.job1", "1"]


def test_a_job_made_outside_of_any_task_has_a_path_of_its_own() -> None:
    kernel = Kernel()
    future = kernel.run_in_executor(None, kernel.current_path)
    kernel.drain(SECOND)
    assert future.result() == "job1"
    kernel.tear_down()


def test_a_job_that_has_not_begun_is_on_its_way(kernel: Kernel) -> None:
    """What it begins in the very instant of a cancel is not blamed."""
    seen: list[tuple[str, ...]] = []

    async def main() -> None:
        with ThreadPoolExecutor(1) as pool:
            loop = asyncio.get_running_loop()
            jobs = [loop.run_in_executor(pool, len, "") for _ in range(2)]
            seen.append(kernel.on_their_way())
            await asyncio.wait(jobs)
        seen.append(kernel.on_their_way())

    task = kernel.spawn(main(), "1")
    kernel.run_until(task.done)
    assert seen == [("1.job1", "1.job2"), ()]


def test_what_a_job_leaves_to_be_done_is_over_with_the_run(kernel: Kernel) -> None:
    ran: list[int] = []

    async def main() -> None:
        await asyncio.to_thread(ran.append, 1)

    task = kernel.spawn(main(), "1")
    kernel.run_until(lambda: bool(task.k))
    kernel.tear_down()
    assert task.cancelled()
    assert ran == []


def test_a_pool_that_is_shut_down_takes_no_job(play: Callable[..., Any]) -> None:
    async def main() -> None:
        pool = ThreadPoolExecutor()
        pool.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            asyncio.get_running_loop().run_in_executor(pool, len, "")

    play(main)


def test_a_pool_of_the_users_own_does_it_itself(play: Callable[..., Any]) -> None:
    class AtOnce(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
            done: Future[Any] = Future()
            done.set_result(fn(*args, **options))
            return done

    async def main() -> int:
        return await asyncio.get_running_loop().run_in_executor(AtOnce(), sum, [1, 2])

    assert play(main) == 3


def test_the_loops_pool_may_be_set_and_shut_down(play: Callable[..., Any]) -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(max_workers=1))
        await asyncio.gather(asyncio.to_thread(len, ""), asyncio.to_thread(len, ""))
        await loop.shutdown_default_executor()
        return [loop.time() - 1_000]

    assert play(main) == [pytest.approx(0.002)]


def test_a_job_may_sleep(play: Callable[..., Any]) -> None:
    async def main() -> tuple[list[None], float]:
        loop = asyncio.get_running_loop()
        start = loop.time()
        naps = [asyncio.to_thread(time.sleep, seconds) for seconds in (3, 1, 2)]
        return await asyncio.gather(*naps), round(loop.time() - start, 3)

    assert play(main) == ([None] * 3, 3.001)


def test_a_job_that_leaves_the_simulation_ends_the_run_and_names_its_line() -> None:
    def reads() -> None:
        socket.create_connection(("127.0.0.1", 9))

    async def asks() -> None:
        await asyncio.to_thread(os.system, "true")

    for job, line in ((asyncio.to_thread(reads), "in reads"), (asks(), "in asks")):
        kernel = Kernel()
        task = kernel.spawn(job, "1")
        stop = kernel.run_until(task.done)
        kernel.tear_down()
        assert stop.reason == "out_of_simulation"
        assert re.match(rf"tests/sim/test_jobs.py:\d+ {line} used ", stop.detail)


def test_the_outcomes_are_those_of_real_threads(play: Callable[..., Any]) -> None:
    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()
        results = await asyncio.gather(
            asyncio.to_thread(int, "7"),
            asyncio.to_thread(int, "x"),
            loop.run_in_executor(None, divmod, 7, 2),
            return_exceptions=True,
        )
        return [str(each) for each in results]

    assert as_stock(main, play) == ["7", "invalid literal for int() with base 10: 'x'", "(3, 1)"]


def test_functions_that_anyio_runs_in_its_threads_are_jobs(play: Callable[..., Any]) -> None:
    async def main() -> list[Any]:
        ran: list[int] = []
        async with anyio.create_task_group() as group:
            for n in range(3):
                group.start_soon(anyio.to_thread.run_sync, ran.append, n)
        again = await anyio.to_thread.run_sync(int, "7")
        with pytest.raises(ValueError, match="invalid literal"):
            await anyio.to_thread.run_sync(int, "x")
        return [sorted(ran), again]

    assert as_stock(main, play) == [[0, 1, 2], 7]


@pytest.mark.parametrize(("abandons", "took"), [(False, 10), (True, 5)])
def test_a_job_of_anyio_is_waited_for_unless_it_may_be_abandoned(abandons: bool, took: int) -> None:
    ran: list[int] = []

    async def main() -> int:
        with anyio.move_on_after(5):
            await anyio.to_thread.run_sync(ran.append, 1, abandon_on_cancel=abandons)
        return kernel.now() // SECOND

    lasts = {("job", "1.job1"): (2, len(TAKES))}
    kernel = Kernel(choices=choices_from(lasts))
    task = kernel.spawn(main(), "1")
    assert kernel.drain(60 * SECOND).reason == "quiescent"
    kernel.tear_down()
    assert (task.result(), ran) == (took, [1])
