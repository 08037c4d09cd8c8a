"""CANCEL and QUIESCE, rule by rule."""

import pytest

from harness.core.events import (
    AnyEvent,
    GeneratorAbandoned,
    RunStopped,
    TaskLeaked,
    ToolEffect,
    ToolStarted,
)
from harness.core.messages import ToolCall
from harness.core.outcome import CANCELLED, COMPLETED
from harness.core.trace import Entry, Trace
from harness.invariants.cancellation import Cancel, Quiesce
from harness.invariants.judge import judge
from tests.invariants.traces import MS, cancelled, ended, found, replied, sent, started

START = ToolStarted("c1", "pay", {})
EFFECT = ToolEffect("c1", "pay")


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (START, "pay started 8ms after the cancel"),
        (sent(reply="1.2"), "request 1.2 was sent 8ms after the cancel"),
        (RunStopped("cancel_deadline", "busy"), "had not ended 8ms after the cancel"),
    ],
)
def test_nothing_begins_after_a_cancel(event: AnyEvent, says: str) -> None:
    [violation] = found(Cancel, started(), *cancelled(), (10, event))
    assert says in violation.message


def test_what_began_before_the_cancel_was_delivered_is_fine() -> None:
    requested, delivered = cancelled()
    assert found(Cancel, started(), requested, START, delivered, ended(CANCELLED)) == []


def test_the_next_turn_may_begin_what_it_likes() -> None:
    events = [started(), *cancelled(), ended(CANCELLED), started(2), sent(reply="2.1"), START]
    assert found(Cancel, *events) == []


def test_a_cancel_that_reaches_the_agent_too_late_is_none_of_the_next_turn() -> None:
    requested, delivered = cancelled()
    events = [started(), requested, ended(COMPLETED), delivered, started(2), delivered, START]
    assert found(Cancel, *events) == []


def test_cancel_is_not_judged_without_a_cancel() -> None:
    verdict = judge(Trace([Entry(0, "1", started()), Entry(0, "1", ended(COMPLETED))]), [Cancel])
    assert verdict.not_judged == ("CANCEL",)


@pytest.mark.parametrize("event", [START, EFFECT, sent(reply="1.2")])
def test_nothing_happens_after_the_end(event: AnyEvent) -> None:
    [violation] = found(Quiesce, started(), ended(COMPLETED), event)
    assert "after turn 1 had ended" in violation.message


@pytest.mark.parametrize("event", [START, EFFECT])
def test_what_a_turn_asked_for_is_late_in_the_next_one(event: AnyEvent) -> None:
    asked = replied("complete", ToolCall("c1", "pay", {}))
    [violation] = found(Quiesce, started(), sent(), asked, ended(CANCELLED), started(2), event)
    assert (violation.turn, violation.entry) == (1, 5)
    assert found(Quiesce, started(), sent(), asked, started(2), sent(reply="2.1")) == []


def test_a_stream_left_open_is_found() -> None:
    [violation] = found(Quiesce, started(), sent(), replied("abandoned"), ended(COMPLETED))
    assert (violation.message, violation.turn) == ("the stream of reply 1.1 was left open", 1)


def test_a_task_left_alive_is_found() -> None:
    leaked = TaskLeaked(1, "1.2", "agent.py:3 in pump", "agent")
    [violation] = found(Quiesce, started(), ended(COMPLETED), leaked)
    assert violation.message == "task 1.2 is still alive: agent.py:3 in pump"


def test_a_tool_that_will_not_stop_is_not_the_loops_fault() -> None:
    leaked = TaskLeaked(1, "1", "a tool", "tool")
    assert found(Quiesce, started(), *cancelled(), ended(CANCELLED), leaked, EFFECT) == []


def test_a_tool_that_does_not_stop_and_is_done_at_once_is_its_own_fault_too() -> None:
    told = ToolEffect("c1", "pay", told=True)
    assert found(Quiesce, started(), *cancelled(), ended(CANCELLED), told) == []


def test_what_a_thread_begins_after_a_stubborn_tool_is_not_the_tools_fault() -> None:
    entries = [
        Entry(0, "1", started()),
        Entry(0, "1", ended(CANCELLED)),
        Entry(0, "", TaskLeaked(1, "1.1", "agent.py:3 in work", "tool", "agent.py:9 in turn")),
        Entry(MS, "1.1", ToolEffect("c1", "pay", told=True)),
        Entry(MS, "1.1", ToolStarted("c2", "mail", {})),
    ]
    [violation] = judge(Trace(entries), [Quiesce]).violations
    assert violation.message == "mail started after turn 1 had ended"


def test_a_stubborn_tool_excuses_nobody_else() -> None:
    entries = [
        Entry(0, "1", started()),
        Entry(0, "1", ended(COMPLETED)),
        Entry(0, "1", TaskLeaked(1, "1.2", "a tool", "tool")),
        Entry(MS, "1.3", EFFECT),
    ]
    assert len(judge(Trace(entries), [Quiesce]).violations) == 1


def test_an_abandoned_generator_is_a_soft_finding() -> None:
    verdict = judge(
        Trace([Entry(0, "1", ended(COMPLETED)), Entry(0, "", GeneratorAbandoned("stream"))]),
        [Quiesce],
    )
    assert [v.severity for v in verdict.violations] == ["soft"]
    assert verdict.status == "PASS"
