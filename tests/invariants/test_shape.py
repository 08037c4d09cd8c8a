"""SHAPE, rule by rule."""

import pytest

from harness.core.events import ReplyEnded
from harness.core.messages import Image, Message, Text, Thinking, tool_result, user
from harness.core.messages import assistant as reply
from harness.invariants.shape import Shape
from tests.invariants.traces import ASK, found, replied, sent, started

GO = user("Go.")
CALL = reply("", ASK)
RESULT = tool_result("c1", "ok")
SYSTEM = Message("system", (Text("Be brief."),))
SIGNED = Thinking("Hm.", "c2ln")
THOUGHT = Message("assistant", (SIGNED, ASK))


def gave(message: Message) -> ReplyEnded:
    return ReplyEnded("1.1", "complete", message)


def test_a_request_that_any_provider_takes_is_fine() -> None:
    events = [
        started(),
        sent(SYSTEM, GO),
        gave(CALL),
        sent(CALL, RESULT, kept=2),
        gave(reply("Gone.")),
        started(2, "More?"),
        sent(reply("Gone."), user("More?"), kept=4),
    ]
    assert found(Shape, *events) == []


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ((SYSTEM,), "there is no message of a user"),
        ((reply("Hello."), GO), "the first message is the assistant's, not a user's"),
        ((SYSTEM, RESULT, GO), "the first message is the tool's"),
    ],
)
def test_a_user_speaks_first(messages: tuple[Message, ...], says: str) -> None:
    [violation] = found(Shape, started(text=None), gave(reply("Hello.")), sent(*messages))
    assert says in violation.message


def test_a_turn_that_resumes_nothing_may_begin_the_conversation() -> None:
    cut = [
        started(),
        started(2, None),
        sent(SYSTEM, reply="2.1"),
        replied("complete", ASK, reply="2.1"),
    ]
    go_on = [started(3, "Go."), sent(CALL, RESULT, GO, reply="3.1", kept=1)]
    assert found(Shape, *cut, *go_on) == []
    lost = [started(3, "Go."), sent(RESULT, GO, reply="3.1", kept=1)]
    assert len(found(Shape, *cut, *lost)) == 1
    aside = [started(3, "Go."), sent(CALL, RESULT, GO, reply="x", conversation="summary")]
    assert len(found(Shape, *cut, *aside)) == 1


def test_a_request_that_has_lost_the_users_words_is_for_another_to_judge() -> None:
    assert found(Shape, started(), sent(GO), gave(CALL), sent(CALL, RESULT)) == []
    assert len(found(Shape, started(), sent(CALL, RESULT, conversation="summary"))) == 1


def test_the_first_message_is_judged_again_only_where_it_is_another() -> None:
    events = [started(text=None), sent(RESULT, GO), sent(RESULT, kept=2), sent(CALL, RESULT, GO)]
    says = [violation.message for violation in found(Shape, *events)]
    assert [message.split(": ")[1] for message in says] == [
        "the first message is the tool's, not a user's",
        "the first message is the assistant's, not a user's",
    ]


@pytest.mark.parametrize("empty", [reply(""), Message("assistant", (Text(""), Text("")))])
def test_a_reply_that_says_nothing_is_found_once(empty: Message) -> None:
    events = [started(), sent(GO, empty, GO), sent(empty, GO, kept=1)]
    [violation] = found(Shape, *events)
    assert violation.message == "request 1.1: messages[1]: a message of the assistant says nothing"


def test_a_user_may_send_an_empty_text_or_a_picture_but_not_nothing() -> None:
    for message in (user(""), Message("user", (Image(),))):
        assert found(Shape, started(text=""), sent(message)) == []
    [violation] = found(Shape, started(text=""), sent(Message("user")))
    assert "a message of the user says nothing" in violation.message


def test_a_message_of_the_loop_beside_one_of_its_role_is_a_soft_finding() -> None:
    note = user("[a summary]")
    [violation] = found(Shape, started(), sent(note, GO))
    assert violation.severity == "soft"
    assert "messages[1]: a second message of the user in a row" in violation.message
    answers = [sent(GO), replied(), sent(reply("[a summary]"), reply("Gone."), GO, kept=1)]
    assert [v.severity for v in found(Shape, started(), *answers)] == ["soft"]
    open_still = [sent(GO), sent(reply("Gone."), reply("Gone."), GO, kept=1, reply="1.2")]
    assert found(Shape, started(), *open_still) == []


def test_a_user_who_speaks_twice_is_no_fault_of_the_loop() -> None:
    around = user("<hint>now</hint> Go.")
    events = [started(), sent(around), started(2, "Well?"), sent(user("Well?"), kept=1)]
    assert found(Shape, *events) == []


def test_signed_reasoning_comes_first_in_its_message() -> None:
    late = Message("assistant", (Text("So."), SIGNED, ASK))
    [violation] = found(Shape, started(), sent(GO), gave(THOUGHT), sent(late, RESULT, kept=1))
    assert "signed reasoning does not come first" in violation.message
