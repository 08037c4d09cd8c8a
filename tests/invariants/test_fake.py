"""FAKE, rule by rule."""

import pytest

from harness.core.events import (
    AnyEvent,
    Delta,
    ReplyEnded,
    RunStopped,
    TaskLeaked,
    ToolEffect,
    ToolEnded,
    ToolStarted,
)
from harness.core.messages import Message, Text, Thinking, assistant
from harness.core.outcome import COMPLETED
from harness.invariants.fake import Fake
from tests.invariants.traces import ASK, ended, found, judged, replied, sent, started

START, EFFECT = ToolStarted("c1", "t", {}), ToolEffect("c1", "t")
END = ToolEnded("c1", "t", "returned")
SAID = Delta("1.1", "text", "Gone.")
ASKED = [started(), sent(), replied("complete", ASK)]


def whole(*blocks: Text | Thinking) -> ReplyEnded:
    return ReplyEnded("1.1", "complete", Message("assistant", blocks))


def says(*events: AnyEvent) -> list[str]:
    return [violation.message for violation in found(Fake, *events)]


def test_a_request_has_one_reply() -> None:
    assert says(started(), sent(), SAID, replied()) == []
    assert says(started(), sent(), SAID, replied(), replied()) == [
        "reply 1.1 ended, and was not being given"
    ]
    assert says(started(), replied("torn")) == ["reply 1.1 ended, and was not being given"]
    assert says(started(), sent(), ended(COMPLETED)) == ["reply 1.1 never ended"]


@pytest.mark.parametrize(
    "excuse", [RunStopped("deadlock", ""), TaskLeaked(1, "1.1", "fake.py:1", "agent")]
)
def test_a_reply_may_be_open_where_the_run_was_cut_short(excuse: AnyEvent) -> None:
    assert says(started(), sent(), START, excuse) == []


def test_a_complete_reply_has_a_message() -> None:
    assert says(started(), sent(), ReplyEnded("1.1", "complete")) == [
        "reply 1.1 is complete without a message"
    ]


def test_deltas_make_up_the_message() -> None:
    deltas = [Delta("1.1", "thinking", "Hm"), Delta("1.1", "text", "Go"), Delta("1.1", "text", "!")]
    right = whole(Thinking("Hm"), Text("Go!"))
    assert says(started(), sent(), *deltas, right) == []
    assert says(started(), sent(), *deltas[:2], right) == [
        "the deltas of reply 1.1 do not make up its text"
    ]
    assert says(started(), sent(), *deltas[1:], right) == [
        "the deltas of reply 1.1 do not make up its thinking"
    ]
    late = Delta("1.1", "thinking", ", or not")
    assert says(started(), sent(), *deltas, late, right) == []


def test_half_a_reply_needs_no_more_than_its_deltas() -> None:
    assert says(started(), sent(), SAID, replied("torn")) == []


def test_deltas_come_within_their_reply() -> None:
    assert says(started(), SAID) == ["a delta of reply 1.1, which is not being given"]
    assert says(started(), sent(), SAID, replied(), SAID) == [
        "a delta of reply 1.1, which is not being given"
    ]


def gives(*replies: str) -> list[str]:
    events = [
        event for name in replies for event in (sent(reply=name), replied("torn", reply=name))
    ]
    return says(started(), *events)


def test_replies_come_in_the_order_of_the_script() -> None:
    assert gives("1.1", "1.2", "2.1", "title.1", "1.2~2", "1.2~3", "title.2") == []
    assert gives("1.2") == ["reply 1.2 is given, and 1.1 was passed over"]
    assert gives("1.1", "1.3") == ["reply 1.3 is given, and 1.2 was passed over"]
    assert gives("1.0") == ["reply 1.0 is given, and 1.1 was passed over"]
    assert gives("1.1", "1.1") == [
        "reply 1.1 is given a second time under the same name",
        "reply 1.1 is given as number 2 of its place",
    ]
    assert gives("1.1", "1.1~3") == ["reply 1.1~3 is given as number 2 of its place"]


@pytest.mark.parametrize("name", ["odd", "a~b.1", "a.b"])
def test_names_without_a_place_are_no_matter(name: str) -> None:
    assert gives(name) == []


def test_a_tool_that_runs_was_asked_for() -> None:
    assert says(*ASKED, START, EFFECT, END) == []
    assert says(started(), sent(), START, END, replied("complete", ASK)) == []
    assert says(started(), sent(), SAID, replied(), START, END) == [
        "t ran for the call c1, never made"
    ]


def test_a_tool_takes_effect_at_most_once_within_its_run() -> None:
    outside = "t took effect outside its run, or twice in it"
    assert says(*ASKED, EFFECT, START, END) == [outside]
    assert says(*ASKED, START, END, EFFECT) == [outside]
    assert says(*ASKED, START, EFFECT, EFFECT, END) == [outside]
    assert says(*ASKED, START, END) == []
    assert says(*ASKED, START, EFFECT, END, START, EFFECT, END) == []
    assert says(*ASKED, START, START, EFFECT, EFFECT, END, END) == []


def test_a_tool_ends_once() -> None:
    assert says(*ASKED, START, END, END) == ["t ended, and was not running"]


def test_it_is_judged_where_a_fake_was_used() -> None:
    assert not judged(Fake, started(), ended(COMPLETED))
    assert judged(Fake, started(), sent())


def test_its_findings_are_of_the_whole_run() -> None:
    [violation] = found(Fake, started(), sent(), ReplyEnded("1.1", "complete", assistant("x")))
    assert violation.turn is None
