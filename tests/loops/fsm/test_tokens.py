"""Estimates grow with what is sent, and follow what was reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.loops.fsm.messages import Message, ToolCall, user, wire
from harness.loops.fsm.session import Settings
from harness.loops.fsm.tokens import Calibrator, estimate, payload_text, payload_tokens, window_for
from tests.loops.fsm.world import World

BOUNDS = Settings().calibration
TEXTS = st.text(max_size=30)


@given(TEXTS, TEXTS)
def test_a_longer_text_is_no_smaller(text: str, more: str) -> None:
    assert estimate(text) <= estimate(text + more)


@given(st.lists(TEXTS, max_size=4), TEXTS)
def test_the_ratio_grows_with_the_conversation(texts: list[str], more: str) -> None:
    world = World()
    messages = [user(text) for text in texts]
    world.session.update_context(messages, "SYS")
    before = world.session.ratio
    world.session.update_context([*messages, user(more)], "SYS")
    assert before is not None
    assert world.session.ratio is not None
    assert before <= world.session.ratio


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_factor_stays_within_its_bounds_and_is_exact_between(raw: int, reported: int) -> None:
    calibrator = Calibrator()
    calibrator.corrected(raw)
    calibrator.update(reported, BOUNDS)
    assert calibrator.factor == max(0.5, min(3.0, reported / raw))


def test_what_says_nothing_changes_no_factor() -> None:
    calibrator = Calibrator(1.5)
    calibrator.update(10, BOUNDS)
    calibrator.corrected(0)
    calibrator.update(10, BOUNDS)
    calibrator.corrected(10)
    for nothing in (0, -1, None):
        calibrator.update(nothing, BOUNDS)
    assert calibrator.factor == 1.5


def test_what_counts_in_a_request() -> None:
    message = Message(
        "assistant", [{"thinking": "th", "text": "no"}, "s", {"arguments": "ar"}, {"x": 1}, 3]
    )
    calls = Message("assistant", tool_calls=[ToolCall("id", "name", {"a": "ü"})])
    broken = {"content": "c", "reasoning_content": "rc", "tool_calls": [{"function": None}, 3]}
    text = payload_text(
        ["sys", {"text": "part"}, 4], [wire(message), wire(calls), broken], [{"tool": "ü"}]
    )
    assert text.split("\n") == [
        "sys", "part", "th", "s", "ar", "name", '{"a": "ü"}', "c", "rc", '{"tool":"\\u00fc"}',
    ]  # fmt: skip
    assert payload_tokens({"parts": [{"text": "eight ch"}, "no"]}, [], []) == 2
    assert payload_text(7, [], []) == ""
    thoughts = [{"reasoning_content": thought} for thought in ("", 5, None)]
    assert payload_text("s", thoughts, []) == "s\n"


def test_a_window_of_ones_own_comes_first() -> None:
    assert window_for("gpt-5", (("gpt", 7),)) == 7
