"""Where the two policies go different ways: one test a difference."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.core.events import InsideEvent, LogRow, LoopEvent, ResultSynthesized
from harness.core.messages import Message, Text
from harness.core.outcome import CANCELLED, COMPLETED, INTERRUPTED, STEP_LIMIT, Error, Outcome
from harness.core.reply import ReplyFailed, ReplyInterrupted, TextDelta
from harness.loops.turn.config import TEXTS
from harness.loops.turn.policy import POLICIES, REFERENCE, SAFE, Policy
from harness.loops.turn.registry import ToolOutput
from tests.loops.turn.world import HANG, World, call, check_turn, done, play

BEFORE = TEXTS.cancelled_before_execution
A, B, C = call("a"), call("b"), call("c")


def stop_at(world: World, kind: str) -> None:
    """Abort the turn at the first row or event of that kind."""

    def watch(event: InsideEvent) -> None:
        found = event.name if isinstance(event, LoopEvent) else None
        if kind in (found, event.subject if isinstance(event, LogRow) else None):
            world.signal.abort()

    world.watch = watch


def play_and_stop(world: World, ms: float = 5) -> Outcome | BaseException:
    """Play a turn and abort it after some time."""
    return play(
        world, prepare=lambda kernel, _task: kernel.call_later(ms / 1000, world.signal.abort)
    )


@pytest.mark.parametrize(("policy", "outcome"), [(SAFE, CANCELLED), (REFERENCE, STEP_LIMIT)])
def test_a_cancel_with_the_budget_spent(policy: Policy, outcome: Outcome) -> None:
    world = World([[done("", A)]], policy=policy, max_steps=1)
    stop_at(world, "tool_result")
    assert play(world) == outcome
    assert world.results() == [("a", {"ok": True}, None)]


@pytest.mark.parametrize(("policy", "rows"), [(SAFE, ["assistant_message"]), (REFERENCE, [])])
def test_an_answer_that_was_told_before_the_cancel(policy: Policy, rows: list[str]) -> None:
    world = World([[done("answer"), HANG]], policy=policy)
    assert play_and_stop(world) == CANCELLED
    assert world.kinds()[2:-1] == rows
    assert world.model.closed == [True]
    check_turn(world)


@pytest.mark.parametrize(
    ("policy", "rows", "results"),
    [
        (
            SAFE,
            ["assistant_message", "tool_call", "tool_call", "tool_result", "tool_result"],
            [("a", None, BEFORE), ("b", None, BEFORE)],
        ),
        (REFERENCE, [], []),
    ],
)
def test_calls_that_were_told_before_the_cancel(
    policy: Policy, rows: list[str], results: list[Any]
) -> None:
    world = World([[done("look", A, B), HANG]], policy=policy)
    assert play_and_stop(world) == CANCELLED
    assert world.kinds()[2:-1] == rows
    assert world.results() == results
    assert world.tools.began == []
    check_turn(world)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (ReplyFailed("stream", "gone"), Error("stream", "gone")),
        (ReplyInterrupted(), INTERRUPTED),
        (OSError("gone"), Error("stream", "gone")),
    ],
)
@pytest.mark.parametrize(
    ("policy", "results"), [(SAFE, [("a", None, TEXTS.reply_failed)]), (REFERENCE, [])]
)
def test_calls_of_a_reply_that_broke_after_it_was_whole(
    policy: Policy, results: list[Any], end: Any, outcome: Outcome
) -> None:
    world = World([[done("look", A), end]], policy=policy)
    assert play(world) == outcome
    assert world.results() == results
    assert ("assistant_message" in world.kinds()) == (policy is SAFE)
    assert world.tools.began == []
    check_turn(world)


@pytest.mark.parametrize(
    ("policy", "content"), [(SAFE, (Text("let me see"), A)), (REFERENCE, (A,))]
)
def test_text_beside_calls(policy: Policy, content: tuple[Any, ...]) -> None:
    world = World([[done("let me see", A)]], policy=policy)
    assert play(world) == COMPLETED
    assert world.model.requests[1].messages[1] == Message("assistant", content)


@pytest.mark.parametrize(
    ("policy", "results"),
    [
        (SAFE, [("a", 1, None), ("b", None, TEXTS.interrupted), ("c", None, BEFORE)]),
        (REFERENCE, [("a", None, BEFORE), ("b", None, BEFORE), ("c", None, BEFORE)]),
    ],
)
def test_what_became_of_each_call_of_an_abandoned_batch(policy: Policy, results: list[Any]) -> None:
    world = World(
        [[done("", A, B, C)]], {"a": 1, "b": HANG}, policy=policy, max_parallel_tool_calls=2
    )
    assert play_and_stop(world) == CANCELLED
    assert world.results() == results
    synthesized = [e.call_id for e in world.inside if isinstance(e, ResultSynthesized)]
    assert synthesized == [call_id for call_id, value, _ in results if value is None]
    check_turn(world)


def test_a_failed_sibling_of_an_abandoned_batch_keeps_its_error() -> None:
    world = World([[done("", A, B)]], {"a": ValueError("broke"), "b": HANG})
    assert play_and_stop(world) == CANCELLED
    assert world.results() == [("a", None, "broke"), ("b", None, TEXTS.interrupted)]


def test_a_call_that_answers_its_cancel_within_the_grace_keeps_its_answer() -> None:
    async def partly() -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "half of it"

    for grace, result in [
        (5_000_000, ("a", "half of it", None)),
        (0, ("a", None, TEXTS.interrupted)),
    ]:
        world = World([[done("", A)]], {"a": partly}, cancel_grace=grace)
        assert play_and_stop(world) == CANCELLED
        assert world.results() == [result]


@pytest.mark.parametrize(("policy", "call_id"), [(SAFE, "a"), (REFERENCE, "other")])
def test_whose_result_it_is(policy: Policy, call_id: str) -> None:
    world = World([[done("", A)]], {"a": ToolOutput("other", 1)}, policy=policy)
    assert play(world) == COMPLETED
    assert world.results() == [(call_id, 1, None)]


def test_calls_with_one_id_are_two_calls() -> None:
    world = World([[done("", A, A)]], {"a": HANG})
    assert play_and_stop(world) == CANCELLED
    assert world.results() == [("a", None, TEXTS.interrupted)] * 2
    check_turn(world)


@pytest.mark.parametrize("moment", ["done", "tool", "tool_call"])
@pytest.mark.parametrize(("policy", "began"), [(SAFE, []), (REFERENCE, ["a", "b"])])
def test_what_begins_after_an_abort_before_the_batch(
    policy: Policy, began: list[str], moment: str
) -> None:
    world = World([[done("", A, B)]], policy=policy)
    stop_at(world, moment)
    assert play(world) == CANCELLED
    assert world.tools.began == began
    assert world.tools.over == []
    assert world.results() == [("a", None, BEFORE), ("b", None, BEFORE)]
    check_turn(world)


@pytest.mark.parametrize(
    ("policy", "began", "first"),
    [(SAFE, ["a"], TEXTS.interrupted), (REFERENCE, ["a", "b"], BEFORE)],
)
def test_what_begins_after_an_abort_by_the_first_of_a_batch(
    policy: Policy, began: list[str], first: str
) -> None:
    async def stop() -> str:
        world.signal.abort()
        await asyncio.sleep(0)
        return "went on"

    world = World([[done("", A, B)]], {"a": stop}, policy=policy)
    assert play(world) == CANCELLED
    assert world.tools.began == began
    assert world.results() == [("a", None, first), ("b", None, BEFORE)]


def test_no_request_is_sent_after_an_abort_while_it_was_made() -> None:
    world = World([[done("x" * 4000)], [done("y" * 4000)]], context_window_tokens=500)
    loop = world.loop()
    assert asyncio.run(loop.run("one")) == COMPLETED
    world.watch = lambda event: world.signal.abort() if type(event).__name__ == "Trimmed" else None
    assert asyncio.run(loop.run("two")) == CANCELLED
    assert len(world.model.requests) == 1


@pytest.mark.parametrize(
    ("policy", "began", "text"), [(SAFE, ["a"], "two"), (REFERENCE, ["a", "a"], "")]
)
def test_a_reply_whose_end_came_twice(policy: Policy, began: list[str], text: str) -> None:
    world = World([[done("one", A), done("two", A)]], policy=policy)
    assert play(world) == COMPLETED
    assert world.tools.began == began
    assert world.model.requests[1].messages[1].text == text


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (call("a", raw='{"n": '), TEXTS.arguments_not_json),
        (call("a", [1, 2]), TEXTS.arguments_no_object),
        (call("a", "n"), TEXTS.arguments_no_object),
    ],
)
def test_bad_arguments(bad: Any, error: str) -> None:
    world = World([[done("", bad, B)]])
    assert play(world) == COMPLETED
    assert world.tools.began == ["b"]
    assert world.results() == [("a", None, error), ("b", {"ok": True}, None)]
    assert world.model.requests[1].messages[1].calls == [bad, B]
    check_turn(world)
    recorded = World([[done("", bad, B)]], policy=REFERENCE)
    assert play(recorded) == COMPLETED
    assert recorded.tools.began == ["a", "b"]


def test_a_step_with_bad_arguments_only_is_no_wait() -> None:
    world = World([[done("", call("a", raw="?"))]])
    assert play(world) == COMPLETED
    assert world.results() == [("a", None, TEXTS.arguments_not_json)]


@pytest.mark.parametrize(("policy", "closed"), [(SAFE, True), (REFERENCE, False)])
@pytest.mark.parametrize(
    "end", [ReplyFailed("stream", "gone"), ReplyInterrupted(), OSError("gone")]
)
def test_a_stream_that_failed(policy: Policy, closed: bool, end: Any) -> None:
    world = World([[TextDelta("a"), end, TextDelta("b")]], policy=policy)
    play(world)
    assert world.model.closed == [closed]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_stream_that_was_read_to_its_end_is_not_closed(policy: Policy) -> None:
    world = World([[done("answer")]], policy=policy)
    assert play(world) == COMPLETED
    assert world.model.closed == [False]


def test_every_difference_is_one() -> None:
    assert all(getattr(SAFE, name) != getattr(REFERENCE, name) for name in Policy.__struct_fields__)
