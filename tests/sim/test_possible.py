"""What the order `completions` finds is what asyncio can do on a real clock, and all of that."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from harness.core.choices import Choices
from tests.sim.programs import EVERYTHING, Play, Program
from tests.sim.test_programs import played

Log: TypeAlias = str

STEP = 1e-6
"""What a batch of the loop below takes, in seconds."""


class JitteryLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop on a clock that runs ahead, where no two timers end at the same time."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._jitter = random.Random(seed)
        self._most = self._jitter.choice([1, 2, 4, 8, 16, 32])
        self._shown = 1_000.0

    def time(self) -> float:
        self._shown += STEP / 10
        return self._shown

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        if when > self._shown:
            when += self._jitter.random() * self._most * STEP
        return super().call_at(when, callback, *args, context=context)

    def _run_once(self) -> None:
        self._shown += STEP
        if not self._ready:  # type: ignore[attr-defined]
            timers = [each for each in self._scheduled if not each.cancelled()]  # type: ignore[attr-defined]
            late = self._jitter.choice([0, STEP]) * self._jitter.random()
            self._shown = max(self._shown, min(each.when() for each in timers) + late)
        super()._run_once()  # type: ignore[misc]


def without_times(log: list[Any]) -> Log:
    return repr([each[:2] if len(each) == 3 else each for each in log])


def by_stock(program: Program, seed: int) -> Log:
    loop = JitteryLoop(seed)
    loop.set_exception_handler(lambda _loop, _context: None)
    play = Play()
    loop.run_until_complete(play.run(program, timed=True))
    loop.close()
    return without_times(play.log)


def by_choices(program: Program) -> set[Log]:
    """All logs there are, by going through the choices like an odometer."""
    seen: set[Log] = set()
    path: list[tuple[int, int]] = []
    while True:
        asked: list[tuple[int, int]] = []

        def pick(_source: str, _label: str, bound: int) -> int:
            value = path[len(asked)][0] if len(asked) < len(path) else 0  # noqa: B023
            asked.append((value, bound))  # noqa: B023
            return value

        log = played(program, "completions", Choices(picker=pick), timed=True)
        seen.add(without_times(log[:-1]))
        while asked and asked[-1][0] + 1 == asked[-1][1]:
            asked.pop()
        if not asked:
            return seen
        path = [*asked[:-1], (asked[-1][0] + 1, asked[-1][1])]


def some_programs(count: int) -> list[Program]:
    chance = random.Random(5)
    often = ["sleep 1", "sleep 2", "timer 1", "timer 0", "timer -1", "wait for", "time out", "poll"]
    names = [*often, *often, *[name for name in EVERYTHING if name != "job"]]
    return [[chance.choices(names, k=3) for _ in range(2)] for _ in range(count)]


@pytest.mark.parametrize("program", some_programs(20), ids=str)
def test_completions_are_what_can_happen(program: Program) -> None:
    possible = by_choices(program)
    happened = {by_stock(program, seed) for seed in range(100)}
    assert happened <= possible
    for seed in range(100, 4_000):
        if happened == possible:
            break
        happened.add(by_stock(program, seed))
    assert happened == possible
