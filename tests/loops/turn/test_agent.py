"""The turn loop as an agent under test: what a run sees of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.core.choices import Choices
from harness.core.errors import UsageError
from harness.core.events import (
    LogRow,
    LoopEvent,
    ResultSynthesized,
    ToolStarted,
    Trimmed,
    TurnEnded,
)
from harness.core.messages import assistant
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.exploration.probe import Shot
from harness.fakes.script import GenerateFails, Reply, ScriptedCall, StreamFails
from harness.fakes.tool_spec import Answers, Behaviour, Hangs, Raises, Returns, ToolSpec
from harness.loops import LOOPS
from harness.loops.turn.agent import KIND, TurnAgent, build
from harness.loops.turn.config import TEXTS, AgentConfig
from harness.runner.agents import loop_subject
from harness.runner.drive import Play
from harness.runner.probe import AgentProbe
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Cancel, Scenario, Turn
from tests.loops.turn.world import ScriptModel, done

MS = 1_000_000
TOOLS = (
    ToolSpec("clock", Behaviour(Returns("noon"), takes=1_000_000)),
    ToolSpec("refuses", Behaviour(Answers("not today"))),
    ToolSpec("breaks", Behaviour(Raises("out of order"))),
    ToolSpec("hangs", Behaviour(Hangs())),
    ToolSpec("tidies", Behaviour(Hangs(), on_cancel="cleanup", cleanup=30 * MS)),
)


def asks(*tools: str, say: str = "", **more: Any) -> Reply:
    return Reply(say=say, calls=tuple([ScriptedCall(tool) for tool in tools]), **more)


def play(*turns: Turn, policy: str = "safe", config: Any = None) -> Result:
    scenario = Scenario("a scenario", tools=TOOLS, turns=turns)
    return run(scenario, lambda env: KIND.build(env, config or {}, policy))


def found(result: Result, kind: type[Any]) -> list[Any]:
    return [entry.event for entry in result.trace if isinstance(entry.event, kind)]


def results(result: Result) -> list[tuple[Any, str | None]]:
    rows = [event.row for event in found(result, LogRow) if event.subject == "tool_result"]
    return [(row.value, row.error) for row in rows]


def test_the_loop_stands_among_the_loops() -> None:
    assert KIND in LOOPS
    assert set(KIND.settings) == set(AgentConfig.__struct_fields__)
    assert KIND.policies == ("safe", "reference")


def test_a_whole_turn() -> None:
    result = play(Turn("what time?", (asks("clock", say="I look."), Reply(say="Noon."))))
    assert result.outcomes == (COMPLETED,)
    assert result.verdict.violations == ()
    assert results(result) == [("noon", None)]
    assert {event.name for event in found(result, LoopEvent)} <= set(KIND.events)
    [started] = found(result, ToolStarted)
    assert (started.call_id, started.inferred) == ("call_1_1_1", False)


def test_the_history_is_what_the_next_request_would_carry() -> None:
    agents: list[TurnAgent] = []

    def keep(env: Any) -> TurnAgent:
        agents.append(build(env, {}, "safe"))
        return agents[0]

    turns = (Turn("one", (Reply(say="first"),)), Turn("two", (Reply(say="second"),)))
    result = run(Scenario("a scenario", turns=turns), keep)
    asked = result.trace.requests()[-1].messages
    assert agents[0].history() == (*asked, assistant("second"))


def test_failures_of_tools_are_results() -> None:
    result = play(Turn("go", (asks("refuses", "breaks", "nosuch"), Reply(say="Well."))))
    assert result.outcomes == (COMPLETED,)
    assert results(result) == [
        (None, "not today"),
        (None, "out of order"),
        (None, "unknown tool: nosuch"),
    ]
    assert [event.name for event in found(result, ToolStarted)] == ["refuses", "breaks"]


def test_the_agents_own_stop() -> None:
    turn = Turn("go", (asks("clock", "hangs"),), cancel=Cancel(at=5_000_000))
    result = play(turn)
    assert result.outcomes[0] == CANCELLED
    assert result.verdict.violations == ()
    assert results(result) == [("noon", None), (None, TEXTS.interrupted)]
    assert [event.name for event in found(result, ResultSynthesized)] == ["hangs"]


def test_a_stop_before_the_turn_has_begun_stops_it() -> None:
    turn = Turn("go", (Reply(say="never"),), cancel=Cancel(point="1#0/start"))
    result = play(turn, Turn("and now?", (Reply(say="Now."),)))
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.verdict.violations == ()


@pytest.mark.parametrize("policy", KIND.policies)
@pytest.mark.parametrize("whom", [("agent", "turn"), ("turn", "agent"), ("agent", "agent", "turn")])
def test_a_stop_of_a_turn_that_never_begins_spares_the_next(whom: Any, policy: str) -> None:
    scenario = Scenario("a scenario", turns=(Turn("go", (Reply(say="never"),)),))
    subject = loop_subject(KIND, scenario, policy)
    shots = tuple([Shot("1", 0, "start", told) for told in whom])
    result, run = AgentProbe(scenario, subject).play((), shots)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert run.findings == ()


def test_a_stop_between_turns_stops_none() -> None:
    async def turns(agent: TurnAgent) -> list[Any]:
        agent.cancel()
        here = await agent.turn("go")
        agent.cancel()
        return [here, await asyncio.create_task(agent.turn("and now?"))]

    assert asyncio.run(turns(alone())) == [COMPLETED, COMPLETED]


def test_a_stop_is_for_the_turns_that_were_made_before_it() -> None:
    async def turns(agent: TurnAgent) -> list[Any]:
        made = asyncio.create_task(agent.turn("go"))
        agent.cancel()
        later = asyncio.create_task(agent.turn("and now?"))
        return [await made, await later]

    assert asyncio.run(turns(alone())) == [CANCELLED, COMPLETED]


def test_a_stop_reaches_a_turn_that_is_played_in_a_task_of_the_one_that_was_made() -> None:
    async def turns(agent: TurnAgent) -> list[Any]:
        async def within() -> Any:
            return await asyncio.create_task(agent.turn("go"))

        made = asyncio.create_task(within())
        agent.cancel()
        return [await made, await agent.turn("and now?")]

    assert asyncio.run(turns(alone())) == [CANCELLED, COMPLETED]


def test_a_stop_from_another_thread_is_for_the_turn_that_begins_next() -> None:
    async def turns(agent: TurnAgent) -> list[Any]:
        await asyncio.to_thread(agent.cancel)
        return [await agent.turn("go"), await agent.turn("and now?")]

    assert asyncio.run(turns(alone())) == [CANCELLED, COMPLETED]


def test_usage_and_trims_are_reported() -> None:
    long = "word " * 200
    turns = [Turn(f"{n} {long}", (Reply(say="ok"),)) for n in range(4)]
    result = play(*turns, config={"context_window_tokens": 800})
    assert result.outcomes == (COMPLETED,) * 4
    trims = found(result, Trimmed)
    assert trims
    assert trims[0].budget == 640
    assert trims[0].removed_messages + trims[0].kept_messages == 5


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(fault=GenerateFails("busy")), Error("generate", "busy")),
        (Reply(say="half", fault=StreamFails(1, "cut")), Error("stream", "cut")),
        (Reply(say="half", fault=StreamFails(1, "cut", reported=True)), Error("stream", "cut")),
    ],
)
def test_failures_of_the_model_end_the_turn_and_the_next_one_goes_on(
    reply: Reply, outcome: Any
) -> None:
    result = play(Turn("go", (reply,)))
    assert result.outcomes == (outcome, COMPLETED)
    assert result.verdict.violations == ()


def busy_turn(cancel: Cancel | None) -> Turn:
    replies = (
        asks("clock", "refuses", "clock", say="Let me look.", think="Hm.", chunk=6),
        Reply(say="It is noon."),
    )
    return Turn("what time?", replies, cancel=cancel)


def points(policy: str) -> list[str]:
    """Every suspension of every task, with each way to cancel there."""
    scenario = Scenario("a scenario", tools=TOOLS, turns=(busy_turn(None),))
    one = Play(scenario, lambda env: KIND.build(env, {}, policy), Choices())
    one.play()
    return [f"{path}#{k}/{mode}" for path, k in one.kernel.points for mode in ("early", "late")]


@pytest.mark.parametrize("by", ["agent", "task"])
def test_nothing_is_wrong_wherever_a_safe_turn_is_cut(by: Any) -> None:
    places = points("safe")
    assert len(places) > 30
    for place in places:
        result = play(busy_turn(Cancel(point=place, by=by)))
        assert result.verdict.violations == (), place
        assert result.outcomes[0] in (CANCELLED, COMPLETED), place
        assert result.failures == () or by == "agent", (place, result.failures)


def test_the_recorded_faults_show_under_the_reference_policy() -> None:
    broken: set[str] = set()
    for place in points("reference"):
        result = play(busy_turn(Cancel(point=place)), policy="reference")
        broken.update(violation.invariant for violation in result.verdict.violations)
    assert broken >= {"CANCEL"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cancel_grace": 5}, "cancel_grace is 5; write a duration, such as 10ms"),
        ({"cancel_grace": "soon"}, "cancel_grace: 'soon' is not a duration"),
        ({"max_steps": "many"}, "wrong type"),
        ({"steps": 1}, "unknown setting 'steps'"),
    ],
)
def test_a_wrong_setting_is_told(config: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        KIND.build(ENV, config, "safe")
    assert message in str(caught.value)


def test_a_grace_is_a_duration() -> None:
    assert KIND.settings["cancel_grace"] == "0s"
    assert [ended_at(grace) for grace in ("0s", "10ms", "1s")] == [5 * MS, 15 * MS, 35 * MS]


def ended_at(grace: str) -> int:
    """When a turn ends that is cancelled after 5 ms while its tool tidies up for 30 ms more."""
    turn = Turn("go", (asks("tidies"),), cancel=Cancel(at=5 * MS))
    result = play(turn, config={"cancel_grace": grace})
    assert result.outcomes[0] == CANCELLED
    return next(entry.at for entry in result.trace if isinstance(entry.event, TurnEnded))


def alone() -> TurnAgent:
    """The agent on the real event loop, with a model that says little."""
    env: Any = _Env()
    env.model = ScriptModel([[done("Well.")]] * 2)
    env.observe = lambda _event: None
    return build(env, {}, "safe")


class _NoTools:
    def schemas(self) -> tuple[()]:
        return ()


class _Env:
    tools = _NoTools()


ENV: Any = _Env()
