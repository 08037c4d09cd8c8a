"""Scenarios that are generated for a level are played clean there, on the loops that they name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from harness.core.messages import Usage
from harness.fakes.script import (
    DoneTwice,
    Hang,
    LateThinking,
    Reply,
    ScriptedCall,
    StreamFails,
    Torn,
)
from harness.fakes.wire_faults import BadJson, CutLine
from harness.runner.agents import find_loop, loop_subject
from harness.runner.levels import level_of
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.testing.generated import GeneratedFailure, check_generated, telling
from harness.testing.strategies_levels import carried, spoken
from harness.wire import CODECS
from tests.subjects.hand_loop import HandLoop
from tests.testing.pool import pool
from tests.testing.test_generated import CUT
from tests.testing.test_generated_scenarios import reread

HTTP = [f"http:{codec.name}" for codec in CODECS]
LEVELS = [
    f"{name}:{codec.name}{way}"
    for name in ("http", "server")
    for codec in CODECS
    for way in ("", ":whole")
]
LOOPS = ("turn", "fsm")


def play(loop: str, level: str, size: int) -> None:
    for scenario in pool(loop, size=size, level=level):
        check_generated(scenario, loop_subject(find_loop(loop), scenario), level=level)


@pytest.mark.parametrize("level", [*HTTP, "server:anthropic", "http:gemini:whole"])
@pytest.mark.parametrize("loop", LOOPS)
def test_they_are_played_clean(loop: str, level: str) -> None:
    play(loop, level, 4)


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("loop", LOOPS)
def test_many_of_them_are_played_clean(loop: str, level: str) -> None:
    play(loop, level, 150)


@pytest.mark.parametrize("level", HTTP)
def test_those_for_both_loops_are_played_clean_on_both(level: str) -> None:
    for scenario in pool("turn", "fsm", size=2, level=level):
        assert reread(scenario).turns
        for loop in LOOPS:
            check_generated(scenario, loop_subject(find_loop(loop), scenario), level=level)


def test_what_fails_at_a_level_is_told_with_the_line_that_runs_it_there() -> None:
    with pytest.raises(GeneratedFailure) as failed:
        check_generated(CUT, HandLoop, level="http:anthropic")
    told = str(failed.value)
    assert "ACCEPTED" in told.partition("\n")[0]
    again = "--agent tests.subjects.hand_loop:HandLoop --level http:anthropic"
    assert told.endswith(f"harness run generated.yaml {again}")
    with pytest.raises(GeneratedFailure) as failed, telling(CUT, HandLoop, level="http"):
        raise AssertionError("it is so")
    assert str(failed.value).endswith("--level http:openai_chat")


CUT_AS_IT_HANGS = Scenario(
    "generated",
    loops=("fsm",),
    turns=(Turn("Hi.", (Reply("Hello.", fault=Hang(1), takes=50_000_000),), Cancel("delta")),),
)


@pytest.mark.parametrize("level", LEVELS[::2])
def test_a_cancel_that_comes_with_a_piece_that_says_nothing_ends_the_turn(level: str) -> None:
    subject = loop_subject(find_loop("fsm"), CUT_AS_IT_HANGS)
    check_generated(CUT_AS_IT_HANGS, subject, level=level)


# --- what a level can carry

ANTHROPIC, GEMINI, CHAT, MODEL = map(level_of, ("http:anthropic", "http:gemini", "http", "model"))
ODD = Reply(
    " ",
    think=" ",
    calls=(
        ScriptedCall("a", {"x": 1}, id=""),
        ScriptedCall("b", ["x"]),
        ScriptedCall("c", None, raw="{"),
    ),
)
PLAIN_CALLS = (ScriptedCall("a", {"x": 1}), ScriptedCall("b"), ScriptedCall("c"))


def test_each_protocol_has_what_it_can_carry() -> None:
    assert carried(ODD, MODEL) == carried(ODD, CHAT) == ODD
    assert carried(ODD, GEMINI) == replace(ODD, calls=PLAIN_CALLS)
    assert carried(ODD, ANTHROPIC) == Reply(calls=PLAIN_CALLS)
    assert carried(Reply("\n"), ANTHROPIC) == Reply("Well.")
    assert carried(Reply("Hi", think="hm"), ANTHROPIC) == Reply("Hi", think="hm")
    assert [spoken(text, ANTHROPIC) for text in ("", "Hi")] == ["Well.", "Hi"]
    assert spoken("", GEMINI) == ""


@pytest.mark.parametrize(
    "fault", [DoneTwice(), LateThinking(), StreamFails(2), Hang(2), Torn(2), BadJson(2), CutLine(2)]
)
def test_over_http_nothing_goes_wrong_behind_the_end(fault: object) -> None:
    reply = Reply("Hi", fault=fault)  # type: ignore[arg-type]
    assert carried(reply, MODEL) == reply
    assert carried(reply, CHAT) == Reply("Hi")


def test_what_was_drawn_before_a_count_that_no_reply_has_then_is_not_behind_the_end() -> None:
    reply = Reply(calls=(ScriptedCall("a"),), usage=Usage(1, 1, 2), fault=BadJson(1))
    assert carried(reply, CHAT) == replace(reply, usage=None, fault=None)


@pytest.mark.parametrize("fault", [StreamFails(1), Hang(1), Hang(None)])
def test_what_goes_wrong_before_it_stays_and_then_nothing_is_counted(fault: object) -> None:
    reply = Reply("Hi", usage=Usage(1, 1, 2), fault=fault)  # type: ignore[arg-type]
    assert carried(reply, CHAT) == replace(reply, usage=None)
    whole = replace(reply, fault=None)
    assert carried(whole, CHAT) == whole
    assert carried(whole, CHAT, cut=True) == replace(whole, usage=None)


def test_a_scenario_for_a_level_says_so_in_what_is_said() -> None:
    said = [turn for each in pool("turn", size=30, level="http:anthropic") for turn in each.turns]
    assert all(turn.user is None or turn.user.strip() for turn in said)
    assert any(
        not (turn.user or "x").strip() for each in pool("turn", size=30) for turn in each.turns
    )
