"""ROUNDTRIP, rule by rule."""

import pytest

from harness.core.events import AnyEvent, Delta, Received, ReplyEnded
from harness.core.messages import Message, Text, Thinking, ToolCall, tool_result, user
from harness.core.messages import assistant as reply
from harness.invariants.roundtrip import RoundTrip
from tests.invariants.traces import ASK, found, sent, started

GO = user("Go.")
CALL = reply("", ASK)
RESULT = tool_result("c1", "ok")
SIGNED = Thinking("Hm.", "c2ln")
DELTA = Delta("1.2", "thinking", "More.")
THOUGHT = Message("assistant", (SIGNED, ASK))


def gave(message: Message) -> ReplyEnded:
    return ReplyEnded("1.1", "complete", message)


def test_signed_reasoning_comes_back_with_its_calls() -> None:
    asked = [started(), sent(GO), gave(THOUGHT)]
    assert found(RoundTrip, *asked, sent(THOUGHT, RESULT, kept=1)) == []
    [violation] = found(RoundTrip, *asked, sent(CALL, RESULT, kept=1))
    assert "the signed reasoning before the call c1 is missing" in violation.message


def test_signed_reasoning_may_go_once_the_user_has_spoken_again() -> None:
    asked = [started(), sent(GO), gave(THOUGHT), started(2, "Well?")]
    assert found(RoundTrip, *asked, sent(CALL, RESULT, user("Well?"), kept=1)) == []


@pytest.mark.parametrize(
    ("blocks", "says"),
    [
        ((Thinking("Hm!", "c2ln"), ASK), "is not what the model gave"),
        ((Thinking("Hm.", "other"), ASK), "is not what the model gave"),
        ((SIGNED, SIGNED, ASK), "the signed reasoning before the call c1 is missing"),
    ],
)
def test_signed_reasoning_comes_back_as_it_was(
    blocks: tuple[Text | Thinking | ToolCall, ...], says: str
) -> None:
    asked = [started(), sent(GO), gave(THOUGHT)]
    [violation] = found(RoundTrip, *asked, sent(Message("assistant", blocks), RESULT, kept=1))
    assert says in violation.message


def test_reasoning_that_nobody_signed_is_the_loops_to_keep_or_not() -> None:
    unsigned = Message("assistant", (Thinking("Hm."), ASK))
    asked = [started(), sent(GO), gave(unsigned)]
    assert found(RoundTrip, *asked, sent(CALL, RESULT, kept=1)) == []
    assert found(RoundTrip, *asked, sent(unsigned, RESULT, kept=1)) == []


def test_a_reply_that_has_not_ended_may_have_signed_what_is_sent_back() -> None:
    other = Message("assistant", (Thinking("Hm again.", "b3RoZXI="), ToolCall("c2", "t", {})))
    asked = [started(), sent(GO), gave(THOUGHT), sent(THOUGHT, RESULT, kept=1, reply="1.2")]
    assert found(RoundTrip, *asked, sent(other, tool_result("c2", "ok"), kept=3, reply="1.3")) == []


@pytest.mark.parametrize(
    ("cut", "known"),
    [
        ([Received("1.2", "anthropic"), ReplyEnded("1.2", "torn", None)], False),
        ([Received("1.2", "anthropic"), DELTA, ReplyEnded("1.2", "closed", None)], False),
        ([Received("1.2", "anthropic"), ReplyEnded("1.2", "failed", None)], True),
        ([DELTA, ReplyEnded("1.2", "closed", None)], True),
    ],
    ids=["cut off", "left", "failed before", "with the model itself"],
)
def test_over_http_what_a_reply_signed_that_was_cut_may_be_kept(
    cut: list[AnyEvent], known: bool
) -> None:
    asked = [started(), sent(GO), gave(THOUGHT), sent(THOUGHT, RESULT, kept=1, reply="1.2"), *cut]
    kept = Message("assistant", (Thinking("More.", "b3RoZXI="), Text("It")))
    told = found(RoundTrip, *asked, started(2), sent(kept, user("Go on."), kept=3, reply="2.1"))
    assert bool(told) is known


def test_of_two_calls_with_one_id_either_may_be_the_one_with_reasoning() -> None:
    first = [started(), sent(GO), gave(THOUGHT), sent(THOUGHT, RESULT, kept=1), gave(CALL)]
    assert found(RoundTrip, *first, sent(CALL, RESULT, kept=3)) == []
    assert found(RoundTrip, *first, sent(THOUGHT, RESULT, CALL, RESULT, kept=1)) == []
