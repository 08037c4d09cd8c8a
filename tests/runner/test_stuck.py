"""A loop that never awaits ends its run with a name and a line; it does not hang the process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.core.events import RunStopped, TurnStarted
from harness.runner.files.load import load_text
from harness.runner.result import Result
from harness.runner.run import run
from harness.sim.kernel import Kernel

SCENARIO = """\
about: It never awaits.
turns:
  - user: Hello
    model: [{say: Hi.}]
"""


class Spinning:
    def __init__(self, env: Any) -> None:
        self.env = env

    async def turn(self, text: str | None) -> None:
        while True:
            pass


class Leaking:
    """Its turn ends well, but leaves a task that never gives way once time moves on."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.left: list[asyncio.Task[None]] = []

    async def turn(self, text: str | None) -> None:
        async def spin() -> None:
            await asyncio.sleep(1)
            while True:
                pass

        self.left.append(asyncio.create_task(spin()))


class Closing(Leaking):
    async def turn(self, text: str | None) -> None:
        pass

    def close(self) -> None:
        while True:
            pass


class Catching(Leaking):
    async def turn(self, text: str | None) -> None:
        try:
            while True:
                pass
        except BaseException:
            return


def never_built(env: Any) -> Spinning:
    while True:
        pass


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kernel, "patience", lambda kernel: 0.05)


def stuck(build: Any) -> tuple[Result, RunStopped]:
    result = run(load_text(SCENARIO, "spinning.yaml"), build)
    (stopped,) = [e.event for e in result.trace if isinstance(e.event, RunStopped)]
    return result, stopped


@pytest.mark.parametrize("build", [Spinning, Catching])
def test_an_agent_that_never_awaits_is_stopped_and_named(build: Any) -> None:
    result, stopped = stuck(build)
    assert not result.ok
    assert stopped.reason == "stuck"
    assert "test_stuck.py:" in stopped.detail
    assert f" in {build.__name__}.turn" in stopped.detail


@pytest.mark.parametrize("build", [Spinning, Catching])
def test_a_stuck_turn_has_no_outcome_and_is_the_last(build: Any) -> None:
    result, _ = stuck(build)
    assert result.outcomes == ()
    assert len([e for e in result.trace if isinstance(e.event, TurnStarted)]) == 1
    assert [violation.invariant for violation in result.verdict.violations] == ["ONE-TERMINAL"]


def test_what_a_turn_left_behind_and_is_stuck_ends_the_run() -> None:
    result, stopped = stuck(Leaking)
    assert stopped.reason == "stuck"
    assert not result.ok


def test_an_agent_that_is_stuck_in_close_ends_the_run() -> None:
    result, stopped = stuck(Closing)
    assert stopped.reason == "stuck"
    assert " in Closing.close" in stopped.detail
    assert [failure.kind for failure in result.failures] == ["run stopped", "unused reply"]


def test_an_agent_that_is_never_built_is_a_mistake_of_its_user_with_the_line() -> None:
    with pytest.raises(UsageError, match=r"never_built .*test_stuck\.py:\d+"):
        run(load_text(SCENARIO, "spinning.yaml"), never_built)
