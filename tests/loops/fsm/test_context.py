"""Laws of a conversation that broke off, and what is put into one and kept of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.core.messages import Message as CoreMessage
from harness.core.messages import ToolCall as CoreCall
from harness.core.messages import assistant, tool_result
from harness.core.messages import user as core_user
from harness.core.pairing import breaches
from harness.loops.fsm.context import (
    compacted,
    conversation,
    inject,
    kept_prompts,
    repair,
    salvage,
)
from harness.loops.fsm.messages import Message, ToolCall, user
from harness.loops.fsm.prompts import TEXTS
from tests.loops.fsm.world import NO_RESULT, call, result, says, shape

IDS = st.sampled_from(["1", "2", "3"])
MESSAGES = st.lists(
    st.one_of(
        st.just(user("go")),
        st.just(says("well")),
        st.just(Message("system", "be")),
        st.lists(IDS, min_size=1, max_size=3).map(
            lambda ids: says("", *[ToolCall(each, "look") for each in ids])
        ),
        IDS.map(result),
    ),
    max_size=12,
)


def core(messages: list[Message]) -> list[CoreMessage]:
    """The conversation in the words of `core`, whose pairing rule is every provider's."""
    made = []
    for message in messages:
        if message.role == "tool":
            made.append(tool_result(message.tool_call_id or "", message.text()))
        elif message.tool_calls:
            made.append(
                assistant("", *[CoreCall(each.id, each.name) for each in message.tool_calls])
            )
        else:
            made.append(core_user(message.text()))
    return made


def open_round(messages: list[Message]) -> bool:
    """Whether some round is not answered before something else comes; by hand, round by round."""
    for index, message in enumerate(messages):
        if message.tool_calls:
            rest = messages[index + 1 :]
            answers = []
            for following in rest:
                if following.role != "tool":
                    break
                answers.append(following.tool_call_id)
            if not {each.id for each in message.tool_calls} <= set(answers):
                return True
    return False


@given(MESSAGES)
def test_salvage_leaves_the_longest_start_without_an_open_round(messages: list[Message]) -> None:
    kept = salvage(messages)
    assert kept == messages[: len(kept)]
    assert not open_round(kept)
    if open_round(messages):
        longer = messages[: len(kept) + 1]
        assert longer[-1].tool_calls
        for end in range(len(kept) + 1, len(messages) + 1):
            assert open_round(messages[:end])
    else:
        assert kept == messages


@given(MESSAGES)
def test_repair_leaves_nothing_that_a_provider_refuses(messages: list[Message]) -> None:
    kept = repair(messages, NO_RESULT)
    assert breaches(core(kept)) == ()
    assert [m for m in kept if m.role != "tool"] == [m for m in messages if m.role != "tool"]
    assert repair(kept, NO_RESULT) == kept


@given(MESSAGES)
def test_repair_changes_nothing_of_a_valid_conversation_in_order(messages: list[Message]) -> None:
    kept = repair(messages, NO_RESULT)
    in_order = [each.tool_call_id for each in kept if each.role == "tool"] == [
        each.tool_call_id for each in messages if each.role == "tool"
    ]
    if not breaches(core(messages)) and in_order:
        assert kept == messages


def test_repair_answers_keeps_and_moves() -> None:
    messages = [
        user("a"),
        says("", call("1"), call("2")),
        result("2", "two"),
        user("b"),
        result("1", "late"),
        result("x", "nobody's"),
        says("", call("1"), call("1")),
        result("1", "first"),
        says("c"),
    ]
    assert shape(repair(messages, "none")) == [
        "u:a", "A[1,2]", "t(1)=late", "t(2)=two", "u:b", "A[1,1]", "t(1)=first", "t(1)=none", "a:c",
    ]  # fmt: skip


def test_prompts_go_before_the_users_last_text_or_behind() -> None:
    for last, at in [
        (user("do it"), 1),
        (user("do it", injected=True), 1),
        (says("well"), 2),
        (Message("user", [{"text": "do it"}]), 2),
        (Message("user", "do it", tool_call_id="1"), 2),
    ]:
        messages = [says("hi"), last]
        inject(messages, ["p", "q"])
        assert messages[at : at + 2] == [user("p", injected=True), user("q", injected=True)]
        assert len(messages) == 4
    empty: list[Message] = []
    inject(empty, ["p"])
    assert shape(empty) == ["u:p"]


def test_of_reminders_the_last_unbroken_run_is_kept() -> None:
    approved = TEXTS.plan_approved.replace("%s", "/p")
    reminder = f"{TEXTS.plan_left} "
    messages = [
        user(TEXTS.plan_left), says("x"), user("a"), user(approved), user(reminder), user("b"),
        user(TEXTS.nudge), user(f"{TEXTS.compact_header}old"), Message("user"),
    ]  # fmt: skip
    assert kept_prompts(messages, TEXTS) == ["a", approved, reminder, "b"]
    assert kept_prompts([user(reminder), user(approved)], TEXTS) == [reminder, approved]


def test_a_compacted_conversation_is_a_frame_and_the_users_words() -> None:
    assert shape(compacted("sum", ["a", "b"], TEXTS)) == [
        f"u:{TEXTS.compact_header}sum{TEXTS.compact_separator}".strip(), "u:a", "u:b",
    ]  # fmt: skip
    said = [user("a"), says("", call("1")), result("1"), Message("user"), says("b")]
    assert conversation(said) == "user: a\n\ntool: seen\n\nassistant: b"
