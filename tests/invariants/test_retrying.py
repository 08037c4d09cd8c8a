"""RETRY-AFTER, RETRY-BOUND and RETRY-VISIBLE, rule by rule."""

import pytest

from harness.core.events import FaultInjected, LoopEvent, ReplyEnded
from harness.invariants.retrying import ATTEMPTS_MOST, RetryAfter, RetryBound, RetryVisible
from tests.invariants.traces import MS, found, judged, sent, started

LATER = FaultInjected("http", "1.1", 429, retry_after=50 * MS)
BROKE = FaultInjected("stream_fails", "1.1")
HALF = LoopEvent("text", {"delta": "Half an ans"})


@pytest.mark.parametrize(("at", "early"), [(3, True), (51, True), (52, False), (99, False)])
def test_nobody_asks_again_before_he_may(at: int, early: bool) -> None:
    again = (at, sent(reply="1.1~2"))
    violations = found(RetryAfter, started(), sent(), LATER, again)
    assert bool(violations) is early
    if at == 3:
        assert violations[0].message == (
            "reply 1.1 was asked for again after 1ms; the provider had said to wait 50ms"
        )


def test_to_give_up_or_to_ask_for_something_else_is_fine() -> None:
    assert found(RetryAfter, started(), sent(), LATER) == []
    assert found(RetryAfter, started(), sent(), LATER, sent(reply="title.1")) == []
    assert found(RetryAfter, started(), sent(), LATER, (60, sent(reply="1.1~2"))) == []


def test_the_user_may_ask_again_at_any_time() -> None:
    assert found(RetryAfter, started(), sent(), LATER, started(2), sent(reply="1.1~2")) == []


def test_where_nothing_was_said_of_a_time_nothing_is_judged() -> None:
    assert not judged(RetryAfter, started(), sent(), BROKE, sent(reply="1.1~2"))


def test_a_reply_that_always_fails_is_given_up() -> None:
    failing = [
        event
        for number in range(1, ATTEMPTS_MOST + 2)
        for event in (sent(reply=f"1.1~{number}"), FaultInjected("http", f"1.1~{number}", 503))
    ]
    assert found(RetryBound, started(), *failing[:-2]) == []
    [violation] = found(RetryBound, started(), *failing, *failing)
    assert violation.message == "reply 1.1 failed 11 times, and was asked for again"
    two = [*failing[:12], started(2, "Again?"), *failing[:12]]
    assert found(RetryBound, started(), *two) == []


def test_what_was_shown_is_taken_back_before_it_is_asked_for_again() -> None:
    broken = [started(), sent(), HALF, BROKE]
    [violation] = found(RetryVisible, *broken, sent(reply="1.1~2"))
    assert "while 'Half an ans' of it is shown" in violation.message
    told = [LoopEvent("retry", None), sent(reply="1.1~2"), LoopEvent("text", {"delta": "Whole"})]
    assert found(RetryVisible, *broken, *told) == []


def test_a_reply_that_came_to_its_limit_is_taken_back_too() -> None:
    cut = ReplyEnded("1.1", "torn", error="the model was cut off: length")
    again = sent(reply="1.1~2")
    [violation] = found(RetryVisible, started(), sent(), HALF, cut, again)
    assert violation.message.startswith("reply 1.1 was asked for again while 'Half an ans'")
    assert found(RetryVisible, started(), sent(), HALF, cut, LoopEvent("retry", None), again) == []
    whole = ReplyEnded("1.1", "complete")
    assert not judged(RetryVisible, started(), sent(), HALF, whole, again)
    assert not judged(RetryVisible, started(), sent(), cut, again)


def test_where_nothing_was_shown_nothing_is_taken_back() -> None:
    assert found(RetryVisible, started(), sent(), BROKE, sent(reply="1.1~2"), HALF) == []
    assert not judged(RetryVisible, started(), sent(), BROKE, sent(reply="1.1~2"))
    whole = [started(), sent(), HALF, LoopEvent("done", {}), sent(reply="1.2", kept=1)]
    assert found(RetryVisible, *whole) == []


def test_another_conversation_is_not_what_is_shown() -> None:
    aside = FaultInjected("http", "title.1", 503)
    retried = sent(reply="title.1~2", conversation="title")
    assert found(RetryVisible, started(), sent(), HALF, aside, retried) == []
