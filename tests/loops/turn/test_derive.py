from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.core.messages import Image, Message, Text, ToolCall, tool_result, user
from harness.core.outcome import CANCELLED
from harness.core.pairing import breaches
from harness.core.rows import (
    AssistantRow,
    Row,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)
from harness.loops.turn.config import TEXTS, Texts
from harness.loops.turn.derive import derive
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.policy import REFERENCE, SAFE, Policy
from harness.loops.turn.tokens import message_tokens
from harness.loops.turn.trim import Ledger

ids = st.sampled_from(["a", "b", "c"])
words = st.sampled_from(["", "x", "some words"])
parents = st.sampled_from([None, None, "a"])


def call_row(call_id: str, parent: str | None) -> Row:
    return (
        ToolCallRow(call_id, "t", {"n": 1}, parent_id=parent)
        if parent
        else ToolCallRow(call_id, "t", {})
    )


def result_row(call_id: str, error: str | None, parent: str | None) -> Row:
    if parent:
        return ToolResultRow(call_id, 1, error, parent_id=parent)
    return ToolResultRow(call_id, 1, error)


rows = st.lists(
    st.one_of(
        st.builds(UserRow, words),
        st.builds(AssistantRow, words),
        st.builds(ThinkingRow, words),
        st.builds(call_row, ids, parents),
        st.builds(result_row, ids, st.sampled_from([None, None, "", "boom"]), parents),
        st.just(TurnStartRow("turn-0")),
        st.just(TurnEndRow("turn-0", CANCELLED)),
    ),
    max_size=25,
)
policies = st.sampled_from([SAFE, REFERENCE])


@given(rows, policies)
def test_a_growing_log_says_what_deriving_afresh_says(written: list[Row], policy: Policy) -> None:
    log = MemoryLog(policy)
    for count, row in enumerate(written, 1):
        log.append(row)
        fresh = derive(written[:count], policy)
        assert log.derive_messages() == fresh
        ledger = Ledger()
        ledger.extend(fresh)
        for window in (0, 40, 10_000):
            limits = (3, window, 0.8, 2, TEXTS.trim_marker)
            assert log.ledger(message_tokens).cut(*limits) == ledger.cut(*limits)


@given(rows)
def test_a_safe_history_is_always_valid(written: list[Row]) -> None:
    messages = derive(written, SAFE)
    assert breaches(messages) == ()
    assert all(m.content for m in messages)


def test_text_and_calls_of_one_reply_are_one_message() -> None:
    written = [UserRow("hi"), AssistantRow("let me see"), ToolCallRow("a", "t", {"n": 1})]
    assert derive([*written, ToolResultRow("a", 2)], SAFE) == (
        user("hi"),
        Message("assistant", (Text("let me see"), ToolCall("a", "t", {"n": 1}))),
        tool_result("a", "2"),
    )
    assert [len(m.content) for m in derive(written, REFERENCE)] == [1, 1, 1, 1]


def test_an_answer_and_the_calls_of_the_next_turn_are_not_one_message() -> None:
    written: list[Row] = [
        AssistantRow("done"),
        TurnEndRow("turn-0"),
        TurnStartRow("turn-1"),
        ToolCallRow("a", "t", {}),
    ]
    assert [m.role for m in derive(written, SAFE)] == ["assistant", "assistant", "tool"]


def test_a_group_right_after_a_group_is_balanced_only_when_safe() -> None:
    written: list[Row] = [
        ToolCallRow("a", "t", {}),
        ToolResultRow("a", 1),
        ToolCallRow("b", "t", {}),
        TurnEndRow("turn-0"),
    ]
    assert [m.tool_call_id for m in derive(written, SAFE)] == [None, "a", None, "b"]
    assert [m.tool_call_id for m in derive(written, REFERENCE)] == [None, "a", None]


def test_results_belong_to_calls_one_by_one() -> None:
    written: list[Row] = [
        ToolCallRow("a", "t", {}),
        ToolCallRow("a", "t", {}),
        ToolResultRow("a", 1),
        ToolResultRow("gone", 1),
    ]
    texts = Texts(derive_unanswered="nothing")
    assert derive(written, SAFE, texts)[1:] == (
        tool_result("a", "1"),
        tool_result("a", "nothing", is_error=True),
    )
    assert [m.tool_call_id for m in derive(written, REFERENCE)] == [None, "a", "gone"]


def test_an_error_without_a_text_still_shows_when_safe() -> None:
    written: list[Row] = [ToolCallRow("a", "t", {}), ToolResultRow("a", 1, "")]
    assert derive(written, SAFE)[1] == tool_result("a", "Error: ", is_error=True)
    assert derive(written, REFERENCE)[1] == tool_result("a", "1", is_error=True)


def test_arguments_that_are_not_json_come_back_as_they_were_written() -> None:
    written: list[Row] = [ToolCallRow("a", "t", None, raw='{"n": ')]
    assert derive(written)[0].calls == [ToolCall("a", "t", None, '{"n": ')]


def test_pictures_follow_the_text() -> None:
    picture = Image("id", "image/png", 3, 4)
    assert derive([UserRow("see", (picture,))]) == (Message("user", (Text("see"), picture)),)


def test_ids_of_turns_are_never_given_twice() -> None:
    log = MemoryLog(turns=2)
    first = log.next_turn_id()
    log.append(UserRow("hi"))
    log.clear()
    assert (first, log.next_turn_id()) == ("turn-2", "turn-3")
    assert (log.rows(), log.derive_messages()) == ((), ())
    assert len(log.ledger(message_tokens)) == 0
