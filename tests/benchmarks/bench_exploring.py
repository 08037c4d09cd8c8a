"""Runs, sweeps, searches and shrinking of one small agent, beside other simulators of asyncio.

The agent has two turns of three tools, as an asynchronous function that knows none of the tools
that are measured. Ratios above 1 say how many times quicker harness is. What the others do not do,
or is not installed, is named.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any, TypeAlias

from harness.exploration.attempts import Attempt, decisions
from harness.exploration.chance import Chance
from harness.exploration.shrink import shrink
from harness.exploration.sweep import MODES
from harness.exploration.sweep_report import SweepMode
from harness.runner.exploring import explore, sweep
from harness.runner.functions.probe import FunctionProbe
from harness.sim.hold import kept
from harness.sim.orders import Order

RUNS = 2_000
FEW = 100
"""For tools that take longer."""
ROUNDS = 7

Agent: TypeAlias = Callable[[], Coroutine[Any, Any, Any]]


def agent_with(scale: float) -> Agent:
    """The agent, with its waits multiplied."""

    async def stream(pieces: int) -> AsyncIterator[str]:
        for _ in range(pieces):
            await asyncio.sleep(0.02 * scale)
            yield "word"

    async def tool(index: int, done: list[int]) -> None:
        await asyncio.sleep((0.1, 0.2, 0.1)[index] * scale)
        await asyncio.sleep(0)
        done.append(index)

    async def agent() -> list[int]:
        done: list[int] = []
        for _ in range(2):
            async for _ in stream(4):
                pass
            async with asyncio.TaskGroup() as tools:
                for index in range(3):
                    tools.create_task(tool(index, done))
            async for _ in stream(2):
                pass
        return done

    return agent


agent = agent_with(1.0)
hasty_agent = agent_with(0.0)


async def ordered() -> None:
    """Fails where, of eight workers that end at one time, many end out of their order."""
    ends: list[int] = []

    async def worker(index: int) -> None:
        for _ in range(4):
            await asyncio.sleep(0.1)
        ends.append(index)

    await asyncio.gather(*map(worker, range(8)))
    assert sum(a > b for a, b in pairwise(ends)) < 3, ends


def timed(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def rates(calls: dict[str, tuple[int, Callable[[], object]]]) -> dict[str, float]:
    """The runs a second of each, the best of several rounds; all take turns in each round."""
    best = dict.fromkeys(calls, 0.0)
    for _ in range(ROUNDS):
        for name, (runs, call) in calls.items():
            best[name] = max(best[name], runs / timed(call))
    return best


def row(name: str, measured: dict[str, float], absent: Iterable[str] = ()) -> None:
    """The first of those measured, and how many times as quick as each of the others it is."""
    (ours, first), *others = measured.items()
    texts = [f"{name:22} {ours} {first:7,.0f}/s"]
    texts += [f"{other} {rate:7,.0f}/s x{first / rate:.1f}" for other, rate in others]
    texts += [f"{other} is not installed" for other in absent]
    print("   ".join(texts))


def again(runs: int, call: Callable[[], object]) -> tuple[int, Callable[[], object]]:
    def many() -> None:
        for _ in range(runs):
            call()

    return runs, many


def others(*names: str) -> tuple[list[Any], list[str]]:
    """The modules that are installed, and the names of those that are not."""
    found, absent = [], []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            absent.append(name)
    return found, absent


@kept()
def plain_runs() -> None:
    probe = FunctionProbe(agent, places=False)
    calls = {"harness": again(300, probe.run)}
    detangle, absent = others("detangle")
    for each in detangle:
        calls["detangle"] = again(300, partial(each.run, agent))
    calls["asyncio with waits of 0"] = again(300, lambda: asyncio.run(hasty_agent()))
    calls["asyncio in real time"] = again(1, lambda: asyncio.run(agent()))
    row("a run, stock order", rates(calls), absent)


def random_runs(order: Order) -> None:
    searched = partial(explore, agent, order=order, strategy="random", runs=RUNS)
    calls: dict[str, tuple[int, Callable[[], object]]] = {"harness": (RUNS, searched)}
    found, absent = others("detangle", "simloop", "simloom")
    for each in found:
        match each.__name__:
            case "detangle":
                search = partial(each.explore, agent, runs=RUNS, strategy="random", database=False)
                calls["detangle"] = (RUNS, search)
            case "simloop":
                calls["simloop"] = (FEW, partial(each.explore, agent, range(FEW)))
            case "simloom":
                calls["simloom"] = (FEW, partial(each.explore, agent, runs=FEW))
    row(f"random, {order}", rates(calls), absent)
    report = searched().report
    print(f"{'':22} {report.distinct:,} different schedules in {report.runs:,} runs")


def sweeps() -> None:
    some: tuple[SweepMode, ...] = ("early", "late")
    for name, modes in (("sweep, early and late", some), ("sweep, all modes", MODES)):
        report = sweep(agent, modes=modes).report
        took = min([timed(partial(sweep, agent, modes=modes)) for _ in range(ROUNDS)])
        print(
            f"{name:22} {len(report.points)} points at {len(report.baseline.sites)} sites, "
            f"{report.runs} runs: {took * 1e3:.1f} ms, {report.status}"
        )
    runs = sweep(hasty_agent, modes=some).report.runs
    calls: dict[str, tuple[int, Callable[[], object]]] = {
        "harness": (runs, partial(sweep, hasty_agent, modes=some))
    }
    found, absent = others("cancellens")
    if absent:
        row("sweep, waits of 0", rates(calls), absent)
        return
    cancellens = found[0]

    async def nothing(*_: object) -> None: ...

    async def theirs() -> Any:
        case = cancellens.Case(nothing, lambda _state: hasty_agent(), nothing, nothing)
        limits = cancellens.Limits(max_points=200, max_attempts=500, max_depth=1)
        return await cancellens.sweep(case, limits=limits)

    attempts = len(asyncio.run(theirs()).attempts)
    calls["cancellens"] = (attempts, lambda: asyncio.run(theirs()))
    row("sweep, waits of 0", rates(calls))
    print(f"{'':22} cancellens tries {attempts - 2} points, all early and of the main task")


@kept()
def shrinking() -> None:
    probe = FunctionProbe(ordered, "completions", places=False)
    attempts = (Attempt(Chance("random", 0, index)) for index in range(RUNS))
    runs = (attempt.run(probe) for attempt in attempts)
    failing = next(run for run in runs if run.findings and len(decisions(run)) >= 30)
    key, tape = failing.findings[0].key, decisions(failing)
    small = shrink(probe, key, tape)
    took = min([timed(lambda: shrink(probe, key, tape)) for _ in range(ROUNDS)])
    print(
        f"{'shrink':22} {len(tape)} decisions to {len(small.tape)} in {small.runs} runs, "
        f"{took * 1e3:.1f} ms"
    )


def main() -> None:
    print(sys.version.split()[0])
    plain_runs()
    random_runs("completions")
    random_runs("tasks")
    sweeps()
    shrinking()


if __name__ == "__main__":
    main()
