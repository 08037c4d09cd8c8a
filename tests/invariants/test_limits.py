"""LIMIT, COUNT, CAP, SERIAL and LOOP-DETECT, rule by rule."""

import pytest

from harness.core.budget import Budget
from harness.core.events import AnyEvent, RequestSent, ToolEnded, ToolStarted
from harness.core.messages import Message, ToolCall, assistant, tool_result, user
from harness.core.outcome import COMPLETED, STEP_LIMIT
from harness.invariants.invariant import Facts, Invariant
from harness.invariants.limits import REPEATS, Cap, Count, Limit, LoopDetect, Serial
from tests.invariants.traces import ended, found, judged, replied, sent, started


def facts(**budget: int) -> Facts:
    return Facts(budget=Budget(**budget))


def requests(count: int, turn: int = 1) -> list[AnyEvent]:
    return [sent(reply=f"{turn}.{step}") for step in range(1, count + 1)]


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_turn_may_spend_its_budget_and_no_more(steps: int) -> None:
    exact = [started(), *requests(steps), ended(STEP_LIMIT), started(2), *requests(steps, 2)]
    assert found(Limit, *exact, facts=facts(steps=steps)) == []
    [violation] = found(Limit, started(), *requests(steps + 2), facts=facts(steps=steps))
    assert violation.message == f"a step more than the {steps} of the budget"
    assert (violation.entry, violation.turn) == (steps + 1, 1)


def test_other_conversations_do_not_count() -> None:
    title = sent(reply="title.1", conversation="title")
    assert found(Limit, started(), sent(), title, facts=facts(steps=1)) == []


def test_a_turn_ends_as_step_limit_only_when_that_is_spent() -> None:
    [violation] = found(Limit, started(), *requests(1), ended(STEP_LIMIT), facts=facts(steps=2))
    assert violation.message == "the turn ended as step_limit after 1 of 2 steps"
    assert found(Limit, started(), *requests(1), ended(COMPLETED), facts=facts(steps=2)) == []
    out_of_calls = [started(), *requests(1), start("c1"), ended(STEP_LIMIT)]
    assert found(Limit, *out_of_calls, facts=facts(steps=2, tool_calls=1)) == []


def start(call_id: str) -> ToolStarted:
    return ToolStarted(call_id, "t", {})


def end(call_id: str) -> ToolEnded:
    return ToolEnded(call_id, "t", "returned")


@pytest.mark.parametrize("most", [0, 1, 2])
def test_a_turn_runs_as_many_tools_as_it_may(most: int) -> None:
    runs = [start(f"c{n}") for n in range(most)]
    assert found(Count, started(), *runs, started(2), *runs, facts=facts(tool_calls=most)) == []
    [violation] = found(Count, started(), *runs, start("more"), facts=facts(tool_calls=most))
    assert violation.message == (f"t is run number {most + 1}, and the budget is {most} tool calls")


def test_as_many_tools_run_at_once_as_may() -> None:
    two = facts(parallel_tools=2)
    full = [started(), start("a"), start("b")]
    assert found(Cap, *full, end("a"), start("c"), end("b"), start("d"), facts=two) == []
    [violation] = found(Cap, *full, start("c"), facts=two)
    assert violation.message == "t started as number 3 at once, 2 may run"
    assert len(found(Cap, started(), start("a"), facts=facts(parallel_tools=0))) == 1


def test_equal_ids_are_as_many_tools() -> None:
    two = facts(parallel_tools=2)
    assert found(Cap, started(), start("a"), start("a"), end("a"), start("a"), facts=two) == []
    assert len(found(Cap, started(), start("a"), start("a"), start("a"), facts=two)) == 1


def test_where_one_tool_may_run_the_next_waits_for_its_end() -> None:
    one = facts(parallel_tools=1)
    assert found(Serial, started(), start("a"), end("a"), start("b"), facts=one) == []
    [violation] = found(Serial, started(), start("a"), start("b"), facts=one)
    assert violation.message == "t started while t was running"
    assert found(Cap, started(), start("a"), start("b"), facts=one) == []


@pytest.mark.parametrize(("invariant", "most"), [(Cap, 2), (Serial, 1)])
def test_a_tool_that_an_earlier_turn_left_behind_takes_no_room(
    invariant: Invariant, most: int
) -> None:
    left = [started(), start("a"), start("b")][: most + 1]
    events = [*left, started(2), start("c"), end("a"), end("c"), start("d")]
    assert found(invariant, *events, facts=facts(parallel_tools=most)) == []


@pytest.mark.parametrize("invariant", [Limit, Count, Cap, Serial])
def test_without_a_budget_nothing_is_judged(invariant: Invariant) -> None:
    assert not judged(invariant, started(), sent(), start("a"), ended(STEP_LIMIT))


def test_cap_and_serial_share_the_work() -> None:
    events = [started(), start("a")]
    assert judged(Cap, *events, facts=facts(parallel_tools=2))
    assert not judged(Serial, *events, facts=facts(parallel_tools=2))
    assert judged(Serial, *events, facts=facts(parallel_tools=1))
    assert not judged(Cap, *events, facts=facts(parallel_tools=1))


def steps(count: int, result: str = "busy", turn: int = 1, before: int = 0) -> list[AnyEvent]:
    """Replies that ask for the same, each in a step of its own, and one request more."""
    events: list[AnyEvent] = [sent(reply=f"{turn}.1", kept=0)] if not before else []
    for step in range(before + 1, before + count + 1):
        call = ToolCall(f"c{turn}_{step}", "t", {"n": 1})
        answered = [assistant("", call), tool_result(call.id, result)]
        events += [
            replied("complete", call, reply=f"{turn}.{step}"),
            sent(*answered, kept=2 * step - 1, reply=f"{turn}.{step + 1}"),
        ]
    return events


def test_the_same_call_may_have_the_same_result_so_many_times_and_no_more() -> None:
    assert found(LoopDetect, started(), *steps(REPEATS)) == []
    [violation] = found(LoopDetect, started(), *steps(REPEATS + 5))
    assert violation.severity == "soft"
    assert violation.message == "t was called 11 times in a row, with the same result"


def test_another_result_or_another_turn_begins_anew() -> None:
    changed = [*steps(REPEATS), *steps(1, "ready", before=REPEATS)]
    assert found(LoopDetect, started(), *changed, *steps(REPEATS, before=REPEATS + 1)) == []
    second = [started(2), *steps(REPEATS, turn=2)]
    assert found(LoopDetect, started(), *steps(REPEATS), *second) == []


def test_it_is_not_judged_where_no_step_was_followed() -> None:
    assert not judged(LoopDetect, started(), sent(), replied("complete", ToolCall("c", "t", {})))
    assert judged(LoopDetect, started(), *steps(1))


def nudged(times: int, *between: Message, text: str = "On with it.") -> list[AnyEvent]:
    """A turn that is nudged, each time behind the reply to the nudge before."""
    events: list[AnyEvent] = [started(), sent(), replied()]
    behind = [*between, user(text)]
    for number in range(times):
        place = f"1.{number + 2}"
        events += [sent(*behind, reply=place, kept=1 + number * len(behind))]
        events += [replied(reply=place)]
    return events


@pytest.mark.parametrize("between", [(), (assistant("Done."),)])
def test_the_same_words_do_not_nudge_on_more_than_ten_times(between: tuple[Message, ...]) -> None:
    assert found(LoopDetect, *nudged(REPEATS, *between)) == []
    [violation] = found(LoopDetect, *nudged(REPEATS + 5, *between))
    assert (violation.message, violation.severity) == (
        "request 1.12 says for the 11th time in a row 'On with it.', "
        "and the replies ask for no tools",
        "soft",
    )
    assert judged(LoopDetect, *nudged(1, *between))


def test_what_is_said_beside_work_or_by_the_user_is_no_nudge() -> None:
    call = ToolCall("c", "t", {})
    working = nudged(2 * REPEATS, assistant("", call), tool_result("c", "ok"))
    assert found(LoopDetect, *working) == []
    assert found(LoopDetect, *nudged(2 * REPEATS, text="Go.")) == []


def test_a_request_that_is_sent_again_is_no_nudge_and_another_turn_begins_anew() -> None:
    first = nudged(REPEATS)
    length = REPEATS + 1
    again = [RequestSent("main", "1.12", length, (), "d") for _ in range(REPEATS)]
    assert found(LoopDetect, *first, *again) == []
    nudge = sent(user("On with it."), reply="2.1", kept=length)
    assert found(LoopDetect, *first, started(2, ""), nudge) == []
    assert len(found(LoopDetect, *first, *again, nudge)) == 1
    shorter = RequestSent("main", "1.12", 1, (), "d")
    assert found(LoopDetect, *first, shorter, sent(user("On with it."), kept=1)) == []
