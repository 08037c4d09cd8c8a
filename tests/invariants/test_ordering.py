"""ORDER, rule by rule."""

import pytest

from harness.core.events import AnyEvent, LogRow, LoopEvent, ToolEnded, ToolStarted
from harness.core.messages import ToolCall, assistant, tool_result, user
from harness.core.outcome import COMPLETED
from harness.core.rows import ToolCallRow, ToolResultRow
from harness.invariants.ordering import Order
from tests.invariants.traces import ASK, ended, found, judged, replied, sent, started

OTHER = ToolCall("c2", "u", {})
TWO = [started(), sent(), replied("complete", ASK, OTHER)]
FIRST, SECOND = tool_result("c1", "1"), tool_result("c2", "2")

START, END = ToolStarted("c1", "t", {}), ToolEnded("c1", "t", "returned", 1)
CALL = LogRow(ToolCallRow("c1", "t", {}))
DONE = LogRow(ToolResultRow("c1", 1))
GIVEN_UP = LogRow(ToolResultRow("c1", None, "cancelled"))
CALL_TOLD = LoopEvent("tool", {"id": "c1", "name": "t", "args": {}})
DONE_TOLD = LoopEvent("tool_result", {"id": "c1", "ok": True, "value": 1})
GIVEN_UP_TOLD = LoopEvent("tool_result", {"id": "c1", "ok": False, "error": "cancelled"})


def test_calls_and_answers_in_the_order_of_the_calls_are_fine() -> None:
    together = sent(assistant("", ASK, OTHER), FIRST, SECOND, reply="1.2", kept=1)
    assert found(Order, *TWO, together) == []
    one_by_one = sent(assistant("", ASK), FIRST, assistant("", OTHER), SECOND, kept=1)
    assert found(Order, *TWO, one_by_one) == []


def test_answers_in_another_order_are_found() -> None:
    swapped = sent(assistant("", ASK, OTHER), SECOND, FIRST, reply="1.2", kept=1)
    [violation] = found(Order, *TWO, swapped)
    assert violation.message == "the request after reply 1.1 has its answers in another order"
    assert (violation.entry, violation.turn) == (3, 1)


def test_calls_in_another_order_are_found() -> None:
    swapped = sent(assistant("", OTHER, ASK), SECOND, FIRST, reply="1.2", kept=1)
    assert [v.message for v in found(Order, *TWO, swapped)] == [
        "the request after reply 1.1 has its calls in another order",
        "the request after reply 1.1 has its answers in another order",
    ]


def test_a_history_written_anew_is_held_to_the_order_too() -> None:
    swapped = sent(user("Cut."), assistant("", ASK, OTHER), SECOND, FIRST, reply="1.2")
    assert len(found(Order, *TWO, swapped)) == 1


@pytest.mark.parametrize("events", [[START, CALL], [START, CALL_TOLD], [CALL, START, DONE]])
def test_a_finding_is_of_the_turn_that_is_played(events: list[AnyEvent]) -> None:
    [violation] = found(Order, started(1), ended(COMPLETED), started(2), sent(), *events)
    assert (violation.entry, violation.turn) == (3 + len(events), 2)


@pytest.mark.parametrize(("call", "done"), [(CALL, DONE), (CALL_TOLD, DONE_TOLD)])
def test_a_call_before_its_tool_and_a_result_after_it_are_fine(
    call: AnyEvent, done: AnyEvent
) -> None:
    assert found(Order, started(), sent(), call, START, END, done) == []
    again = [call, START, END, done]
    assert found(Order, started(), sent(), *again, sent(reply="1.2"), *again) == []


@pytest.mark.parametrize(
    ("call", "done", "what"), [(CALL, DONE, "row"), (CALL_TOLD, DONE_TOLD, "event")]
)
def test_a_call_after_its_tool_has_started_is_found(
    call: AnyEvent, done: AnyEvent, what: str
) -> None:
    [violation] = found(Order, started(), sent(), START, END, call, done)
    assert violation.message == f"the {what} of the call c1 came after t had started"


@pytest.mark.parametrize(
    ("call", "done", "what"), [(CALL, DONE, "row"), (CALL_TOLD, DONE_TOLD, "event")]
)
def test_a_success_before_the_tool_has_ended_is_found(
    call: AnyEvent, done: AnyEvent, what: str
) -> None:
    [violation] = found(Order, started(), sent(), call, START, done, END)
    assert violation.message == (f"the {what} of the result of c1 came before its tool had ended")


@pytest.mark.parametrize(("call", "given_up"), [(CALL, GIVEN_UP), (CALL_TOLD, GIVEN_UP_TOLD)])
def test_a_tool_may_be_given_up_while_it_runs(call: AnyEvent, given_up: AnyEvent) -> None:
    assert found(Order, started(), sent(), call, START, given_up, END) == []


def test_two_calls_with_one_id_are_counted() -> None:
    assert found(Order, started(), sent(), CALL, CALL, START, START, END, DONE, END, DONE) == []
    assert len(found(Order, started(), sent(), CALL, START, START, CALL)) == 1


def test_it_says_nothing_of_turns_without_tools_and_of_events_of_other_kinds() -> None:
    other = LoopEvent("tool", {"id": 1}), LoopEvent("tool_result", "done")
    assert not judged(Order, started(), sent(), *other, replied(), ended(COMPLETED))
    assert not judged(Order, *TWO)
    assert judged(Order, started(), CALL)
