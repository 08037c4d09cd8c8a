"""Programs of all kinds do the same under every order, as asyncio does, and again when replayed."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.choices import Choices
from harness.core.durations import SECOND
from harness.sim.kernel import Kernel
from harness.sim.orders import ORDERS, Order
from tests.sim.programs import EVERYTHING, PLAIN, Play, Program


def programs(names: list[str]) -> st.SearchStrategy[Program]:
    return st.lists(
        st.lists(st.sampled_from(names), min_size=1, max_size=6), min_size=1, max_size=4
    )


def played(program: Program, order: Order, choices: Choices | None, *, timed: bool) -> list[Any]:
    play = Play()
    kernel = Kernel(choices=choices, order=order)
    kernel.spawn(play.run(program, timed=timed), "1")
    assert kernel.drain(1_000 * SECOND).reason == "quiescent"
    kernel.tear_down()
    return [*play.log, kernel.callback_errors]


def drawn(seed: int) -> Choices:
    """Choices that are all made at random."""
    chance = random.Random(seed)
    return Choices(picker=lambda _source, _label, bound: chance.randrange(bound))


@given(programs(list(PLAIN)))
def test_without_timers_and_deviations_all_happens_as_in_stock_asyncio(program: Program) -> None:
    play = Play()
    asyncio.run(play.run(program, timed=False))
    for order in ORDERS:
        assert played(program, order, Choices(), timed=False) == [*play.log, []]


@given(programs(list(EVERYTHING)))
def test_without_deviations_every_order_is_the_same(program: Program) -> None:
    expected = played(program, "fifo", None, timed=True)
    for order in ORDERS:
        assert played(program, order, Choices(), timed=True) == expected


@given(programs(list(EVERYTHING)), st.sampled_from(ORDERS), st.integers(0, 10**9))
def test_a_tape_gives_the_same_again_and_time_never_goes_back(
    program: Program, order: Order, seed: int
) -> None:
    choices = drawn(seed)
    log = played(program, order, choices, timed=True)
    again = Choices(choices.tape())
    assert played(program, order, again, timed=True) == log
    again.check_used()
    times = [each[2] for each in log if len(each) == 3]
    assert times == sorted(times)


def some_logs() -> str:
    """What some programs do under random choices."""
    chance = random.Random(7)
    logs = []
    for number in range(40):
        program = [chance.choices(list(EVERYTHING), k=5) for _ in range(4)]
        order = ORDERS[number % len(ORDERS)]
        logs.append(played(program, order, drawn(number), timed=True))
    return repr(logs)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_tape_gives_the_same_in_every_process(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from tests.sim.test_programs import *; print(some_logs())"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert done.stdout.strip() == some_logs()
