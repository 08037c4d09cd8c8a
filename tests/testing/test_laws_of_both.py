"""Laws that hold of both reference loops, at every level: the same run every time, the same
conversation at every level, and no end but one that is named.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.events import TurnEnded, TurnStarted
from harness.core.outcome import OUTCOME_NAMES, outcome_name
from harness.runner.agents import find_loop, loop_subject
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario
from harness.testing.generated import telling
from harness.testing.strategies import scenarios
from harness.wire import CODECS

FEWER = settings(max_examples=max(25, settings().max_examples // 4))
"""A run over HTTP takes several times as long as one beside the model."""
LOOPS = st.sampled_from(["turn", "fsm"])
HTTP = st.sampled_from([f"http:{codec.name}" for codec in CODECS])


def played(scenario: Scenario, level: str = "model") -> Result:
    return run(scenario, loop_subject(find_loop(scenario.loops[0]), scenario), level=level)


@FEWER
@given(LOOPS, HTTP, st.data())
def test_the_same_scenario_gives_the_same_bytes_at_every_level(
    loop: str, level: str, data: st.DataObject
) -> None:
    scenario = data.draw(scenarios(loops=(loop,), level=level), label="scenario")
    with telling(scenario, level=level):
        assert played(scenario, level).trace.digest == played(scenario, level).trace.digest


@FEWER
@given(LOOPS, HTTP, st.data())
def test_what_nobody_disturbs_is_the_same_conversation_at_every_level(
    loop: str, level: str, data: st.DataObject
) -> None:
    # How much fits a window hangs on the length of ids, too, which are the protocol's affair.
    drawn = scenarios(loops=(loop,), level=level, cancels=False, faults=False, trims=False)
    scenario = data.draw(drawn, label="scenario")
    with telling(scenario, level=level):
        beside, over_http = played(scenario), played(scenario, level)
        assert over_http.outcomes == beside.outcomes
        assert spoken(over_http) == spoken(beside)


def spoken(result: Result) -> list[tuple[str, ...]]:
    """Who said what in each request; ids, and what signs a text, are the protocol's affair."""
    return [
        tuple([f"{message.role}: {message.text}" for message in request.messages if message.text])
        for request in result.trace.requests()
    ]


@FEWER
@given(scenarios(loops=("fsm",)))
def test_each_turn_ends_once_and_by_a_name(scenario: Scenario) -> None:
    with telling(scenario):
        result = played(scenario)
        events = [entry.event for entry in result.trace]
        begun = sum(isinstance(event, TurnStarted) for event in events)
        ended = [event.outcome for event in events if isinstance(event, TurnEnded)]
        assert ended == list(result.outcomes)
        assert len(ended) == begun
        assert {outcome_name(outcome) for outcome in ended} <= set(OUTCOME_NAMES)
