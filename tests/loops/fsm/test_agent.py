"""The state-machine loop as an agent under test: what a run sees of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from harness.core.budget import Budget
from harness.core.events import (
    LoopEvent,
    RequestSent,
    ResultSynthesized,
    StateEntered,
    ToolStarted,
    UsageCounted,
)
from harness.core.messages import Message, Text, Thinking, ToolCall, Usage
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.core.reply import ReplyInterrupted
from harness.fakes.script import (
    Also,
    AlsoWhen,
    DoneTwice,
    GenerateFails,
    Hang,
    Reply,
    ScriptedCall,
    StreamFails,
    Torn,
)
from harness.fakes.tool_spec import (
    Answers,
    Behaviour,
    CancelsItself,
    Hangs,
    Raises,
    Returns,
    ToolSpec,
)
from harness.loops import LOOPS
from harness.loops.fsm.agent import KIND, FsmAgent
from harness.loops.fsm.env_client import _Heard, from_neutral, to_neutral
from harness.loops.fsm.messages import Message as Own
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Cancel, Scenario, Turn

SECOND = 1_000_000_000
TOOLS = (
    ToolSpec("clock", Behaviour(Returns("noon"), takes=SECOND)),
    ToolSpec("table", Behaviour(Returns({"a": [1]}))),
    ToolSpec("nothing", Behaviour(Returns(None))),
    ToolSpec("refuses", Behaviour(Answers("not today"))),
    ToolSpec("breaks", Behaviour(Raises("out of order"))),
    ToolSpec("leaves", Behaviour(CancelsItself())),
    ToolSpec("hangs", Behaviour(Hangs())),
    ToolSpec("tidies", Behaviour(Hangs(), on_cancel="cleanup", cleanup=SECOND)),
    ToolSpec("stubborn", Behaviour(Returns("done"), takes=5 * SECOND, on_cancel="ignore")),
)
NOON = Reply(say="Noon.")


def asks(*tools: str, **more: Any) -> Reply:
    return Reply(calls=tuple([ScriptedCall(tool) for tool in tools]), **more)


def play(*turns: Turn, policy: str = "safe", **config: Any) -> Result:
    scenario = Scenario("a scenario", tools=TOOLS, turns=turns)
    return run(scenario, lambda env: KIND.build(env, config, policy))


def found(result: Result, kind: type[Any]) -> list[Any]:
    return [entry.event for entry in result.trace if isinstance(entry.event, kind)]


def told(result: Result) -> list[str]:
    """The results that the last request shows."""
    requests = result.trace.requests()
    return [message.text for message in requests[-1].messages if message.role == "tool"]


def test_the_loop_stands_among_the_loops() -> None:
    assert KIND in LOOPS
    assert KIND.policies == ("safe", "reference")
    assert KIND.states == ("WAIT", "TOOL", "TRET", "SUPERVISE", "DONE", "ERRS", "ABRT")


def test_tools_run_one_at_a_time_where_none_runs_in_the_background() -> None:
    assert KIND.budget({}) == Budget(parallel_tools=1)
    assert KIND.budget({"async_tools": ["clock"]}) == KIND.budget({"subagents": True}) == Budget()


def test_a_whole_turn() -> None:
    result = play(Turn("what time?", (asks("clock"), NOON)))
    assert result.outcomes == (COMPLETED,)
    assert result.verdict.violations == ()
    states = [event.state for event in found(result, StateEntered)]
    assert states == ["WAIT", "TOOL", "TRET", "WAIT", "SUPERVISE", "DONE"]
    assert {event.name for event in found(result, LoopEvent)} <= set(KIND.events)
    [started] = found(result, ToolStarted)
    assert (started.call_id, started.inferred) == ("call_1_1_1", False)


@pytest.mark.parametrize("late", [False, True])
def test_results_of_every_kind_reach_the_model(late: bool) -> None:
    names = ["clock", "table", "nothing", "refuses", "breaks", "leaves"]
    result = play(Turn("go", (asks(*names), NOON)), async_tools=names if late else [])
    assert result.outcomes == (COMPLETED,)
    noon, table, nothing, *failed = told(result)
    assert (noon, table) == ("noon", '{"a":[1]}')
    assert nothing.startswith("Error: the tool gave no result")
    words = ["not today", "out of order", "it was cancelled"]
    assert all(word in text for word, text in zip(words, failed, strict=True))


def test_usage_is_counted_over_all_replies() -> None:
    first = asks("clock", usage=Usage(10, 2, 12))
    result = play(Turn("go", (first, Reply(say="Noon.", usage=Usage(20, 3, 23)))))
    assert [event.total for event in found(result, UsageCounted)] == [Usage(30, 5, 35)]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (GenerateFails("busy"), "busy"),
        (StreamFails(1, "lost"), "lost"),
        (StreamFails(1, "gone", reported=True), "gone"),
        (Torn(1), "before the reply was whole"),
    ],
)
def test_a_reply_that_fails_is_the_turns_error(fault: Any, says: str) -> None:
    result = play(Turn("go", (Reply(say="a text of two parts", fault=fault),)))
    [outcome, _] = result.outcomes
    assert isinstance(outcome, Error)
    assert outcome.message.startswith("Error: ")
    assert says in outcome.message
    assert result.verdict.violations == ()


def test_a_provider_that_stops_before_the_end_has_failed() -> None:
    with pytest.raises(Exception, match="stopped before the end"):
        _Heard(None).take(ReplyInterrupted())


def test_an_end_that_comes_twice_is_one() -> None:
    assert play(Turn("go", (Reply(say="Yes.", fault=DoneTwice()),))).outcomes == (COMPLETED,)


def test_a_torn_stream_counts_as_whole_under_the_recorded_policy() -> None:
    reply = Reply(say="a text of two parts", fault=Torn(1))
    result = play(Turn("go", (reply,)), policy="reference")
    assert result.outcomes == (COMPLETED,)


def test_a_reply_that_says_nothing_is_sent_back_under_the_recorded_policy_only() -> None:
    turns = (Turn("say nothing", (Reply(),)), Turn("and now?", (NOON,)))
    for policy, roles in (
        ("safe", ["user", "user"]),
        ("reference", ["user", "assistant", "user"]),
    ):
        requests = play(*turns, policy=policy).trace.requests()
        assert [message.role for message in requests[-1].messages] == roles


@pytest.mark.parametrize("by", ["agent", "task"])
@pytest.mark.parametrize(
    "after", ["request_sent", "delta", "reply_ended", "loop_event", "state_entered"]
)
def test_a_stop_ends_the_turn_and_the_next_one_goes_on(by: Any, after: str) -> None:
    cut = Turn("go", (Reply(say="One."),), Cancel(after=after, by=by))
    result = play(cut, Turn("again", (NOON,)))
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.verdict.violations == ()


@pytest.mark.parametrize("late", [[], ["hangs"]])
@pytest.mark.parametrize("by", ["agent", "task"])
def test_a_tool_that_hangs_is_left_at_a_stop(by: Any, late: list[str]) -> None:
    cut = Turn("go", (asks("hangs", "clock"),), Cancel(at=SECOND // 2, by=by))
    result = play(cut, Turn("again", (NOON,)), async_tools=late)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.verdict.violations == ()
    assert sorted({event.name for event in found(result, ResultSynthesized)}) == ["clock", "hangs"]


@pytest.mark.parametrize("tool", ["stubborn", "tidies"])
def test_nobody_waits_for_a_tool_that_takes_its_time_to_stop(tool: str) -> None:
    cut = Turn("go", (asks(tool),), Cancel(at=SECOND))
    result = play(cut, Turn("again", (NOON,)))
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert "may have taken effect" in told(result)[0]
    assert result.verdict.violations == ()


def test_a_tool_that_ends_with_the_stop_keeps_its_result() -> None:
    cut = Turn("go", (asks("clock"),), Cancel(after="tool_ended"))
    result = play(cut, Turn("again", (NOON,)))
    assert told(result) == ["noon"]


@pytest.mark.parametrize("late", [[], ["clock"]])
def test_a_ctrl_c_as_a_tool_is_announced_keeps_it_from_beginning(late: list[str]) -> None:
    cancel = Cancel(after="loop_event", name="tool_running", by="task", mode="late")
    result = play(Turn("go", (asks("clock"),), cancel), policy="safe", async_tools=late)
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert found(result, ToolStarted) == []


@pytest.mark.parametrize("late", [[], ["clock"]])
def test_under_the_recorded_policy_a_stop_waits_for_tools(late: list[str]) -> None:
    for by in ("agent", "task"):
        cut = Turn("go", (asks("clock"),), Cancel(at=SECOND // 2, by=by))  # type: ignore[arg-type]
        result = play(cut, policy="reference", async_tools=late)
        assert result.outcomes == (CANCELLED, COMPLETED)
        assert found(result, ResultSynthesized) == []
        assert told(result) == []


@pytest.mark.parametrize("policy", ["safe", "reference"])
@pytest.mark.parametrize("k", range(8, 24))
@pytest.mark.parametrize("late", [[], ["clock"]])
def test_a_stop_at_any_moment_of_a_round_ends_the_turn(
    policy: str, k: int, late: list[str]
) -> None:
    for mode, by in product(("early", "late"), ("agent", "task")):
        cancel = Cancel(point=f"1#{k}/{mode}", by=by)  # type: ignore[arg-type]
        cut = Turn("go", (asks("clock"), NOON), cancel)
        outcome = play(cut, policy=policy, async_tools=late).outcomes[0]
        assert outcome in (CANCELLED, COMPLETED)


def test_a_stop_between_turns_stops_nothing() -> None:
    agents: list[FsmAgent] = []

    def build(env: Any) -> Any:
        agents.append(KIND.build(env, {}, "safe"))  # type: ignore[arg-type]
        agents[0].cancel()
        return agents[0]

    scenario = Scenario("a scenario", turns=(Turn("hello", (NOON,)), Turn(None, (NOON,))))
    result = run(scenario, build)
    assert result.outcomes == (COMPLETED, COMPLETED)
    assert [message.role for message in agents[0].history()] == ["user", "assistant", "assistant"]


def test_a_stop_before_the_turns_first_state_sends_nothing() -> None:
    result = play(Turn("go", (), Cancel(after="turn_started")), Turn("again", (NOON,)))
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.verdict.violations == ()
    [request] = result.trace.requests()
    assert [message.text for message in request.messages] == ["go", "again"]


@pytest.mark.parametrize("by", ["agent", "task"])
def test_a_stop_as_a_turn_ends_does_not_stop_the_next(by: Any) -> None:
    reply = Reply(say="One.", usage=Usage(1, 1, 2))
    ended = Turn("go", (reply,), Cancel(after="usage_counted", by=by))
    result = play(ended, Turn("again", (NOON,)))
    assert result.outcomes == (COMPLETED, COMPLETED)


def test_an_answer_that_never_comes_is_broken_off() -> None:
    cut = Turn("go", (Reply(say="One.", fault=Hang()),), Cancel(at=SECOND))
    assert play(cut).outcomes == (CANCELLED, COMPLETED)


def test_a_task_is_handed_to_a_subagent() -> None:
    task = {"subagent_type": "any", "description": "a task", "prompt": "Do it."}
    calls = Reply(calls=(ScriptedCall("Agent", task),))
    helper = Also(
        "helper", AlsoWhen(system_contains="one task for another"), (Reply(say="Did it."),)
    )
    scenario = Scenario("a scenario", turns=(Turn("go", (calls, NOON)),), also=(helper,))
    result = run(scenario, lambda env: KIND.build(env, {"subagents": True, "titles": True}, "safe"))
    assert told(result) == ["Did it."]


WORK = AlsoWhen(system_contains="one task for another", user_contains="Find it.")
TEST = AlsoWhen(system_contains="one task for another", user_contains="Test it.")


def hands_out(*prompts: str) -> Reply:
    calls = [
        ScriptedCall("Agent", {"subagent_type": "any", "description": prompt, "prompt": prompt})
        for prompt in prompts
    ]
    return Reply(calls=tuple(calls))


def both(*also: Also, cancel: Cancel | None = None) -> Result:
    turn = Turn("go", (hands_out("Find it.", "Test it."), NOON), cancel)
    scenario = Scenario("a scenario", tools=TOOLS, turns=(turn,), also=also)
    return run(scenario, lambda env: KIND.build(env, {"subagents": True}, "safe"))


def test_subagents_of_one_round_run_at_the_same_time() -> None:
    usage = Usage(10, 2, 12)
    slow = Also("slow", WORK, (asks("clock"), Reply(say="Found.", takes=SECOND, usage=usage)))
    quick = Also("quick", TEST, (Reply(say="Tested.", takes=SECOND, usage=usage),))
    result = both(slow, quick)
    assert told(result) == ["Found.", "Tested."]
    assert result.trace.entries[-1].at == 2 * SECOND
    assert [event.total for event in found(result, UsageCounted)] == [usage + usage]
    paths = {entry.task for entry in result.trace if isinstance(entry.event, RequestSent)}
    assert paths == {"1", "1.1", "1.2"}


@pytest.mark.parametrize("by", ["agent", "task"])
@pytest.mark.parametrize("fault", [None, Hang()])
def test_a_stop_ends_all_subagents(by: Any, fault: Any) -> None:
    working = Also("working", WORK, (asks("tidies"),))
    asking = Also("asking", TEST, (Reply(say="Tested.", takes=SECOND, fault=fault),))
    result = both(working, asking, cancel=Cancel(at=SECOND // 2, by=by))
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.verdict.violations == ()
    [one, other] = told(result)
    assert one == other
    assert one.startswith("Error: interrupted while running")


def test_a_ctrl_c_as_a_turn_begins_is_a_stop() -> None:
    cut = Turn("go", (), Cancel(point="1#1/early", by="task"))
    result = play(cut, Turn("again", (NOON,)))
    assert result.outcomes == (CANCELLED, COMPLETED)
    assert result.verdict.violations == ()


def test_in_plan_mode_only_the_plan_is_written() -> None:
    parts = ({"path": "src", "filename": "a.py"}, {"path": "plans", "filename": "word-1.md"})
    calls = tuple([ScriptedCall("Write", args) for args in parts])
    scenario = Scenario(
        "a scenario",
        tools=(ToolSpec("Write", Behaviour(Returns("written"))),),
        turns=(Turn("go", (Reply(calls=calls), asks("PlanExit"), NOON)),),
    )
    result = run(scenario, lambda env: KIND.build(env, {"plan_mode": True}, "safe"))
    refused, written, approved = told(result)
    assert "plan mode is on" in refused
    assert written == "written"
    assert "approved" in approved


def test_settings_reach_the_request() -> None:
    result = play(Turn("hello", (NOON,)), model="m-1", system_prompt="", window_tokens=5000)
    [request] = result.trace.requests()
    assert (request.model, request.system) == ("m-1", "")


def test_thinking_goes_in_front_and_is_not_sent_back() -> None:
    reply = Message("assistant", (Thinking("hm"), Text("yes"), ToolCall("1", "look", {"a": 1})))
    own = from_neutral(reply)
    assert own.content == "hm\nyes"
    assert own.reasoning == "hm"
    assert to_neutral(own) == Message("assistant", (Text("yes"), ToolCall("1", "look", {"a": 1})))


def test_arguments_that_are_not_json_are_sent_back_as_they_were() -> None:
    call = ToolCall("1", "look", None, raw="{bad")
    own = from_neutral(Message("assistant", (call,)))
    assert to_neutral(own) == Message("assistant", (call,))


def test_parts_are_sent_as_their_text() -> None:
    own = Own("user", ["one ", {"text": "two"}])
    assert to_neutral(own) == Message("user", (Text("one two"),))


def test_requests_are_made_in_the_turns_own_task() -> None:
    result = play(Turn("hello", (NOON,)))
    paths = [entry.task for entry in result.trace if isinstance(entry.event, RequestSent)]
    assert paths == ["1"]
