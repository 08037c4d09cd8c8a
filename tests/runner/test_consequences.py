"""The cause comes first, and what only follows from it is left out."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import count
from typing import Any

from harness.runner.files.load import load_text
from harness.runner.result import Result
from harness.runner.run import run
from tests.subjects.hand_loop import MendedHandLoop

SCENARIO = """\
about: A run that is stopped.
tools: {ship: {returns: ok}}
allow: [{invariant: PAIR, why: It may.}]
turns:
  - user: Hello
    model: [{say: Hi.}]
    expect: {requests: 2}
  - user: Ship it.
    model: [{calls: [ship]}, {say: Shipped.}]
    cancel: {after: tool_started}
    expect: {outcome: cancelled, say: Shipped.}
  - user: Thanks.
    model: [{say: Welcome.}]
    expect: {outcome: completed}
"""


class Leaving(MendedHandLoop):
    """Opens a socket in its second turn."""

    async def turn(self, text: str | None) -> None:
        if text == "Ship it.":
            await asyncio.get_running_loop().create_connection(asyncio.Protocol, "a.example", 80)
        await super().turn(text)


class Spinning(MendedHandLoop):
    """Never ends its second turn."""

    async def turn(self, text: str | None) -> None:
        for _ in count() if text == "Ship it." else ():
            await asyncio.sleep(0)
        await super().turn(text)


class Waiting(MendedHandLoop):
    """Waits for ever in its second turn."""

    async def turn(self, text: str | None) -> None:
        if text == "Ship it.":
            await asyncio.get_running_loop().create_future()
        await super().turn(text)


class Litters(MendedHandLoop):
    """Leaves a task behind that never comes to rest."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.left: list[asyncio.Task[None]] = []

    async def turn(self, text: str | None) -> None:
        async def spin() -> None:
            await asyncio.sleep(1)
            for _ in count():
                await asyncio.sleep(0)

        await super().turn(text)
        self.left.append(asyncio.create_task(spin()))


def shown(build: Any) -> tuple[Result, list[str]]:
    """What is said to have failed, without the lines of the run."""
    result = run(load_text(SCENARIO, "stop.yaml"), build)
    text = str(result).partition(f"FAIL stop on {build.__qualname__}\n")[2]
    return result, [line for line in text.splitlines() if line.startswith("stop.yaml")]


def test_that_it_left_the_simulation_is_said_first_and_once() -> None:
    result, [first, second] = shown(Leaving)
    assert first.startswith("stop.yaml:8: NO-NET in turn 2: tests/runner/test_")
    assert second == "stop.yaml:7: turn 1: expected requests 2, found 1"
    assert [each.invariant for each in result.verdict.violations] == ["NO-NET"]
    [error] = result.outcomes[1:]
    assert str(error).count("in Leaving.turn") == 1


def test_a_limit_is_said_first_and_nothing_is_expected_of_the_turns_that_it_cut() -> None:
    _, [first, second] = shown(Spinning)
    assert first.startswith("stop.yaml:8: ONE-TERMINAL in turn 2: turn 2 never ended: instant_li")
    assert second == "stop.yaml:7: turn 1: expected requests 2, found 1"


def test_a_deadlock_stands_where_it_happened_and_nothing_is_expected_after_it() -> None:
    _, [first, second] = shown(Waiting)
    assert first == "stop.yaml:7: turn 1: expected requests 2, found 1"
    assert second.startswith("stop.yaml:8: ONE-TERMINAL in turn 2: turn 2 never ended: deadlock")


def test_what_was_wrong_before_a_stop_stands_after_it() -> None:
    _, [first, second, third] = shown(Litters)
    assert first.startswith("stop.yaml: the run stopped: instant_limit")
    assert second == "stop.yaml:7: turn 1: expected requests 2, found 1"
    assert third.startswith("stop.yaml:5: QUIESCE in turn 1: task 1.1 is still alive")


def test_where_the_stop_itself_is_allowed_all_else_still_counts() -> None:
    allowed = SCENARIO.replace("PAIR, why", "ONE-TERMINAL, why")
    result = run(load_text(allowed, "stop.yaml"), Waiting)
    assert result.verdict.violations == ()
    assert [each.turn for each in result.failures if each.kind == "expectation"] == [1, 2, 2, 3]


def test_what_was_expected_of_a_turn_that_asked_for_what_there_is_not_is_left_out() -> None:
    class Asks(MendedHandLoop):
        async def turn(self, text: str | None) -> None:
            if text == "Hello":
                await self.env.tools.call("shpi", {})
            await super().turn(text)

    _, said = shown(Asks)
    assert said[0].startswith("stop.yaml:5: UnknownFakeTool: unknown tool 'shpi'")
    assert not [line for line in said if line.startswith("stop.yaml:7:")]
    assert [line for line in said if line.startswith("stop.yaml:11: turn 2: expected say")]


def test_and_of_a_turn_that_went_on_after_that_it_counts() -> None:
    class Guards(MendedHandLoop):
        async def turn(self, text: str | None) -> None:
            if text == "Hello":
                with contextlib.suppress(Exception):
                    await self.env.tools.call("shpi", {})
            await super().turn(text)

    _, said = shown(Guards)
    assert "stop.yaml:7: turn 1: expected requests 2, found 1" in said
