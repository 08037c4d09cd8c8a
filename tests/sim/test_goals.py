"""What code under test says that it has come to is noted in a simulated run, and nowhere else."""

import asyncio

from harness.sim.goals import sometimes
from harness.sim.kernel import Kernel
from harness.sim.sites import SiteKernel


def reached(main, kernel):
    try:
        task = kernel.spawn(main(), "1")
        kernel.run_until(task.done)
    finally:
        kernel.tear_down()
    return kernel.reached


async def fills_the_cache():
    for _ in range(2):
        sometimes("cache full")
        await asyncio.sleep(0)
    sometimes("done")


def test_goals_are_noted_in_the_run_that_reaches_them():
    assert reached(fills_the_cache, SiteKernel()) == {"cache full", "done"}


def test_what_is_reached_while_the_run_is_torn_down_is_not_part_of_it():
    async def cleans_up():
        async def hangs():
            try:
                await asyncio.sleep(1)
            finally:
                sometimes("cleaned up")

        cleans_up.task = asyncio.ensure_future(hangs())
        await asyncio.sleep(0)
        sometimes("begun")

    assert reached(cleans_up, SiteKernel()) == {"begun"}


def test_goals_may_be_reached_in_a_job():
    async def main():
        await asyncio.to_thread(sometimes, "cache full")

    assert reached(main, SiteKernel()) == {"cache full"}


def test_outside_of_an_explored_run_nothing_happens():
    sometimes("cache full")
    asyncio.run(fills_the_cache())
    kernel = Kernel()
    kernel.reached = set()
    assert reached(fills_the_cache, kernel) == set()
