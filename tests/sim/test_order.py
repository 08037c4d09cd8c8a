"""The same program takes the same steps: in one process, in a fresh one, under any hash seed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sim.kernel import Kernel
from harness.sim.order import OrderedSet, set_of_awaitables

Log = list[str]
Program = Callable[[Log], Coroutine[Any, Any, None]]


async def tool(log: Log, name: str, span: float = 50) -> str:
    try:
        await asyncio.sleep(span)
    except asyncio.CancelledError:
        log.append(f"{name} cancelled")
        raise
    return name


async def aborted_group(log: Log) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for n in range(8):
                group.create_task(tool(log, f"tool {n}"))
            await asyncio.sleep(1)
            raise ValueError
    except* ValueError:
        log.append("aborted")


async def first_of_many(log: Log) -> None:
    tasks = [asyncio.create_task(tool(log, f"tool {n}", 5)) for n in range(8)]
    done, _ = await asyncio.wait(tasks)
    log.extend(task.result() for task in done)
    rest = [asyncio.create_task(tool(log, f"rest {n}", 1 + n // 4)) for n in range(8)]
    done, pending = await asyncio.wait(rest, return_when=asyncio.FIRST_COMPLETED)
    log.extend(task.result() for task in done)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)


async def as_completed(log: Log) -> None:
    loop: Any = asyncio.get_running_loop()

    async def telling(n: int) -> str:
        return f"{await tool(log, f'tool {n}', 1)} as {loop.current_path()}"

    for next_one in asyncio.as_completed([telling(n) for n in range(8)]):
        log.append(await next_one)


async def sets_of_users(log: Log) -> None:
    loop = asyncio.get_running_loop()
    futures = {loop.create_future() for _ in range(8)}
    for n, future in enumerate(futures):
        future.add_done_callback(lambda _, n=n: log.append(f"future {n}"))
    for future in set(futures):
        future.set_result(None)
    await asyncio.sleep(0)
    log.extend(task.get_name() for task in asyncio.all_tasks())


async def aborted_scopes(log: Log) -> None:
    async def scoped(n: int) -> None:
        with anyio.move_on_after(100):
            await tool(log, f"tool {n}")

    try:
        async with anyio.create_task_group() as group:
            for n in range(8):
                group.start_soon(scoped, n)
            await anyio.sleep(1)
            raise ValueError
    except* ValueError:
        log.append("aborted")


PROGRAMS: list[Program] = [
    aborted_group,
    first_of_many,
    as_completed,
    sets_of_users,
    aborted_scopes,
]


def log_of(program: Program) -> list[str]:
    kernel = Kernel()
    log: Log = []
    task = kernel.spawn(program(log), "1")
    kernel.run_until(task.done)
    kernel.tear_down()
    assert task.exception() is None
    assert kernel.callback_errors == []
    return [*log, *map(str, kernel.points), str(kernel.now())]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_forty_runs_in_one_process_are_the_same(program: Program) -> None:
    keep: list[Any] = []
    logs = set()
    for n in range(40):
        keep.append([object() for _ in range(n % 7)])
        logs.add(tuple(log_of(program)))
    assert len(logs) == 1


def test_runs_in_fresh_processes_are_the_same_under_any_hash_seed() -> None:
    program = f"import runpy; runpy.run_path({__file__!r})['tell']()"

    def fresh(seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    here = "".join(f"{log_of(program)}\n" for program in PROGRAMS)
    assert {fresh(seed) for seed in ("0", "1", "12345")} == {here}


def tell() -> None:
    for program in PROGRAMS:
        print(log_of(program))


def test_aborted_tools_end_in_the_order_they_were_started() -> None:
    expected = [f"tool {n} cancelled" for n in range(8)]
    for program in (aborted_group, aborted_scopes):
        assert log_of(program)[:9] == [*expected, "aborted"]


def test_coroutines_complete_in_the_order_they_were_given() -> None:
    assert log_of(as_completed)[:8] == [f"tool {n} as 1.{n + 1}" for n in range(8)]


@given(st.data())
def test_a_random_program_takes_the_same_steps_twice(data: st.DataObject) -> None:
    shape = st.recursive(
        st.tuples(st.integers(0, 3), st.booleans()), lambda inner: st.lists(inner, max_size=4)
    )
    plan = data.draw(shape)

    async def node(log: Log, plan: Any, name: str) -> None:
        log.append(name)
        if isinstance(plan, tuple):
            span, fails = plan
            await asyncio.sleep(span)
            if fails:
                raise ValueError(name)
            return
        async with asyncio.TaskGroup() as group:
            for n, inner in enumerate(plan):
                group.create_task(node(log, inner, f"{name}.{n}"))

    async def program(log: Log) -> None:
        try:
            await node(log, plan, "root")
        except (ValueError, BaseExceptionGroup) as error:
            log.append(repr(error))

    assert log_of(program) == log_of(program)


# --- the sets themselves


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5))))
def test_an_ordered_set_holds_what_a_set_holds_in_the_order_of_insertion(
    steps: list[tuple[bool, int]],
) -> None:
    ordered, plain = OrderedSet(), set()
    order: list[int] = []
    for add, item in steps:
        if add:
            ordered.add(item)
            plain.add(item)
            order = order if item in order else [*order, item]
        else:
            ordered.discard(item)
            plain.discard(item)
            order = [n for n in order if n != item]
        assert (len(ordered), item in ordered) == (len(plain), item in plain)
        assert list(ordered) == order


def test_an_ordered_set_has_the_rest_of_a_set() -> None:
    ordered = OrderedSet([3, 1, 3, 2])
    assert repr(ordered) == "OrderedSet([3, 1, 2])"
    ordered.remove(1)
    assert ordered == {2, 3}
    with pytest.raises(KeyError):
        ordered.remove(1)


def test_futures_make_a_real_set_and_coroutines_keep_their_order(kernel: Kernel) -> None:
    futures = [kernel.create_future() for _ in range(3)]
    assert set_of_awaitables(futures) == set(futures)
    assert set_of_awaitables() == set()
    coroutines = [asyncio.sleep(0) for _ in range(9)]
    assert set_of_awaitables([*coroutines, coroutines[0]]) == coroutines
    for coroutine in coroutines:
        coroutine.close()
