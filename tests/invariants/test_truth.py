"""OUTCOME-TRUTH and SIBLING, rule by rule."""

from typing import Any, Literal

import pytest

from harness.core.events import (
    AnyEvent,
    CancelRequested,
    ReplyEnded,
    ToolEnded,
    ToolStarted,
)
from harness.core.json_text import Json
from harness.core.messages import Message, ToolCall, assistant, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.core.trace import Trace
from harness.core.verdict import Verdict
from harness.invariants.invariant import Facts, Invariant
from harness.invariants.judge import judge
from harness.invariants.truth import OutcomeTruth, Sibling
from tests.invariants.traces import cancelled, ended, sent, started, trace

PAY, LOOK = ToolCall("c1", "pay", {}), ToolCall("c2", "look", {})
GO = user("Go.")
TOOLS = Facts(tools=frozenset({"pay", "look"}))


def asked(*calls: ToolCall) -> ReplyEnded:
    return ReplyEnded("1.1", "complete", assistant("", *calls))


def begins(call: ToolCall = PAY) -> ToolStarted:
    return ToolStarted(call.id, call.name, {})


def returns(value: Json = "paid", call: ToolCall = PAY) -> ToolEnded:
    return ToolEnded(call.id, call.name, "returned", value)


def ends(
    end: Literal["error", "raised", "cancelled"], call: ToolCall = PAY, error: str | None = None
) -> ToolEnded:
    return ToolEnded(call.id, call.name, end, None, error)


def shows(*results: Message, calls: tuple[ToolCall, ...] = (PAY,), more: Message | None = None):
    added = [assistant("", *calls), *results, *((more,) if more else ())]
    return sent(*added, kept=1, reply="1.2")


def verdict(invariant: Invariant, whole: Trace) -> Verdict:
    return judge(whole, [invariant], TOOLS)


def told(invariant: Invariant, *events: Any) -> list[str]:
    opening = [started(), sent(GO)]
    return [v.message for v in verdict(invariant, trace(*opening, *events)).violations]


@pytest.mark.parametrize(
    "result",
    [
        tool_result("c1", '"paid"'),
        tool_result("c1", "paid"),
        tool_result("c1", "Result: pa[…]"),
        tool_result("c1", "[left out]"),
    ],
)
def test_how_a_value_is_spelled_is_the_loops_business(result: Message) -> None:
    assert told(OutcomeTruth, asked(PAY), begins(), returns(), shows(result)) == []


@pytest.mark.parametrize(
    "result",
    [tool_result("c1", "nothing came", is_error=True), tool_result("c1", " Error: broken")],
)
def test_what_returned_is_no_error(result: Message) -> None:
    [message] = told(OutcomeTruth, asked(PAY), begins(), returns(), shows(result))
    assert "pay (c1) returned, but is shown as an error" in message


@pytest.mark.parametrize("value", [None, "", "Error: no such invoice", {"error": "late"}])
def test_a_value_that_is_nothing_or_an_error_itself_may_be_shown_as_one(value: Json) -> None:
    shown = shows(tool_result("c1", "Error: it did not work", is_error=True))
    assert told(OutcomeTruth, asked(PAY), begins(), returns(value), shown) == []


def test_a_loop_may_have_limits_of_its_own() -> None:
    for text in ("Error: timed out after 1s", "Error: the output is too long"):
        shown = shows(tool_result("c1", text, is_error=True))
        assert told(OutcomeTruth, asked(PAY), begins(), returns(), shown) == []


CUT = tool_result("c1", "Error: interrupted; it may have run", is_error=True)


def test_what_returned_before_the_cancel_keeps_its_value() -> None:
    wanted, delivered = cancelled()
    turn = [asked(PAY), begins(), returns(), wanted, delivered, ended(CANCELLED), started(2, "So?")]
    [message] = told(OutcomeTruth, *turn, shows(CUT, more=user("So?")))
    assert "returned, but is shown as an error" in message


def test_what_returned_with_the_cancel_or_after_it_may_be_given_up() -> None:
    wanted, delivered = cancelled()
    cut = [delivered, ended(CANCELLED), started(2, "So?"), shows(CUT, more=user("So?"))]
    for between in ([(5, returns()), (5, wanted)], [(5, wanted), (6, returns())]):
        assert told(OutcomeTruth, asked(PAY), begins(), *between, *cut) == []


def test_what_returned_after_its_turn_may_be_given_up() -> None:
    turn = [asked(PAY), begins(), ended(Error("stream", "lost")), returns(), started(2, "So?")]
    assert told(OutcomeTruth, *turn, shows(CUT, more=user("So?"))) == []


@pytest.mark.parametrize("events", [[begins(), ends("cancelled")], [begins()]])
@pytest.mark.parametrize("text", ["null", "{}", '"done"'])
def test_what_never_came_back_is_no_success(events: list[AnyEvent], text: str) -> None:
    [message] = told(OutcomeTruth, asked(PAY), *events, shows(tool_result("c1", text)))
    assert message == "pay (c1) is shown as a success, but its tool never came back"


@pytest.mark.parametrize(
    "result",
    [
        tool_result("c1", "null", is_error=True),
        tool_result("c1", ""),
        tool_result("c1", "(the user stopped this)"),
        tool_result("c1", "This didn\u2019t finish."),
        tool_result("c1", "still running in the background"),
    ],
)
def test_anything_that_is_no_claim_of_success_will_do(result: Message) -> None:
    assert told(OutcomeTruth, asked(PAY), begins(), ends("cancelled"), shows(result)) == []


@pytest.mark.parametrize(
    "text",
    ["cancelled before execution", "It was never run.", "not executed", "skipped before it ran"],
)
def test_what_had_started_is_not_said_never_to_have_run(text: str) -> None:
    shown = shows(tool_result("c1", text, is_error=True))
    for end in ([ends("cancelled")], [], [returns()], [ends("raised", error="broken")]):
        [message] = told(OutcomeTruth, asked(PAY), begins(), *end, shown)
        assert "is said never to have run" in message
    assert told(OutcomeTruth, asked(PAY), shown) == []


@pytest.mark.parametrize("text", ["it may not have run", "not run to its end", "it may have run"])
def test_an_open_question_is_no_claim(text: str) -> None:
    shown = shows(tool_result("c1", f"interrupted: {text}", is_error=True))
    assert told(OutcomeTruth, asked(PAY), begins(), ends("cancelled"), shown) == []


def test_a_tool_may_say_itself_that_something_was_not_run() -> None:
    for end in (returns("migration not run"), ends("error", error="migration not run")):
        shown = shows(tool_result("c1", "Error: migration not run", is_error=True))
        only_words = told(OutcomeTruth, asked(PAY), begins(), end, shown)
        assert not any("said never to have run" in message for message in only_words)


def test_what_no_tool_ran_for_is_no_success() -> None:
    [message] = told(OutcomeTruth, asked(PAY), shows(tool_result("c1", "paid")))
    assert message == "pay (c1) is shown as a success, but no tool ran for it"


def test_a_tool_of_the_loops_own_runs_where_nobody_sees_it() -> None:
    own = ToolCall("c1", "task", {})
    assert told(OutcomeTruth, asked(own), shows(tool_result("c1", "done"), calls=(own,))) == []


def test_a_run_without_a_call_id_may_belong_to_another_call() -> None:
    elsewhere = ToolStarted("c0", "pay", {}, inferred=True)
    assert told(OutcomeTruth, elsewhere, asked(PAY), shows(tool_result("c1", "paid"))) == []


def test_a_failure_that_is_hidden_is_for_another_to_judge() -> None:
    shown = shows(tool_result("c1", "fine"))
    assert told(OutcomeTruth, asked(PAY), begins(), ends("raised", error="x"), shown) == []


def test_an_id_that_two_calls_share_tells_nothing_apart() -> None:
    twice = (PAY, ToolCall("c1", "pay", {"n": 2}))
    shown = shows(tool_result("c1", "Error"), tool_result("c1", "Error"), calls=twice)
    assert told(OutcomeTruth, asked(*twice), begins(), returns(), shown) == []


def test_outcome_truth_is_judged_only_where_an_answer_is_shown() -> None:
    whole = trace(started(), sent(GO), asked(PAY), begins(), returns(), ended(COMPLETED))
    assert verdict(OutcomeTruth, whole).not_judged == ("OUTCOME-TRUTH",)


BOTH = (PAY, LOOK)
FAILED = tool_result("c2", "Error: broken", is_error=True)
BREAKS = ends("raised", LOOK, "broken")


def run_both(*between: Any) -> list[Any]:
    return [asked(*BOTH), begins(), begins(LOOK), *between]


def test_each_call_keeps_what_it_came_to() -> None:
    shown = shows(tool_result("c1", "paid"), FAILED, calls=BOTH)
    assert told(Sibling, *run_both(returns(), BREAKS), shown) == []


def test_a_sibling_is_not_answered_with_the_failure_of_another() -> None:
    shown = shows(tool_result("c1", "Error: broken", is_error=True), FAILED, calls=BOTH)
    events = [*run_both(returns(), BREAKS), shown]
    [message] = told(Sibling, *events)
    assert message == "pay (c1) returned, but is shown as an error since look (c2) failed"
    assert told(OutcomeTruth, *events) == []


def test_a_call_that_was_given_up_takes_no_other_with_it() -> None:
    shown = shows(CUT, tool_result("c2", "Error: stopped", is_error=True), calls=BOTH)
    [message] = told(Sibling, *run_both(returns(), ends("cancelled", LOOK)), shown)
    assert "since look (c2) was cancelled" in message


def test_a_sibling_that_returned_is_shown() -> None:
    shown = sent(assistant("", LOOK), FAILED, kept=1, reply="1.2")
    [message] = told(Sibling, *run_both(returns(), BREAKS), shown)
    assert "pay (c1) returned, but the next request does not show it" in message


def test_a_sibling_is_not_cancelled_for_the_failure_of_another() -> None:
    shown = shows(CUT, FAILED, calls=BOTH)
    events = run_both((9, BREAKS), (9, ends("cancelled")))
    assert told(Sibling, *events, shown) == ["pay (c1) was cancelled when look (c2) failed"]
    later = run_both((9, BREAKS), (20, ends("cancelled")))
    assert told(Sibling, *later, shown) == []


def test_where_the_turn_fails_with_a_tool_its_siblings_are_cancelled_rightly() -> None:
    events = run_both((9, BREAKS), (9, ends("cancelled")), ended(Error("RuntimeError", "broken")))
    shown = shows(CUT, FAILED, calls=BOTH, more=user("So?"))
    assert told(Sibling, *events, started(2, "So?"), shown) == []


def test_what_a_cancel_from_outside_does_is_for_another_to_judge() -> None:
    events = run_both(returns(), CancelRequested(1, "agent", "at 1ms"), ends("cancelled", LOOK))
    shown = shows(CUT, tool_result("c2", "Error: cancelled", is_error=True), calls=BOTH)
    assert told(Sibling, *events, shown) == []


def test_sibling_is_judged_only_where_a_call_failed_beside_another() -> None:
    fine = trace(started(), sent(GO), *run_both(returns(), returns("seen", LOOK)))
    alone = trace(started(), sent(GO), asked(PAY), begins(), ends("raised"), shows(FAILED))
    for whole in (fine, alone):
        assert verdict(Sibling, whole).not_judged == ("SIBLING",)
