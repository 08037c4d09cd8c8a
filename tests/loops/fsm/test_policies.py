"""Where the two policies go different ways: one test a difference, each by that flag alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.events import Compacted, ResultSynthesized
from harness.core.messages import Message as Neutral
from harness.core.messages import Thinking
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops.fsm.agent import KIND, FsmAgent
from harness.loops.fsm.client import Usage
from harness.loops.fsm.loop import ABRT, DONE, ERRS
from harness.loops.fsm.messages import Message, ToolCall, user
from harness.loops.fsm.pending import PendingToolResult
from harness.loops.fsm.policy import POLICIES, REFERENCE, SAFE, Policy
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.session import Settings
from harness.loops.fsm.transcript import saved_text
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from tests.loops.fsm.world import (
    EMPTY,
    GIVEN_UP,
    NO_RESULT,
    SKIPPED,
    World,
    call,
    only,
    result,
    says,
    shape,
)

SMALL = Settings(max_nudges=0, model="small", windows=(("small", 20),), system="SYS")
FLAGS = [name for name in Policy.__struct_fields__ if name != "name"]


def test_the_policies_differ_in_every_flag_and_safe_is_the_default() -> None:
    assert POLICIES == (SAFE, REFERENCE)
    assert [flag for flag in FLAGS if getattr(SAFE, flag) == getattr(REFERENCE, flag)] == []
    assert World().session.policy is SAFE


def both(flag: str) -> Any:
    """The reference, and the reference with that one flag as in the safe policy."""
    return pytest.mark.parametrize(
        ("policy", "better"), [(REFERENCE, False), (only(flag), True), (SAFE, True)]
    )


def grown() -> list[Message]:
    """A conversation too large for a small window, its user's words included."""
    return [user("x" * 100), says("y" * 400), user("second")]


@both("max_compactions")
def test_a_compaction_that_is_not_enough(policy: Policy, better: bool) -> None:
    world = World(policy=policy, settings=SMALL, short=[says("s" * at) for at in (9, 6, 3)])
    world.client.short.append(RuntimeError("enough"))
    loop = world.loop(*grown())
    assert loop.run() == "done"
    compactions = [system for system, *_ in world.client.asked if system == TEXTS.compact_prompt]
    assert len(compactions) == (1 if better else 4)


@both("compaction_waits")
@pytest.mark.parametrize("short", ["sum", "s" * 9999])
def test_a_model_whose_task_alone_fills_the_context_sees_what_its_tools_give(
    short: str, policy: Policy, better: bool
) -> None:
    policy = replace(policy, max_compactions=1, compaction_must_shrink=True)
    settings = replace(SMALL, windows=(("small", 1000),))

    def reply() -> Any:
        seen = any(message["role"] == "tool" for message in world.client.requests[-1])
        return says("found") if seen else says("", call(str(len(world.ran))))

    asked = [lambda: (reply(), Usage()) for _ in range(5)]
    world = World(*asked, policy=policy, settings=settings, short=[says(short)] * 9)
    world.tool(give="r" * 400)
    world.loop(user("x" * 2900)).run()
    summaries = [system for system, *_ in world.client.asked if system == TEXTS.compact_prompt]
    assert len(summaries) == (1 if better else 2 if short != "sum" else 6)
    assert len(world.ran) == (1 if better or short != "sum" else 5)


@both("compaction_waits")
def test_a_compaction_is_tried_again_when_half_of_what_is_left_is_used(
    policy: Policy, better: bool
) -> None:
    policy = replace(policy, max_compactions=1)
    settings = replace(SMALL, windows=(("small", 1000),))
    replies = [(says("", call(str(at))), Usage()) for at in range(3)]
    world = World(*replies, policy=policy, settings=settings, short=[RuntimeError("down")] * 9)
    world.tool(give="r" * 200)
    world.loop(user("x" * 2900)).run()
    summaries = [system for system, *_ in world.client.asked if system == TEXTS.compact_prompt]
    assert len(summaries) == (2 if better else 4)


@both("compaction_must_shrink")
def test_a_compaction_that_makes_it_no_smaller(policy: Policy, better: bool) -> None:
    world = World(policy=policy, settings=SMALL, short=[says("s" * 999), RuntimeError("no")])
    loop = world.loop(*grown())
    before = list(loop.messages)
    assert loop.run() == "done"
    assert (loop.messages[:3] == before) == better
    assert ("compact" in world.kinds) != better
    assert any("no shorter" in line for line in world.logs) == better
    assert not world.session.compacting


@both("nudges_end")
def test_nudges_of_a_model_whose_answers_fill_the_context(policy: Policy, better: bool) -> None:
    settings = replace(SMALL, windows=(("small", 200),), max_nudges=1)
    answers = [(says("y" * 800), Usage()) for _ in range(9)]
    world = World(*answers, policy=policy, settings=settings, short=[says("sum")] * 9)
    world.loop().run()
    assert (len(world.client.requests) == 3) == better
    assert (len(world.client.requests) > 9) != better


@both("summary_must_say_something")
def test_a_summary_that_is_blank(policy: Policy, better: bool) -> None:
    world = World(policy=policy, settings=SMALL, short=[says(" \n"), RuntimeError("enough")])
    loop = world.loop(*grown())
    before = list(loop.messages)
    assert loop.run() == "done"
    assert (loop.messages[:3] == before) == better
    assert ("compact" in world.kinds) != better


@both("request_after_cancel")
def test_a_request_that_was_cancelled_while_it_was_prepared(policy: Policy, better: bool) -> None:
    world = World(policy=policy, settings=SMALL)

    def cancelled() -> Message:
        world.session.cancel()
        raise RuntimeError("aborted")

    world.client.short = [cancelled]
    loop = world.loop(*grown())
    assert loop.run() is None
    assert loop.machine.state == ABRT
    assert len(world.client.requests) == (0 if better else 1)


@both("limit_rounds")
def test_a_model_that_never_ends(policy: Policy, better: bool) -> None:
    settings = Settings(max_nudges=0, max_rounds=3)
    replies = [says("", call(str(at))) for at in range(5)]
    world = World(*replies, policy=policy, settings=settings)
    world.tool()
    loop = world.loop()
    assert loop.run() == (TEXTS.rounds_exhausted if better else "done")
    assert (len(world.client.requests), len(world.ran)) == ((3, 3) if better else (6, 5))
    assert loop.info.budget == better
    assert shape(world.session.last_messages) == shape(loop.messages)
    if policy is SAFE:
        assert world.saved[-1] == saved_text(loop.messages)
    assert len(world.client.asked) == (0 if better else 1)


@both("limit_rounds")
def test_an_answer_with_the_last_request_is_the_answer(policy: Policy, better: bool) -> None:
    settings = Settings(max_nudges=2, max_rounds=2)
    world = World(says("", call("1")), says("a"), says("b"), policy=policy, settings=settings)
    world.tool()
    loop = world.loop()
    assert loop.run() == ("a" if better else "done")
    assert not loop.info.budget


@both("limit_rounds")
def test_a_summary_is_no_round(policy: Policy, better: bool) -> None:
    settings = replace(SMALL, max_rounds=1)
    policy = replace(policy, max_compactions=1)
    world = World(policy=policy, settings=settings, short=[says("sum")])
    assert world.loop(*grown()).run() == "done"


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_cancel_at_the_limit_is_a_cancel(cancelled: bool) -> None:
    world = World(says("", call("1")), settings=Settings(max_rounds=1))
    world.tool()
    loop = world.loop()
    if cancelled:
        world.at["tools"] = world.session.cancel
    loop.run()
    assert loop.machine.state == (ABRT if cancelled else DONE)


@both("portable_titles")
@pytest.mark.parametrize(
    ("reply", "recorded", "portable"),
    [
        ("Fix: a/b", "Fix-a-b", "Fix-a-b"),
        ("a\x1b[1m\x00b\x9f", "a\x1b[1m\x00b\x9f", "a-[1m-b"),
        ("a\ud800b", "a\ud800b", "a-b"),
        ("...", "...", None),
        ("Wait...", "Wait...", "Wait"),
        ("nul", "nul", "-nul"),
        ("COM1.txt", "COM1.txt", "-COM1.txt"),
        ("Console", "Console", "Console"),
    ],
)
def test_a_title_that_a_file_system_refuses(
    reply: str, recorded: str, portable: str | None, policy: Policy, better: bool
) -> None:
    world = World(policy=policy, short=[says(reply)])
    world.loop().run()
    assert world.session.title == (portable if better else recorded)


def hook_that_fails() -> None:
    """What a user interface does that is broken."""
    raise RuntimeError("ui")


@both("untold_is_done")
def test_a_hook_that_fails_after_a_tool(policy: Policy, better: bool) -> None:
    world = World(says("", call("1"), call("2")), policy=policy)
    world.tool()
    world.at["tool"] = hook_that_fails
    loop = world.loop()
    assert loop.run() == "done"
    crash = TEXTS.crashed.format(name="look", error="ui")
    assert shape(loop.messages)[2:4] == [f"t(1)={'seen' if better else crash}", "t(2)=seen"]
    assert ("telling of 'tool' failed: ui" in world.logs) == better


@both("untold_is_done")
def test_a_hook_that_fails_after_a_compaction(policy: Policy, better: bool) -> None:
    world = World(policy=policy, settings=SMALL, short=[says("sum"), RuntimeError("enough")])
    world.at["compact"] = hook_that_fails
    loop = world.loop(*grown())
    assert loop.run() == "done"
    assert len(loop.messages) == 4
    [first, *_] = [event for event in world.observed if isinstance(event, Compacted)]
    assert first.failed == (None if better else "ui")
    assert ("telling of 'compact' failed: ui" in world.logs) == better
    assert (loop.machine.history[:2] == ["WAIT", "WAIT"]) == better


@both("title_after_cancel")
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_a_title_while_the_process_ends(
    stop: type[BaseException], policy: Policy, better: bool
) -> None:
    world = World(says("", call("1")), policy=policy)
    world.at["tool_start"] = lambda: (_ for _ in ()).throw(stop)
    world.session.first_user = "fix it"
    with pytest.raises(stop):
        world.loop().run()
    assert len(world.client.asked) == (0 if better and stop is not RuntimeError else 1)


@both("title_after_cancel")
def test_a_title_after_a_cancel(policy: Policy, better: bool) -> None:
    world = World(policy=policy)
    world.session.first_user = "fix it"
    world.client.replies = [world.session.cancel]
    world.loop().run()
    assert len(world.client.asked) == (0 if better else 1)


@both("title_after_cancel")
def test_a_title_that_a_cancel_may_break_off(policy: Policy, better: bool) -> None:
    world = World(policy=policy)
    world.loop().run()
    [(_, _, check)] = world.client.asked
    assert (check is not None) == better
    if better:
        world.session.cancel()
        assert check()


def replaced(world: World) -> None:
    """A new run takes over."""
    world.session.begin_run()
    world.session.last_messages = [user("new run")]


@both("stale_writes")
def test_a_replaced_run_at_its_tools(policy: Policy, better: bool) -> None:
    world = World(says("", call("1")), policy=policy)
    world.tool()
    loop = world.loop()
    entered = loop.entered
    loop.entered = lambda state: replaced(world) if state == "TOOL" else entered(state)  # type: ignore[method-assign]
    loop.run()
    assert (shape(world.session.last_messages) == ["u:new run"]) == better


@both("stale_writes")
def test_a_replaced_run_at_its_file_and_title(policy: Policy, better: bool) -> None:
    world = World(policy=policy)
    old = world.session.stamp()
    world.session.first_user = "fix it"

    def late() -> Message:
        replaced(world)
        return says("old title")

    world.client.short = [late]
    world.session.generate_title(old)
    world.session.auto_save([user("old")], "SYS", old)
    assert world.session.title == (None if better else "old-title")
    assert world.saved == ([] if better else ["**user**: old"])


@both("falsy_async_is_empty")
@pytest.mark.parametrize(
    ("value", "text"), [(None, NO_RESULT), (0, "0"), (False, "False"), ([], "[]"), ("", "")]
)
def test_a_late_result_that_is_none_or_the_like(
    value: Any, text: str, policy: Policy, better: bool
) -> None:
    world = World(says("", call("1")), policy=policy)
    world.late(value=value)
    loop = world.loop()
    loop.run()
    if policy.name_empty_results:
        text = text or EMPTY
    assert shape(loop.messages)[2] == f"t(1)={text if better else ''}"


@both("results_per_call")
def test_two_calls_with_one_id(policy: Policy, better: bool) -> None:
    world = World(says("", call("1", "slow"), call("1", "fast")), policy=policy)
    world.late("slow", "late")
    world.tool("fast", "now")
    loop = world.loop()
    loop.run()
    assert shape(loop.messages)[2:4] == ["t(1)=late", f"t(1)={'now' if better else 'late'}"]


@both("repair_history")
def test_good_messages_behind_an_old_open_round(policy: Policy, better: bool) -> None:
    world = World(says("answer"), policy=policy)
    old = [user("a"), says("", call("1")), user("b")]
    world.loop(*old).run()
    kept = ["u:a", "A[1]", f"t(1)={NO_RESULT}", "u:b", "a:answer"]
    assert shape(world.session.last_messages) == (kept if better else kept[:1])


@both("repair_history")
def test_a_new_run_in_the_middle_of_a_round(policy: Policy, better: bool) -> None:
    world = World(says("", call("1")), policy=policy)
    world.tool()
    seen: list[list[str]] = []
    world.at["tool_running"] = lambda: seen.append(shape(world.session.last_messages))
    world.loop().run()
    assert seen == [["u:do the task", "A[1]", *([f"t(1)={NO_RESULT}"] if better else [])]]


@both("answer_cancelled_rounds")
@pytest.mark.parametrize("at", ["before", "in the first", "in delivery"])
def test_what_a_cancelled_round_leaves(at: str, policy: Policy, better: bool) -> None:
    world = World(says("", call("1"), call("2")), policy=policy)
    world.tool(give=lambda: (at == "in the first" and world.session.cancel()) or "seen")
    moments: dict[str, str] = {"before": "tool_start", "in delivery": "tools"}
    if at in moments:
        world.at[moments[at]] = world.session.cancel
    loop = world.loop()
    assert loop.run() is None
    assert loop.machine.state == ABRT
    assert loop.pending == ([] if better or at != "before" else list(loop.info.tool_calls or ()))
    first = SKIPPED if at == "before" else "seen"
    second = "seen" if at == "in delivery" else SKIPPED
    round_of = ["A[1,2]", f"t(1)={first}", f"t(2)={second}"]
    assert shape(world.session.last_messages) == ["u:do the task", *(round_of if better else [])]
    assert len(world.ran) == {"before": 0, "in the first": 1, "in delivery": 2}[at]


@both("cancel_before_budget")
def test_a_cancel_with_the_rounds_used_up(policy: Policy, better: bool) -> None:
    world = World(says("thinking", call("1")), policy=policy)
    world.tool(give=lambda: None)
    loop = world.loop(top_level=False, max_rounds=1)
    entered = loop.entered

    def enter(state: str) -> None:
        if loop.rounds == 1 and state == "WAIT":
            world.session.cancel()
        entered(state)

    loop.entered = enter  # type: ignore[method-assign]
    assert loop.run() == (None if better else "thinking")
    assert loop.machine.state == (ABRT if better else DONE)


@both("supervise_sees_cancel")
@pytest.mark.parametrize("nudges", [0, 2])
def test_a_cancel_after_the_last_reply(nudges: int, policy: Policy, better: bool) -> None:
    world = World(says("answer"), policy=policy, settings=Settings(max_nudges=nudges))
    loop = world.loop()
    entered = loop.entered

    def enter(state: str) -> None:
        if state == "SUPERVISE":
            world.session.cancel()
        entered(state)

    loop.entered = enter  # type: ignore[method-assign]
    answered = not better and nudges == 0
    assert loop.run() == ("answer" if answered else None)
    assert loop.machine.state == (DONE if answered else ABRT)
    nudged = [f"u:{TEXTS.nudge}"] if nudges and not better else []
    assert shape(world.session.last_messages) == ["u:do the task", "a:answer", *nudged]


@both("last_answer_counts")
def test_a_model_that_has_nothing_more_to_say(policy: Policy, better: bool) -> None:
    replies = [says("answer"), says(" "), says("")]
    world = World(*replies, policy=policy, settings=Settings())
    assert world.loop().run() == ("answer" if better else "")


@given(st.lists(st.sampled_from(["", " ", "a", "b"]), min_size=3, max_size=3))
def test_of_several_answers_the_last_that_is_not_blank_counts(texts: list[str]) -> None:
    world = World(*[says(text) for text in texts], settings=Settings())
    spoken = [text for text in texts if text.strip()]
    assert world.loop().run() == (spoken[-1] if spoken else texts[-1])


@both("waits_end_with_cancel")
def test_a_late_result_that_never_comes(policy: Policy, better: bool) -> None:
    world = World(says("", call("1"), call("2")), policy=policy)
    handle = PendingToolResult(world.threads)
    world.tool(give=lambda: handle)
    loop = world.loop()
    ended: list[Any] = []
    wait: Callable[[], Any] = handle.wait

    def cancelled() -> Any:
        world.threads.start(lambda: ended.append(world.session.cancel()))
        world.threads.join()
        if not better:
            handle.deliver("at last")
        return wait()

    handle.wait = cancelled  # type: ignore[method-assign]
    assert loop.run() is None
    assert handle.given_up == better
    left = ["A[1,2]", f"t(1)={GIVEN_UP}", f"t(2)={GIVEN_UP}"] if policy is SAFE else []
    assert shape(world.session.last_messages)[1:] == left


@both("cancel_stays")
def test_an_event_that_is_set_and_cleared_again(policy: Policy, better: bool) -> None:
    world = World(says("", call("1"), call("2")), policy=policy)
    loop = world.loop()

    def flicker() -> None:
        world.session.cancel_event = True
        assert loop.cancelled()
        world.session.cancel_event = False

    world.tool(give=flicker)
    assert loop.run() == (None if better else "done")


@both("repair_history")
def test_an_old_open_round_is_closed_before_it_is_sent(policy: Policy, better: bool) -> None:
    old = [user("first"), says("", call("0")), result("x"), user("go on")]
    world = World(policy=policy)
    loop = world.loop(*old)
    mine = loop.messages
    loop.run()
    sent = [(message["role"], message.get("tool_call_id")) for message in world.client.requests[0]]
    assert sent[2:] == [("tool", "0" if better else "x"), ("user", None)]
    assert mine is loop.messages
    if better:
        assert world.saved == [saved_text(world.session.last_messages)]


@both("save_every_end")
def test_the_file_after_an_error(policy: Policy, better: bool) -> None:
    world = World(says("", call("1")), RuntimeError("down"), policy=policy)
    world.tool()
    loop = world.loop()
    assert loop.run() == "Error: down"
    assert loop.machine.state == ERRS
    assert ("**tool**: seen" in world.saved[-1]) == better
    again = World(policy=policy)
    again.loop().run()
    assert len(again.saved) == 1


@both("refuse_bad_replies")
@pytest.mark.parametrize("reply", [(None, Usage()), (says("x"), None)])
def test_a_client_that_breaks_its_contract(reply: Any, policy: Policy, better: bool) -> None:
    world = World(reply, policy=policy)
    loop = world.loop()
    if not better:
        with pytest.raises(AttributeError):
            loop.run()
        return
    assert str(loop.run()).startswith("Error: the client gave ")
    assert shape(world.session.last_messages) == ["u:do the task"]


@pytest.mark.parametrize(
    ("given", "usage", "named"),
    [
        ({"content": 5}, Usage(), "content 5"),
        ({"reasoning": 5}, Usage(), "reasoning 5"),
        ({"role": "tool"}, Usage(), "role 'tool'"),
        ({"tool_calls": {"id": "1"}}, Usage(), "tool_calls {"),
        ({"tool_calls": [{"id": "1"}]}, Usage(), "tool_calls [{"),
        ({"tool_calls": [call("1"), ToolCall(2, "look")]}, Usage(), "tool_calls [ToolCall("),  # type: ignore[arg-type]
        ({"tool_calls": [ToolCall("1", None)]}, Usage(), "tool_calls [ToolCall("),  # type: ignore[arg-type]
        ({}, Usage("many"), "input_tokens 'many'"),  # type: ignore[arg-type]
    ],
)
def test_a_reply_with_a_part_that_is_none_of_its_kind_leaves_the_conversation_alone(
    given: dict[str, Any], usage: Usage, named: str
) -> None:
    world = World((Message(**{"role": "assistant", "content": "x", **given}), usage))
    answer = world.loop().run()
    assert str(answer).startswith(f"Error: the client gave a Message with {named}")
    assert shape(world.session.last_messages) == ["u:do the task"]


@both("refuse_bad_arguments")
@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("{", TEXTS.arguments_not_json),
        ("", TEXTS.arguments_not_json),
        ('"Paris"', TEXTS.arguments_no_object),
        ([1], TEXTS.arguments_no_object),
        ("null", None),
        (None, None),
    ],
)
def test_arguments_that_are_no_object(
    written: Any, why: str | None, policy: Policy, better: bool
) -> None:
    world = World(says("", call("1", arguments=written)), policy=policy)
    world.tool()
    loop = world.loop()
    loop.run()
    refused = better and why is not None
    assert world.ran == ([] if refused else ["look"])
    assert loop.messages[2].text() == (str(why).format(name="look") if refused else "seen")
    told = [each.call_id for each in world.observed if isinstance(each, ResultSynthesized)]
    assert told == (["1"] if refused else [])


@both("name_empty_results")
@pytest.mark.parametrize("value", ["", " \n"])
@pytest.mark.parametrize("late", [False, True])
def test_a_result_without_a_word(value: str, late: bool, policy: Policy, better: bool) -> None:
    world = World(says("", call("1")), policy=policy)
    if late:
        world.late(value=value)
    else:
        world.tool(give=value)
    loop = world.loop()
    loop.run()
    assert shape(loop.messages)[2] == f"t(1)={EMPTY if better else value}"


def asked_again(policy: Policy, *replies: Reply) -> tuple[Neutral, ...]:
    """The messages of the last request of a turn with these replies."""
    scenario = Scenario(
        "a scenario",
        tools=(ToolSpec("look", Behaviour(Returns("seen"))),),
        turns=(Turn("go", (*replies, Reply(say="done"))),),
    )
    settings = KIND.settings
    ran = run(scenario, lambda env: FsmAgent(env, settings, policy))
    return ran.trace.requests()[-1].messages


@both("keep_empty_ids")
def test_a_call_with_an_empty_id(policy: Policy, better: bool) -> None:
    messages = asked_again(policy, Reply(calls=(ScriptedCall("look", id=""),)))
    assert [message.tool_call_id for message in messages[1:]] == ([None, ""] if better else [])


@both("keep_signed_thinking")
def test_reasoning_that_the_provider_signed(policy: Policy, better: bool) -> None:
    calls = (ScriptedCall("look"),)
    messages = asked_again(policy, Reply(think="hm", signature="s-1\n", calls=calls))
    thought = [block for block in messages[1].content if isinstance(block, Thinking)]
    assert thought == ([Thinking("hm", "s-1\n")] if better else [])
    assert len(messages[1].calls) == 1


@both("prefix_once")
def test_an_error_that_says_error_itself(policy: Policy, better: bool) -> None:
    world = World(RuntimeError("Error: inner"), policy=policy)
    assert world.loop().run() == ("Error: inner" if better else "Error: Error: inner")


@given(st.text(max_size=20))
def test_no_error_begins_twice(text: str) -> None:
    told = str(World(RuntimeError(f"Error: {text}")).loop().run())
    assert told == f"Error: {text}"
    assert str(World(RuntimeError(text)).loop().run()).removeprefix("Error: ") == (
        text.removeprefix("Error: ")
    )


def test_a_repaired_history_goes_on_after_any_cancel() -> None:
    world = World(says("", call("1"), call("2")), says("", call("3")), says("end"))
    world.tool()
    world.at["tools"] = world.session.cancel
    world.loop().run()
    world.session.begin_run()
    messages = [*world.session.last_messages, user("go on")]
    assert world.loop(*messages).run() == "end"
    assert shape(world.session.last_messages) == [
        "u:do the task", "A[1,2]", "t(1)=seen", "t(2)=seen", "u:go on", "A[3]", "t(3)=seen",
        "a:end",
    ]  # fmt: skip
    assert result("1") in world.session.last_messages
