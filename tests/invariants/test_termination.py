"""ONE-TERMINAL and TERMINAL-TRUTH, rule by rule."""

import pytest
from msgspec.structs import replace

from harness.core.budget import Budget
from harness.core.events import (
    LogRow,
    LoopEvent,
    RequestHead,
    RequestSent,
    RunStopped,
    ToolEnded,
)
from harness.core.messages import ToolCall, ToolSchema
from harness.core.outcome import (
    CANCELLED,
    COMPLETED,
    INTERRUPTED,
    STEP_LIMIT,
    Error,
    Outcome,
)
from harness.core.rows import AssistantRow, TurnEndRow, TurnStartRow
from harness.invariants.invariant import Facts
from harness.invariants.termination import OneTerminal, TerminalTruth
from tests.invariants.traces import ASK, cancelled, ended, found, replied, sent, started

BROKEN = Error("stream", "lost")


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("torn", "its last reply was torn"),
        ("failed", "its last reply was failed"),
        ("closed", "its last reply was closed"),
        ("refused", "its last reply was refused"),
    ],
)
def test_a_broken_last_reply_is_never_completed(end: str, says: str) -> None:
    [violation] = found(TerminalTruth, started(), sent(), replied(end), ended(COMPLETED))
    assert says in violation.message
    assert (violation.turn, violation.entry) == (1, 3)


def test_a_reply_that_is_still_coming_is_never_completed() -> None:
    [violation] = found(TerminalTruth, started(), sent(), ended(COMPLETED))
    assert "still coming" in violation.message


def test_a_reply_that_asks_for_tools_is_never_the_last_of_a_completed_turn() -> None:
    [violation] = found(
        TerminalTruth, started(), sent(), replied("complete", ASK), ended(COMPLETED)
    )
    assert "asks for c1" in violation.message


def test_an_earlier_broken_reply_does_not_matter_once_a_later_one_is_whole() -> None:
    events = [started(), sent(), replied("torn"), sent(), replied(), ended(COMPLETED)]
    assert found(TerminalTruth, *events) == []


def test_a_turn_without_any_request_may_be_completed() -> None:
    assert found(TerminalTruth, started(), ended(COMPLETED)) == []


def test_cancelled_means_that_somebody_cancelled() -> None:
    [violation] = found(TerminalTruth, started(), sent(), ended(CANCELLED))
    assert "nobody cancelled" in violation.message
    assert found(TerminalTruth, started(), *cancelled(), ended(CANCELLED)) == []


def test_a_turn_cancelled_after_its_whole_answer_may_be_completed() -> None:
    assert found(TerminalTruth, started(), sent(), replied(), *cancelled(), ended(COMPLETED)) == []


def test_a_turn_cancelled_before_its_answer_is_not_completed() -> None:
    [violation] = found(TerminalTruth, started(), sent(), *cancelled(), replied(), ended(COMPLETED))
    assert "cancelled before the reply was whole" in violation.message


@pytest.mark.parametrize(("end", "outcome"), [("complete", COMPLETED), ("failed", BROKEN)])
def test_a_stop_that_was_held_up_counts_from_when_the_agent_knew(
    end: str, outcome: Outcome
) -> None:
    asked, told = cancelled()
    events = [started(), sent(), asked, replied(end), told, ended(outcome)]
    assert found(TerminalTruth, *events) == []


@pytest.mark.parametrize("outcome", [STEP_LIMIT, INTERRUPTED, BROKEN])
def test_a_cancelled_turn_says_so(outcome: Outcome) -> None:
    events = [started(), sent(), replied("complete", ASK), *cancelled(), ended(outcome)]
    [violation] = found(TerminalTruth, *events)
    assert "was cancelled but ended as" in violation.message


@pytest.mark.parametrize(("end", "outcome"), [("torn", INTERRUPTED), ("failed", BROKEN)])
def test_a_turn_that_had_failed_before_its_cancel_may_say_that(end: str, outcome: Outcome) -> None:
    assert found(TerminalTruth, started(), sent(), replied(end), *cancelled(), ended(outcome)) == []


def test_a_turn_whose_end_was_written_is_not_cancelled_any_more() -> None:
    before = [started(), sent(), replied("complete", ASK)]
    end = LogRow(TurnEndRow("turn-0", STEP_LIMIT))
    assert found(TerminalTruth, *before, end, *cancelled(), ended(STEP_LIMIT)) == []
    [violation] = found(TerminalTruth, *before, *cancelled(), end, ended(STEP_LIMIT))
    assert "was cancelled but ended as step_limit" in violation.message


def test_a_turn_at_its_limit_with_all_done_may_have_ended_before_it_knew() -> None:
    before = [started(), sent(), replied("complete", ASK)]
    did = ToolEnded(ASK.id, ASK.name, "returned")
    assert found(TerminalTruth, *before, did, *cancelled(), ended(STEP_LIMIT)) == []
    late = LoopEvent("saved", None)
    [violation] = found(TerminalTruth, *before, did, *cancelled(), late, ended(STEP_LIMIT))
    assert "was cancelled but ended as step_limit" in violation.message
    [violation] = found(TerminalTruth, *before, *cancelled(), did, ended(STEP_LIMIT))
    assert "was cancelled but ended as step_limit" in violation.message


def test_a_cancel_of_an_earlier_turn_is_forgotten() -> None:
    first = [started(), *cancelled(), ended(CANCELLED)]
    second = [started(2), sent(reply="2.1"), ended(CANCELLED, 2)]
    [violation] = found(TerminalTruth, *first, *second)
    assert violation.turn == 2


def test_a_turn_fails_only_where_something_failed() -> None:
    crashed = ended(Error("KeyError", "t"))
    [violation] = found(TerminalTruth, started(), sent(), replied("complete", ASK), crashed)
    assert "though nothing had failed" in violation.message


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("c1", "magic", {}),
        ToolCall("c1", "t", None, "{"),
        ToolCall("c1", "t", [1]),
        ToolCall("c1", "t", None),
    ],
)
def test_a_turn_that_breaks_over_what_cannot_be_run_is_not_untrue(call: ToolCall) -> None:
    events = [started(), sent(), replied("complete", call), ended(Error("KeyError", "t"))]
    assert found(TerminalTruth, *events, facts=Facts(tools=frozenset(["t"]))) == []


def offers(tool: str, head: bool = True, **place: str) -> RequestSent:
    request = replace(sent(**place), head=RequestHead("m", "", (ToolSchema(tool),)))
    return request if head else replace(request, head=None)


def test_a_tool_that_the_agent_itself_offers_can_be_run() -> None:
    facts = Facts(tools=frozenset(["t"]))
    own, other = replied("complete", ToolCall("c1", "own", {})), offers("other", reply="note.1")
    for events in (
        [offers("own"), own],
        [offers("own"), replied(), offers("", head=False, reply="1.2"), replace(own, reply="1.2")],
        [offers("own"), replace(other, conversation="note"), own],
    ):
        [violation] = found(TerminalTruth, started(), *events, ended(BROKEN), facts=facts)
        assert "nothing had failed" in violation.message
        [violation] = found(
            TerminalTruth, started(), *events, *cancelled(), ended(BROKEN), facts=facts
        )
        assert violation.message == "the turn was cancelled but ended as error"
    for events in ([other, own], [offers("own", reply="0.9"), offers("other"), own]):
        assert found(TerminalTruth, started(), *events, ended(BROKEN), facts=facts) == []


def test_a_turn_at_its_limit_has_asked_for_something_unless_it_may_not() -> None:
    asked = [started(), sent(), replied("complete", ASK), ended(STEP_LIMIT)]
    assert found(TerminalTruth, *asked) == []
    done = [started(), sent(), replied(), ended(STEP_LIMIT)]
    [violation] = found(TerminalTruth, *done)
    assert "though the model had finished" in violation.message
    [violation] = found(TerminalTruth, started(), ended(STEP_LIMIT))
    assert "though it sent no request" in violation.message
    none = Facts(budget=Budget(steps=0))
    assert found(TerminalTruth, started(), ended(STEP_LIMIT), facts=none) == []


def test_a_turn_that_never_ends_has_no_terminal() -> None:
    [violation] = found(OneTerminal, started(), RunStopped("deadlock", "1 waits"))
    assert "never ended: deadlock" in violation.message


def test_a_run_that_stops_between_turns_has_its_terminals() -> None:
    stopped = RunStopped("time_limit", "too long")
    assert found(OneTerminal, started(), ended(COMPLETED), stopped) == []


START, END = LogRow(TurnStartRow("turn-0")), LogRow(TurnEndRow("turn-0", COMPLETED))


def test_a_turn_with_one_end_in_log_and_events_is_clean() -> None:
    told = LoopEvent("turn_end", {"outcome": "completed"})
    assert found(OneTerminal, started(), START, END, told, ended(COMPLETED)) == []


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([START], "without a turn_end row"),
        ([START, END, END], "a second turn_end was logged"),
        ([START, END, LogRow(AssistantRow("late"))], "a row was logged after"),
        ([START, LogRow(TurnEndRow("turn-0", CANCELLED))], "the log says cancelled"),
        ([LoopEvent("turn_end", {"outcome": "cancelled"})], "was told cancelled"),
        ([LoopEvent("turn_end", {"outcome": {"error": {}}})], "was told error"),
        ([LoopEvent("turn_end", {"outcome": "completed"})] * 2, "told twice"),
    ],
)
def test_terminals_that_disagree_are_found(events: list[LogRow | LoopEvent], says: str) -> None:
    [violation] = found(OneTerminal, started(), *events, ended(COMPLETED))
    assert says in violation.message
