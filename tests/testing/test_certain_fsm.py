"""What is said to happen surely in a turn of the state-machine loop does happen."""

from __future__ import annotations

from hypothesis import given

from harness.fakes.script import GenerateFails, Hang, Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Hangs, ToolSpec
from harness.loops.fsm.agent import KIND
from harness.runner.agents import loop_config, loop_subject
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.testing.certain import Limits, certain
from harness.testing.certain_fsm import FsmLimits, certain_fsm
from harness.testing.generated import telling
from harness.testing.strategies import scenarios
from harness.testing.strategies_fsm import GUARDED
from tests.testing.test_laws import by_turn, counted

SPECS = {
    "clock": ToolSpec("clock"),
    "stuck": ToolSpec("stuck", Behaviour(Hangs())),
}


def asks(*tools: str) -> Reply:
    return Reply(calls=tuple(map(ScriptedCall, tools)))


@given(scenarios(loops=("fsm",), cancels=False))
def test_what_is_certain_happens_as_often_at_least(scenario: Scenario) -> None:
    config = {**KIND.settings, **loop_config(KIND, scenario.config)}
    limits = FsmLimits(
        config["max_nudges"],
        frozenset(config["async_tools"]),
        frozenset(config["interactive_tools"]),
        frozenset([GUARDED]),
    )
    specs = {spec.name: spec for spec in scenario.tools}
    with telling(scenario):
        trace = run(scenario, loop_subject(KIND, scenario)).trace
        turns = zip(scenario.turns, by_turn(trace), strict=False)
        for number, (turn, events) in enumerate(turns, 1):
            sure = certain_fsm(turn.replies, specs, limits, number)
            assert not sure.hangs
            assert sure.events <= counted(events)


def test_a_tool_that_hangs_holds_those_behind_it_unless_it_runs_beside_them() -> None:
    script = [asks("clock", "stuck", "clock"), Reply("Done.")]
    for limits, started in (
        (FsmLimits(), 1),
        (FsmLimits(late=frozenset(["stuck"])), 2),
        (FsmLimits(late=frozenset(["stuck"]), asking=frozenset(["stuck"])), 1),
    ):
        sure = certain_fsm(script, SPECS, limits)
        assert sure.hangs
        assert not sure.answered
        assert sure.events["tool_started", "clock"] == started
        assert sure.events["request_sent", "1.2"] == 0


def test_a_tool_that_may_be_refused_is_not_certain() -> None:
    sure = certain_fsm([asks("clock")], SPECS, FsmLimits(guarded=frozenset(["clock"])))
    assert sure.events["tool_started", "clock"] == 0
    assert sure.events["loop_event", "tools"] == 1


def test_a_turn_is_answered_when_nobody_nudges_any_more() -> None:
    lazy = [Reply("Hm."), asks("clock"), Reply("Well."), Reply("Done.")]
    assert certain_fsm(lazy, SPECS, FsmLimits(1)).answered
    assert not certain_fsm(lazy[:3], SPECS, FsmLimits(1)).answered
    failing = [Reply(fault=GenerateFails()), *lazy]
    assert not certain_fsm(failing, SPECS, FsmLimits()).answered
    assert certain_fsm([Reply(fault=Hang())], SPECS, FsmLimits()).hangs


def test_of_two_loops_only_that_is_certain_which_both_do() -> None:
    script = [asks("clock"), Reply("Done.")]
    both = certain(script, SPECS, Limits()) & certain_fsm(script, SPECS, FsmLimits())
    assert both.answered
    assert both.events == certain(script, SPECS, Limits()).events
    stuck = [asks("stuck")]
    assert (certain(stuck, SPECS, Limits()) & certain_fsm(script, SPECS, FsmLimits())).hangs
