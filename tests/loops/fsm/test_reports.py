"""What the loop reports of its conversation: summaries, cuts, answers of its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from harness.core.events import Compacted, InsideEvent, ResultSynthesized, Salvaged
from harness.loops.fsm.context import salvage, unanswered
from harness.loops.fsm.messages import Message, user, wire
from harness.loops.fsm.policy import POLICIES, REFERENCE, SAFE, Policy
from harness.loops.fsm.session import Settings
from harness.loops.fsm.tokens import payload_tokens
from tests.loops.fsm.test_context import MESSAGES
from tests.loops.fsm.world import NO_RESULT, SKIPPED, World, call, result, says

SMALL = Settings(max_nudges=0, model="small", windows=(("small", 40),), system="SYS")
LONG = (user("first"), says("y" * 400))


def told(world: World, kind: type[InsideEvent]) -> list[Any]:
    return [event for event in world.observed if isinstance(event, kind)]


def size(messages: list[Message]) -> int:
    return payload_tokens(None, [wire(message) for message in messages], [])


@pytest.mark.parametrize(
    ("short", "failed"),
    [
        (says("sum"), None),
        (says(""), "the summary is empty"),
        (RuntimeError("down"), "down"),
        (says("s" * 999), "the summary is no shorter than what it sums up"),
    ],
)
def test_each_try_to_sum_up_is_reported(short: Any, failed: str | None) -> None:
    world = World(settings=SMALL, short=[short])
    loop = world.loop(*LONG)
    loop.run()
    after = size(loop.messages[:-1])
    assert told(world, Compacted) == [Compacted(size(list(LONG)), after, failed)]
    assert (after < size(list(LONG))) == (failed is None)


def test_with_nothing_of_the_users_the_try_fails_without_a_request() -> None:
    world = World(settings=SMALL)
    world.loop(says("y" * 400)).run()
    assert told(world, Compacted) == [Compacted(100, 100, "the user has said nothing")]


def test_a_summary_that_took_the_place_is_reported_as_it_stands_though_telling_of_it_failed() -> (
    None
):
    world = World(settings=SMALL, short=[says("sum")], policy=REFERENCE)

    def broken() -> None:
        raise RuntimeError("ui")

    world.at["compact"] = broken
    loop = world.loop(*LONG)
    loop.run()
    [report] = told(world, Compacted)
    assert report == Compacted(size(list(LONG)), size(loop.messages[:-1]), "ui")
    assert report.after < report.before


def broken_off(policy: Policy, kind: str = "tools") -> World:
    """A run that ends when it tells `kind` for the first time, in a round of three calls."""
    world = World(says("", call("1"), call("2"), call("3")), policy=policy)
    world.tool()

    def broken() -> None:
        raise RuntimeError("ui")

    world.at[kind] = broken
    with pytest.raises(RuntimeError, match="ui"):
        world.loop().run()
    return world


def test_a_round_that_is_left_out_is_reported() -> None:
    world = broken_off(REFERENCE)
    assert told(world, Salvaged) == [Salvaged(1, 2, ("2", "3"))]
    assert told(world, ResultSynthesized) == []


def test_each_answer_that_mends_a_round_is_reported() -> None:
    lacking = [ResultSynthesized(each, "look", NO_RESULT) for each in ("1", "2", "3")]
    for kind, reported in (("tools", []), ("tool_running", lacking)):
        world = broken_off(SAFE, kind)
        assert told(world, Salvaged) == []
        assert told(world, ResultSynthesized) == reported


def test_each_answer_that_mends_an_old_round_is_reported() -> None:
    world = World()
    world.loop(says("", call("0")), user("go on")).run()
    assert told(world, ResultSynthesized) == [ResultSynthesized("0", "look", NO_RESULT)]


def test_an_answer_that_stands_already_is_not_reported_again() -> None:
    world = World(says("", call("1"), call("2")))
    world.tool(give=world.session.cancel)
    world.loop().run()
    assert told(world, ResultSynthesized) == [ResultSynthesized("2", "look", SKIPPED)]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_sound_end_reports_nothing(policy: Policy) -> None:
    world = World(says("", call("1")), policy=policy)
    world.tool()
    world.loop(says("", call("0")), result("0"), user("go on")).run()
    assert told(world, Salvaged) + told(world, ResultSynthesized) == []


@given(MESSAGES)
def test_where_a_conversation_is_cut_some_call_is_unanswered(messages: list[Message]) -> None:
    kept = salvage(messages)
    if len(kept) < len(messages):
        at = len(kept)
        ids = [each.id for each in messages[at].tool_calls or ()]
        left = unanswered(messages, at)
        assert left
        assert [each for each in dict.fromkeys(ids) if each in left] == list(left)
        whole = [*messages[: at + 1], *map(result, dict.fromkeys(ids))]
        assert salvage(whole) == whole
        assert unanswered(whole, at) == ()
