"""What a run asks, tells and leaves; the rest is held against recorded runs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.events import StateEntered
from harness.loops.fsm.client import RequestOptions, Usage
from harness.loops.fsm.messages import Message, user
from harness.loops.fsm.policy import POLICIES, REFERENCE, SAFE, Policy
from harness.loops.fsm.prompts import TEXTS
from harness.loops.fsm.run import run_loop
from harness.loops.fsm.session import Settings
from tests.loops.fsm.world import NO_RESULT, ScriptClient, World, call, says, shape

SMALL = Settings(max_nudges=0, model="small", windows=(("small", 40),), system="SYS")


@pytest.mark.parametrize("policy", POLICIES)
def test_one_run_in_full(policy: Policy) -> None:
    world = World(says("look", call("1")), says("found"), policy=policy)
    world.tool()
    messages = [user("do the task")]
    assert run_loop(world.session, messages) == "found"
    assert shape(messages) == ["u:do the task", "A[1]", "t(1)=seen", "a:found"]
    assert world.session.last_messages == messages
    assert world.kinds == ["context", "tool_start", "tool_running", "tool", "tools", "context"]
    assert world.deltas == ["look", "found"]
    assert [each.state for each in world.observed if isinstance(each, StateEntered)] == [
        "WAIT", "TOOL", "TRET", "WAIT", "SUPERVISE", "DONE",
    ]  # fmt: skip
    assert len(world.saved) == 2
    assert world.session.title == "short"


def test_what_goes_with_a_request() -> None:
    main = RequestOptions(temperature=0.5, stream=False)
    world = World(settings=Settings(max_nudges=0, main=main))
    world.tool()
    other = ScriptClient(world, [says("helped")])
    assert run_loop(world.session, [user("a")], system="", client=other) == "done"
    [options] = world.client.options
    assert (options["options"], options["system"]) == (main, "")
    assert [tool["function"]["name"] for tool in options["tools"]] == ["look"]
    assert not options["cancel_check"]()
    options["on_retry"]()
    assert world.kinds[-1] == "retry"
    world.session.tools_enabled = False
    assert run_loop(world.session, [user("a")], top_level=False, client=other) == "helped"
    assert other.options[0]["tools"] is None


def test_text_that_streams_after_a_cancel_is_not_shown() -> None:
    world = World()
    world.client.replies = [lambda: world.session.cancel() or says("late")]
    assert world.loop().run() is None
    assert world.deltas == []


def test_a_request_that_fails_after_a_cancel_is_no_error() -> None:
    world = World()

    def aborted() -> Message:
        world.session.cancel()
        raise RuntimeError("aborted")

    world.client.replies = [aborted]
    loop = world.loop()
    assert loop.run() is None
    assert loop.machine.state == "ABRT"
    assert "error" not in world.kinds


def test_a_nudge_is_said_before_what_was_queued_meanwhile() -> None:
    world = World(says("one"), says("two"), settings=Settings(max_nudges=1))
    world.client.replies[0] = lambda: world.session.queue_prompt("also") or says("one")
    loop = world.loop()
    assert loop.run() == "two"
    assert shape(loop.messages)[2:] == ["u:also", f"u:{TEXTS.nudge}", "a:two"]


@pytest.mark.parametrize("what", ["tools_enabled", "alive", "compacting"])
def test_who_is_not_nudged(what: str) -> None:
    world = World(says("one"), says("two"), settings=Settings())
    setattr(world.session, what, what == "compacting")
    assert world.loop().run() == "one"


def test_the_callers_list_is_left_behind_at_a_compaction() -> None:
    world = World(settings=SMALL, short=[says("sum")])
    mine = [user("first"), says("y" * 400)]
    assert run_loop(world.session, mine) == "done"
    assert len(mine) == 2
    frame = f"{TEXTS.compact_header}sum{TEXTS.compact_separator}".strip()
    assert shape(world.session.last_messages) == [f"u:{frame}", "u:first", "a:done"]
    assert world.kinds == ["context", "compact", "context"]
    assert len(world.saved) == 1


@pytest.mark.parametrize(
    ("short", "told"),
    [
        ([says("")], []),
        ([Message("assistant", "hm", reasoning="hm")], []),
        ([RuntimeError("down")], ["error"]),
    ],
)
def test_a_compaction_that_fails_is_followed_by_the_request(
    short: list[Any], told: list[str]
) -> None:
    world = World(settings=SMALL, short=short)
    loop = world.loop(user("first"), says("y" * 400))
    assert loop.run() == "done"
    assert len(loop.messages) == 3
    assert world.kinds == ["context", *told]


def test_without_anything_of_the_users_there_is_nothing_to_compact_to() -> None:
    world = World(settings=SMALL)
    assert world.loop(says("y" * 400)).run() == "done"
    assert [system for system, *_ in world.client.asked if system == TEXTS.compact_prompt] == []


def test_a_cancel_while_the_summary_comes_keeps_the_summary() -> None:
    world = World(settings=SMALL)
    world.client.short = [lambda: world.session.cancel() or says("sum")]
    loop = world.loop(user("first"), says("y" * 400))
    assert loop.run() is None
    assert len(world.session.last_messages) == 2
    assert world.client.requests == []


def test_a_calibrated_estimate_counts() -> None:
    settings = replace(SMALL, windows=(("small", 1000),))
    world = World((says("a"), Usage(600)), says("b"), settings=settings)
    loop = world.loop(user("x" * 800))
    loop.run()
    raw = world.session.calibrator.last_raw
    assert raw is not None
    assert world.session.calibrator.factor == 600 / raw


@pytest.mark.parametrize("policy", POLICIES)
def test_who_hears_of_a_result_finds_it_in_the_mirror(policy: Policy) -> None:
    world = World(says("", call("1"), call("2")), policy=policy)
    world.tool()
    found: list[list[str]] = []

    def look() -> None:
        found.append(shape(world.session.last_messages)[2:])
        world.at["tools"] = look

    world.at["tools"] = look
    world.loop().run()
    assert found == [
        ["t(1)=seen", *([f"t(2)={NO_RESULT}"] if policy is SAFE else [])],
        ["t(1)=seen", "t(2)=seen"],
    ]


@pytest.mark.parametrize("kind", ["context", "tool_start", "tool_running", "tools"])
def test_a_hook_that_fails_leaves_a_history_that_can_go_on(kind: str) -> None:
    world = World(says("", call("1"), call("2")))
    world.tool()

    def broken() -> None:
        raise RuntimeError("ui")

    world.at[kind] = broken
    with pytest.raises(RuntimeError, match="ui"):
        world.loop().run()
    calls = [m for m in world.session.last_messages if m.role == "tool"]
    assert len(calls) == (0 if kind == "context" else 2)


@pytest.mark.parametrize(
    ("policy", "answers"),
    [(SAFE, ["seen", NO_RESULT, NO_RESULT]), (REFERENCE, [])],
)
def test_what_tools_gave_before_their_round_broke(policy: Policy, answers: list[str]) -> None:
    world = World(says("", call("1"), call("1", "stop"), call("2")), policy=policy)
    world.tool()
    world.tool("stop", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        world.loop().run()
    kept = world.session.last_messages
    assert [message.text() for message in kept if message.role == "tool"] == answers


@pytest.mark.parametrize("cancelled", [False, True])
def test_results_that_stand_when_telling_of_one_fails(cancelled: bool) -> None:
    world = World(says("", call("1"), call("2", "other")))
    world.tool()
    world.tool("other", "seen too")

    def broken() -> None:
        raise RuntimeError("ui")

    world.at["tools"] = broken
    if cancelled:
        world.tool("other", lambda: world.session.cancel() or "seen too")
    with pytest.raises(RuntimeError, match="ui"):
        world.loop().run()
    assert shape(world.session.last_messages)[2:] == ["t(1)=seen", "t(2)=seen too"]


def test_a_replaced_run_leaves_nothing() -> None:
    world = World(policy=REFERENCE)
    world.client.replies = [lambda: world.session.begin_run() or says("late")]
    loop = world.loop()
    assert loop.run() is None
    assert (world.session.last_messages, world.saved, world.client.asked) == ([], [], [])
