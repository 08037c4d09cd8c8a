"""Each program that an order breaks is found by a search as it is if not told otherwise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.runner.exploring import explore, replay, sweep
from harness.runner.functions.probe import FunctionProbe
from harness.sim.orders import Order
from tests.known_bugs import ordered

CLOCKED: tuple[Order, ordered.Wait] = ("completions", ordered.a_tick)
YIELDING: tuple[Order, ordered.Wait] = ("tasks", ordered.a_yield)
Program = Callable[[ordered.Wait], Any]


@pytest.mark.parametrize(("order", "wait"), [CLOCKED, YIELDING], ids=["clocked", "yielding"])
@pytest.mark.parametrize(
    ("program", "says"),
    [
        (ordered.Counter, "an update was lost"),
        (ordered.Startup, "auth has asked the cache, which has asked billing"),
        (ordered.Buffer, "items were lost"),
    ],
)
def test_a_search_finds_it(order: Order, wait: ordered.Wait, program: Program, says: str) -> None:
    found = explore(partial(program, wait), order=order)
    assert [f"check:AssertionError: {says}" in one.message for one in found.report.found] == [True]
    again = replay(found.failed[0].token, partial(program, wait))
    assert again.status == "FAIL"


@pytest.mark.parametrize(("order", "wait"), [CLOCKED, YIELDING], ids=["clocked", "yielding"])
@pytest.mark.parametrize(
    "program", [ordered.LockedCounter, ordered.OrderedStartup, ordered.BoundedBuffer]
)
def test_what_is_right_passes(order: Order, wait: ordered.Wait, program: Program) -> None:
    explore(partial(program, wait), order=order, runs=500).check()


def test_who_is_starved_is_kept_waiting_for_sixteen_steps() -> None:
    found = explore(partial(ordered.Buffer, ordered.a_yield), order="tasks").report.found
    assert len(found[0].shrunk.tape) >= 16


def test_the_order_of_an_abort_is_found_and_replayed_every_time() -> None:
    swept = sweep(ordered.Pipeline)
    assert [group.key for group in swept.report.failed] == [
        "converted:ExceptionGroup: Pipeline.run"
    ]
    token = swept.failed[0].token
    again = [replay(token, ordered.Pipeline) for _ in range(150)]
    assert {(one.status, one.run) for one in again} == {("FAIL", swept.failed[0].run)}
    sweep(ordered.ScopedPipeline).check()


def test_an_abort_of_eight_children_goes_one_way_in_a_process() -> None:
    probe = FunctionProbe(ordered.Pipeline, keep_lines=True)
    [shot] = sweep(ordered.Pipeline).report.failed[0].shots
    kept: list[object] = []  # so that addresses differ from run to run
    runs = set()
    for number in range(40):
        kept.append(bytearray(number * 97))
        runs.add(probe.run((), (shot,)))
    assert len(runs) == 1


def test_an_abort_goes_one_way_in_any_process() -> None:
    program = (
        "from harness.runner.exploring import sweep\n"
        "from tests.known_bugs.ordered import Pipeline\n"
        "print(sweep(Pipeline).report.failed[0].run.digest)"
    )
    root = Path(__file__).parents[2]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=root,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1", "2", "3", "random")
    ]
    said = {process.communicate()[0] for process in started}
    assert said == {f"{sweep(ordered.Pipeline).report.failed[0].run.digest}\n"}
