"""Threads do in a run what real threads do: whole programs of them, compared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.sim.thread_programs import PROGRAMS
from tests.sim.threaded import WAYS, Body, Played, drawn, play


@cache
def really(name: str) -> Any:
    return PROGRAMS[name]()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_real_threads_give(
    name: str, way: Callable[[Played, Body], None]
) -> None:
    before = threading.enumerate()
    assert play(PROGRAMS[name], way).value == really(name)
    assert [each for each in threading.enumerate() if "watchdog" not in each.name] == [
        each for each in before if "watchdog" not in each.name
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_whoever_goes_first(name: str) -> None:
    for seed in range(8):
        order = ("completions", "tasks", "all")[seed % 3] if seed else "completions"
        choices = drawn(seed, seed / 8)
        played = play(PROGRAMS[name], order=order, choices=choices)  # type: ignore[arg-type]
        assert played.value == really(name), (seed, order)
