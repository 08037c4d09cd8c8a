"""The driver knows no state by name: a state is a row and a handler."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.core.errors import UsageError
from harness.core.events import StateEntered
from harness.fakes.script import Reply
from harness.loops.fsm.agent import KIND, FsmAgent
from harness.loops.fsm.loop import DONE, SUPERVISE, TABLE, TERMINAL, WAIT, Loop
from harness.loops.fsm.machine import Handler, Machine, NoTransition, Transition
from harness.loops.fsm.messages import user
from harness.loops.fsm.policy import SAFE
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from tests.loops.fsm.world import World, says


class Run:
    """What the tests of a small table look at."""

    def __init__(self) -> None:
        self.ok = True
        self.done: list[str] = []

    def handler(self, state: str) -> Handler:
        return lambda: self.done.append(state)


def machine(run: Run, table: Sequence[Transition[Run]], *states: str) -> Machine[Run]:
    handlers = {state: run.handler(state) for state in ("A", "B", "END", *states)}
    return Machine("A", table, handlers, ["END"])


def always(_run: Run) -> bool:
    return True


def test_of_a_states_rows_the_first_that_fits_is_taken() -> None:
    table = [
        Transition("A", lambda run: run.ok, "B"),
        Transition("A", always, "END"),
        Transition("B", lambda run: len(run.done) > 3, "END"),
        Transition("B", always, "A"),
    ]
    run, entered = Run(), []
    driven = machine(run, table)
    driven.run(run, entered.append)
    assert entered == run.done == ["A", "B", "A", "B", "END"]
    assert driven.history == ["A", "B", "A", "B"]
    assert driven.state == "END"
    run.ok = False
    once = machine(run, table)
    once.run(run, entered.append)
    assert once.history == ["A"]


def test_a_hole_in_the_table_names_the_state() -> None:
    run = Run()
    with pytest.raises(NoTransition, match="no transition fits after the state B") as caught:
        machine(run, [Transition("A", always, "B")]).run(run, lambda _state: None)
    assert caught.value.state == "B"
    assert run.done == ["A", "B"]


def test_a_state_without_a_handler_is_refused() -> None:
    with pytest.raises(UsageError, match="the state C has no handler; known: A, B, END"):
        machine(Run(), [Transition("A", always, "C")])


def test_what_a_handler_raises_leaves_the_state_as_it_is() -> None:
    def broken() -> None:
        raise RuntimeError("broken")

    driven: Machine[Run] = Machine("A", [], {"A": broken, "END": broken}, ["END"])
    with pytest.raises(RuntimeError, match="broken"):
        driven.run(Run(), lambda _state: None)
    assert (driven.state, driven.history) == ("A", [])


class Checked(Loop):
    """The loop with one more state, between the last reply and the end."""

    def transitions(self) -> Sequence[Transition[Loop]]:
        return (
            Transition(SUPERVISE, lambda run: not run.info.nudged, "CHECK"),
            Transition("CHECK", lambda run: run.terminal_text == "wrong", WAIT),
            Transition("CHECK", lambda _run: True, DONE),
            *TABLE,
        )

    def handlers(self) -> dict[str, Handler]:
        return {**super().handlers(), "CHECK": self.check}

    def check(self) -> None:
        self.messages.append(user(f"checked {self.terminal_text}"))


def test_a_state_is_added_by_rows_and_a_handler_alone() -> None:
    loop = Checked(World(says("wrong"), says("right")).session, [user("do the task")])
    assert loop.run() == "right"
    assert loop.machine.history == [WAIT, SUPERVISE, "CHECK", WAIT, SUPERVISE, "CHECK"]


def test_a_state_that_was_added_is_seen_where_its_loop_is_tested() -> None:
    turn = Turn("do the task", (Reply(say="wrong"), Reply(say="right")))
    scenario = Scenario("a scenario", turns=(turn,))
    result = run(scenario, lambda env: FsmAgent(env, KIND.settings, SAFE, Checked))
    assert result.ok
    states = [e.event.state for e in result.trace if isinstance(e.event, StateEntered)]
    assert states == [WAIT, SUPERVISE, "CHECK", WAIT, SUPERVISE, "CHECK", DONE]


def test_every_state_of_the_loop_has_a_way_out_that_always_fits() -> None:
    loop = World().loop()
    for state in loop.handlers():
        rows = [row for row in TABLE if row.source == state]
        assert (state in TERMINAL) == (not rows)
        assert not rows or rows[-1].test(loop)
