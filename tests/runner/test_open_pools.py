"""A pool of threads that a turn makes and leaves open is a leak, with the line that made it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.core.events import TaskLeaked
from harness.report.text import lines
from harness.runner.files.load import load_text
from harness.runner.result import Result
from harness.runner.run import run

TWO_TURNS = """
about: Two turns in which nothing is asked.
turns:
  - {user: First., model: [{say: ok, optional: true}]}
  - {user: Second., model: [{say: ok, optional: true}]}
"""


class Keeps:
    """Makes its pool when it first needs one."""

    def __init__(self, _env: Any) -> None:
        self.pool: ThreadPoolExecutor | None = None

    def turn(self, _text: str | None) -> None:
        self.pool = self.pool or ThreadPoolExecutor(2)
        self.pool.submit(time.sleep, 1).result()


class Builds(Keeps):
    def __init__(self, _env: Any) -> None:
        self.pool = ThreadPoolExecutor(2)


class Closes(Keeps):
    def turn(self, _text: str | None) -> None:
        with ThreadPoolExecutor(2) as pool:
            pool.submit(time.sleep, 1).result()


class Drops(Keeps):
    """Nobody has the pool any more, so its threads end by themselves."""

    def turn(self, _text: str | None) -> None:
        ThreadPoolExecutor(2).submit(time.sleep, 1).result()


class MakesNoUse(Keeps):
    def turn(self, _text: str | None) -> None:
        self.pool = ThreadPoolExecutor(2)


class InATask(Keeps):
    async def turn(self, _text: str | None) -> None:  # type: ignore[override]
        self.pool = self.pool or ThreadPoolExecutor(2)
        self.pool.submit(len, "")


def played(agent: Any) -> Result:
    return run(load_text(TWO_TURNS, "x.yaml"), agent)


@pytest.mark.parametrize("agent", [Keeps, InATask])
def test_a_pool_that_a_turn_leaves_open_is_told_once(agent: Any) -> None:
    result = played(agent)
    [leak] = [each.event for each in result.trace if isinstance(each.event, TaskLeaked)]
    assert (leak.turn, leak.path, leak.where) == (1, "1.pool1", "")
    [message] = [each.message for each in result.verdict.violations if each.invariant == "QUIESCE"]
    assert message.startswith("pool 1.pool1, made at tests/runner/test_open_pools.py:")
    assert message.endswith(f" in {agent.__name__}.turn, was not shut down")
    shown = [line for line in lines(result.trace) if "task_leaked" in line]
    assert 'turn 1 pool 1.pool1 of the agent: "made at tests/runner/' in shown[0]


@pytest.mark.parametrize("agent", [Builds, Closes, Drops, MakesNoUse])
def test_other_pools_are_none(agent: Any) -> None:
    threads = threading.active_count()
    result = played(agent)
    assert not [each for each in result.trace if isinstance(each.event, TaskLeaked)]
    assert threading.active_count() == threads
