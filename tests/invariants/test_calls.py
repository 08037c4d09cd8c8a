"""SLOT, CALL-TRUTH, UNKNOWN-TOOL, BAD-ARGS, RESULT-TOTAL and FAIL-VISIBLE, rule by rule."""

from itertools import permutations
from typing import Any

import pytest

from harness.core.events import AnyEvent, ErrorUnseen, ReplyEnded, ToolEnded, ToolStarted
from harness.core.messages import Image, Message, Text, ToolCall, assistant, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.core.verdict import Violation
from harness.invariants.calls import (
    BadArguments,
    CallTruth,
    FailVisible,
    ResultTotal,
    Slots,
    UnknownTool,
)
from harness.invariants.invariant import Facts, Invariant
from tests.invariants.traces import cancelled, ended, found, judged, replied, sent, started

NOTE = Message("system", (Text("Be brief."),))
FACTS = Facts(tools=frozenset(["t", "u"]))
CRASH = ended(Error("KeyError", "boom"))


def call(call_id: str = "c1", name: str = "t", args: Any = None, **more: Any) -> ToolCall:
    return ToolCall(call_id, name, {} if args is None else args, **more)


def ran(of: ToolCall, value: Any = "ok", end: Any = "returned", error: str | None = None) -> list:
    return [
        ToolStarted(of.id, of.name, of.args),
        ToolEnded(of.id, of.name, end, None if error else value, error),
    ]


def step(calls: list[ToolCall], *events: AnyEvent) -> list[AnyEvent]:
    """A reply with `calls`, then `events`."""
    return [started(), sent(), replied("complete", *calls), *events]


def answers(calls: list[ToolCall], *results: Message) -> AnyEvent:
    """The next request, with the calls and these results."""
    return sent(assistant("", *calls), *results, reply="1.2", kept=1)


def ok(call_id: str, text: str = "ok") -> Message:
    return tool_result(call_id, text)


def no(call_id: str, text: str = "Error: no") -> Message:
    return tool_result(call_id, text, is_error=True)


def broken(invariant: Invariant, *events: AnyEvent) -> list[Violation]:
    return found(invariant, *events, facts=FACTS)


# --- SLOT


@pytest.mark.parametrize("call_id", ["", "c"])
def test_equal_ids_are_two_calls_with_two_answers(call_id: str) -> None:
    two = [call(call_id, args={"n": 1}), call(call_id, args={"n": 2})]
    both = [*ran(two[0], 1), *ran(two[1], 2)]
    shown = answers(two, ok(call_id, "1"), ok(call_id, "2"))
    assert broken(Slots, *step(two, *both, shown)) == []
    [violation] = broken(Slots, *step(two, *ran(two[1], 2), shown))
    assert "is answered, but did not run; its id is not its own" in violation.message
    assert (violation.entry, violation.turn) == (5, 1)


def test_a_call_that_is_lost_for_its_id_is_found() -> None:
    two = [call("c", args={"n": 1}), call("c", args={"n": 2})]
    shown = answers(two[1:], ok("c", "2"))
    [violation] = broken(Slots, *step(two, *ran(two[1], 2), shown))
    assert "neither ran nor is answered" in violation.message


def test_an_id_of_an_earlier_reply_is_not_the_calls_own() -> None:
    first = [*step([call()], *ran(call())), answers([call()], ok("c1"))]
    cached = sent(assistant("", call()), ok("c1"), reply="1.3", kept=3)
    again = replied("complete", call(), reply="1.2")
    assert len(broken(Slots, *first, again, cached)) == 1
    assert broken(Slots, *first, again, *ran(call()), cached) == []


def test_a_refusal_is_an_answer_to_a_call_that_did_not_run() -> None:
    two = [call("c"), call("c")]
    assert broken(Slots, *step(two, *ran(two[0]), answers(two, ok("c"), no("c")))) == []


def test_an_answer_that_is_another_calls_result_is_found() -> None:
    two = [call("c1"), call("c2", "u")]
    both = [*ran(two[0], "Paris"), *ran(two[1], {"b": 1, "a": 2})]
    right = answers(two, ok("c1", "Paris"), ok("c2", '{"a":2,"b":1}'))
    assert broken(Slots, *step(two, *both, right)) == []
    own_words = answers(two, ok("c1", "It is Paris."), ok("c2", "{'b': 1, 'a': 2}"))
    assert broken(Slots, *step(two, *both, own_words)) == []
    swapped = answers(two, ok("c1", '{"a":2,"b":1}'), ok("c2", '"Paris"'))
    assert [v.message for v in broken(Slots, *step(two, *both, swapped))] == [
        "reply 1.1: t (c1) is answered with the result of u (c2)",
        "reply 1.1: u (c2) is answered with the result of t (c1)",
    ]


def test_a_result_that_stands_at_a_call_without_a_tool_is_found() -> None:
    two = [call("c1"), call("c2", "helper")]
    ran_one = ran(two[0], "Paris")
    assert broken(Slots, *step(two, *ran_one, answers(two, ok("c1", "Paris"), ok("c2", "!")))) == []
    twice = answers(two, ok("c1", "Paris"), ok("c2", "Paris"))
    assert broken(Slots, *step(two, *ran_one, twice)) == []
    swapped = answers(two, ok("c1", "London"), ok("c2", "Paris"))
    assert [v.message for v in broken(Slots, *step(two, *ran_one, swapped))] == [
        "reply 1.1: helper (c2) is answered with the result of t (c1)"
    ]
    lost = sent(assistant("", *two), ok("c2", "Paris"), reply="1.2", kept=1)
    assert broken(Slots, *step(two, *ran_one, lost)) == []
    nothing = step(two, *ran(two[0], ""), answers(two, ok("c1", ""), ok("c2", "")))
    assert broken(Slots, *nothing) == []


def helped(number: int, task: str, says: str, end: str = "complete") -> list[AnyEvent]:
    """A sub-agent's work on a task."""
    asked = sent(NOTE, user(task), reply=f"helper.{number}", conversation="helper")
    message = assistant(says) if end == "complete" else None
    return [asked, ReplyEnded(f"helper.{number}", end, message)]


def test_the_answer_of_a_sub_agent_is_that_of_the_call_which_handed_out_its_task() -> None:
    two = [call("c1", args={"task": "Look."}), call("c2", args={"n": 1, "task": "Test.\n"})]
    both = [*helped(1, "Look.", "A bug."), *helped(2, "Test.", "Two fail.")]
    right = answers(two, ok("c1", "A bug."), ok("c2", "Two fail."))
    assert broken(Slots, *step(two, *both, right)) == []
    swapped = answers(two, ok("c1", "Two fail."), ok("c2", "A bug."))
    assert [v.message for v in broken(Slots, *step(two, *both, swapped))] == [
        "reply 1.1: t (c1) is answered with the result of t (c2)",
        "reply 1.1: t (c2) is answered with the result of t (c1)",
    ]
    same = [*helped(1, "Look.", "A bug."), *helped(2, "Look.", "Two fail.")]
    twins = [call("c1", args={"task": "Look."}), call("c2", args={"task": "Look."})]
    assert broken(Slots, *step(twins, *same, right)) == []
    failed = [*helped(1, "Look.", "A bug."), *helped(2, "Test.", "", "failed")]
    assert broken(Slots, *step(two, *failed, answers(two, ok("c1", "A bug."), no("c2")))) == []
    alike = [*ran(two[0], "Look. "), *helped(2, "Test.", "Look. ")]
    assert broken(Slots, *step(two, *alike, answers(two, ok("c1"), ok("c2", "Look. ")))) == []
    silent = sent(NOTE, reply="helper.3", conversation="helper")
    nothing = [silent, ReplyEnded("helper.3", "complete", assistant("Well."))]
    assert broken(Slots, *step(two, *both, *nothing, right)) == []
    unread = [call("c1", raw="{"), two[1]]
    assert broken(Slots, *step(unread, *both, answers(unread, no("c1"), ok("c2")))) == []


def test_equal_and_empty_results_tell_nothing_apart() -> None:
    two = [call("c1"), call("c2", "u")]
    for values, texts in ((("x", "x"), ("x", "x")), ((None, "null"), ("null", "null"))):
        both = [*ran(two[0], values[0]), *ran(two[1], values[1])]
        shown = answers(two, ok("c1", texts[0]), ok("c2", texts[1]))
        assert broken(Slots, *step(two, *both, shown)) == []


@pytest.mark.parametrize("call_id", ["", "c"])
def test_results_of_calls_that_nothing_tells_apart_may_stand_in_any_order(call_id: str) -> None:
    three = [call(call_id), call(call_id), call(call_id)]
    ends = [*ran(three[0], "1"), *ran(three[1], 1), *ran(three[2], error="boom", end="error")]
    for texts in permutations(("1", '"1"', "it said boom")):
        shown = answers(three, *[ok(call_id, text) for text in texts])
        for invariant in (Slots, FailVisible, ResultTotal):
            assert broken(invariant, *step(three, *ends, shown)) == [], (texts, invariant)


def test_an_answer_that_one_of_several_equal_calls_has_twice_is_found() -> None:
    three = [call("c"), call("c"), call("c")]
    ends = [
        event
        for one, value in zip(three, ("x", "y", "z"), strict=True)
        for event in ran(one, value)
    ]
    shown = answers(three, ok("c", "z"), ok("c", "x"), ok("c", "x"))
    assert [v.message for v in broken(Slots, *step(three, *ends, shown))] == [
        "reply 1.1: t (c) is answered with the result of t (c)"
    ]
    alike = [
        event for one, value in zip(three, ("1", 1, "z"), strict=True) for event in ran(one, value)
    ]
    shown = answers(three, ok("c", '"1"'), ok("c", "1"), ok("c", "1"))
    assert len(broken(Slots, *step(three, *alike, shown))) == 1
    lost = answers(three, ok("c", "y"), ok("c", "sorry"))
    assert broken(Slots, *step(three, *ends, lost)) == []


def test_results_of_calls_with_one_id_and_other_arguments_stand_where_they_belong() -> None:
    two = [call("c", args={"n": 1}), call("c", args={"n": 2})]
    both = [*ran(two[0], "x"), *ran(two[1], "y")]
    swapped = answers(two, ok("c", "y"), ok("c", "x"))
    assert len(broken(Slots, *step(two, *both, swapped))) == 2


def test_a_refusal_of_one_of_several_equal_calls_is_that_of_the_one_that_did_not_run() -> None:
    two = [call("c"), call("c")]
    for shown in ((no("c"), ok("c")), (ok("c"), no("c"))):
        for invariant in (Slots, FailVisible, ResultTotal):
            assert broken(invariant, *step(two, *ran(two[0]), answers(two, *shown))) == []


def test_slot_is_judged_where_ids_are_shared_or_results_differ() -> None:
    one = [call()]
    assert not judged(Slots, *step(one, *ran(one[0]), answers(one, ok("c1"))))
    two = [call(""), call("")]
    assert judged(Slots, *step(two, answers(two, no(""), no(""))))
    assert not judged(Slots, *step(two))


# --- CALL-TRUTH


def test_a_call_is_shown_as_it_was_written() -> None:
    one = call(args={"id": 7})
    for shown in (call(args={"id": 8}), call(args={}), call(args='{"id": 7}')):
        [violation] = broken(CallTruth, *step([one], *ran(one), answers([shown], ok("c1"))))
        assert (
            't (c1) was asked for with {"id":7}, and the request shows it with '
            in violation.message
        )
        assert (violation.severity, violation.turn) == ("hard", 1)
    assert broken(CallTruth, *step([one], *ran(one), answers([one], ok("c1")))) == []


def test_a_tool_that_runs_with_other_arguments_is_shown() -> None:
    one = call(args={"id": 7})
    [violation] = broken(CallTruth, *step([one], *ran(call(args={"id": 9}))))
    assert violation.message == ('t (c1) ran with {"id":9}, though it was asked for with {"id":7}')
    assert violation.severity == "soft"


def test_no_arguments_are_an_empty_object() -> None:
    none = ToolCall("c1", "t", None)
    events = [*ran(call()), answers([call()], ok("c1"))]
    assert broken(CallTruth, *step([none], *events)) == []
    assert judged(CallTruth, *step([none], *events))


def test_what_others_judge_is_left_to_them() -> None:
    cut_off = ToolCall("c1", "t", None, '{"id": 7')
    assert not judged(CallTruth, *step([cut_off], answers([call()], no("c1"))))
    two = [call("", args={"n": 1}), call("", args={"n": 2})]
    assert not judged(CallTruth, *step(two, *ran(two[0]), answers(two[::-1], ok(""), ok(""))))
    assert not judged(CallTruth, *step([call()], answers([], user("So?"))))


# --- UNKNOWN-TOOL and BAD-ARGS: calls that cannot be run

UNKNOWN = call("c1", "magic")
RAW = ToolCall("c1", "t", None, '{"n": ')
A_LIST = call("c1", args=[1])
CANNOT_RUN = [(UnknownTool, UNKNOWN), (BadArguments, RAW), (BadArguments, A_LIST)]


@pytest.mark.parametrize(("invariant", "bad"), CANNOT_RUN)
def test_a_call_that_cannot_be_run_has_one_error(invariant: Invariant, bad: ToolCall) -> None:
    for refusal in (no("c1"), no("c1", ""), ok("c1", "not executed: the arguments are invalid")):
        assert broken(invariant, *step([bad], answers([bad], refusal))) == []
    [violation] = broken(invariant, *step([bad], answers([bad], ok("c1"))))
    assert "is answered as if it had run" in violation.message


@pytest.mark.parametrize(("invariant", "bad"), CANNOT_RUN)
def test_the_turn_goes_on_after_a_call_that_cannot_be_run(
    invariant: Invariant, bad: ToolCall
) -> None:
    [violation] = broken(invariant, *step([bad], CRASH))
    assert "the turn ended as error (KeyError: boom) over" in violation.message
    assert violation.entry == 3
    for explained in (cancelled(), ran(call("c2", "u"), error="no", end="raised")):
        two = [bad, call("c2", "u")]
        assert broken(invariant, *step(two, *explained, CRASH)) == []
    assert broken(invariant, *step([bad], ended(CANCELLED))) == []
    assert broken(invariant, *step([bad], ended(COMPLETED))) == []


@pytest.mark.parametrize(("invariant", "bad"), CANNOT_RUN)
def test_a_call_that_cannot_be_run_is_not_dropped(invariant: Invariant, bad: ToolCall) -> None:
    good = call("c2", "u")
    [violation] = broken(
        invariant, *step([bad, good], *ran(good), answers([good], ok("c2", "fine")))
    )
    assert "was dropped without an answer" in violation.message
    plain = sent(user("t cannot be run"), reply="1.2", kept=1)
    assert broken(invariant, *step([bad], plain)) == []


def test_a_tool_that_the_agent_itself_offers_is_known() -> None:
    from harness.core.events import RequestHead, RequestSent
    from harness.core.messages import ToolSchema

    head = RequestHead("m", "", (ToolSchema("magic"),))
    offered = RequestSent("main", "1.1", 0, (user("Go."),), "d", head)
    events = [started(), offered, replied("complete", UNKNOWN), answers([UNKNOWN], ok("c1"))]
    assert broken(UnknownTool, *events) == []
    assert not judged(UnknownTool, *events, facts=FACTS)


def test_without_the_names_of_the_tools_none_is_unknown() -> None:
    assert not judged(UnknownTool, *step([UNKNOWN], answers([UNKNOWN], ok("c1"))))


def test_a_crash_over_an_unknown_tool_is_told_once() -> None:
    both = [call("c1", "magic"), ToolCall("c2", "t", None, "{")]
    assert len(broken(UnknownTool, *step(both, CRASH))) == 1
    assert broken(BadArguments, *step(both, CRASH)) == []


@pytest.mark.parametrize("bad", [RAW, A_LIST])
def test_bad_arguments_run_no_tool(bad: ToolCall) -> None:
    [violation] = broken(
        BadArguments, *step([bad], *ran(ToolCall("c1", "t", {})), answers([bad], ok("c1")))
    )
    assert "t (c1) ran, though its arguments are" in violation.message


@pytest.mark.parametrize(
    "fine", [ToolCall("c1", "t", None), ToolCall("c1", "t", None, " "), call("c1")]
)
def test_empty_and_null_arguments_may_be_run_or_refused(fine: ToolCall) -> None:
    assert broken(BadArguments, *step([fine], *ran(fine), answers([fine], ok("c1")))) == []
    assert broken(BadArguments, *step([fine], answers([fine], no("c1")))) == []
    assert not judged(BadArguments, *step([fine], answers([fine], no("c1"))), facts=FACTS)


def test_of_two_calls_with_one_id_null_may_be_the_one_that_ran_without_arguments() -> None:
    two = [A_LIST, ToolCall("c1", "t", None)]
    answered = answers(two, no("c1"), ok("c1"))
    assert broken(BadArguments, *step(two, *ran(ToolCall("c1", "t", {})), answered)) == []


def test_the_calls_beside_bad_arguments_are_not_refused_with_them() -> None:
    two = [RAW, call("c2", "u")]
    [violation] = broken(BadArguments, *step(two, answers(two, no("c1"), no("c2"))))
    assert violation.message == (
        "reply 1.1: u (c2) was refused together with a call of bad arguments"
    )
    guarded = answers(two, no("c1"), no("c2", "Error: denied"))
    assert broken(BadArguments, *step(two, guarded)) == []
    after_cancel = [*cancelled(), ended(CANCELLED), started(2), answers(two, no("c1"), no("c2"))]
    assert broken(BadArguments, *step(two, *after_cancel)) == []


# --- RESULT-TOTAL


@pytest.mark.parametrize("value", [None, "", [], {}, False, 0, "ok"])
def test_any_value_has_some_text_and_is_no_error(value: Any) -> None:
    one = [call()]
    done = ran(one[0], value)
    assert broken(ResultTotal, *step(one, *done, answers(one, ok("c1", "null")))) == []
    [violation] = broken(ResultTotal, *step(one, *done, answers(one, ok("c1", ""))))
    assert violation.message == "reply 1.1: the answer to t (c1) is empty"


def test_a_picture_is_a_result() -> None:
    one = [call()]
    picture = Message("tool", (Image("p"),), "c1")
    assert broken(ResultTotal, *step(one, *ran(one[0]), answers(one, picture))) == []


@pytest.mark.parametrize("value", [None, "", [], {}, False, 0])
def test_an_empty_value_is_no_error(value: Any) -> None:
    one = [call()]
    [violation] = broken(ResultTotal, *step(one, *ran(one[0], value), answers(one, no("c1"))))
    assert "and is answered with an error: Error: no" in violation.message
    failed = ran(one[0], end="raised", error="boom")
    assert broken(ResultTotal, *step(one, *failed, answers(one, no("c1")))) == []
    assert broken(ResultTotal, *step(one, *ran(one[0], "full"), answers(one, no("c1")))) == []


def test_result_total_is_judged_where_an_answer_is_shown() -> None:
    one = [call()]
    assert not judged(ResultTotal, *step(one, *ran(one[0])))
    assert judged(ResultTotal, *step(one, answers(one, ok("c1"))))


# --- FAIL-VISIBLE


@pytest.mark.parametrize("end", ["error", "raised"])
def test_a_failure_shows_in_its_answer(end: str) -> None:
    one = [call()]
    failed = ran(one[0], end=end, error="busy")
    for answer in (no("c1", "?"), ok("c1", "Error: ?"), ok("c1", "it was busy")):
        assert broken(FailVisible, *step(one, *failed, answers(one, answer))) == []
    [violation] = broken(FailVisible, *step(one, *failed, answers(one, ok("c1", "null"))))
    assert '"busy", and its answer does not show that: "null"' in violation.message


def test_the_last_run_of_a_call_counts() -> None:
    one = [call()]
    tried = [*ran(one[0], end="raised", error="busy"), *ran(one[0])]
    assert broken(FailVisible, *step(one, *tried, answers(one, ok("c1")))) == []


def test_an_exception_that_nobody_saw_is_a_soft_finding() -> None:
    [violation] = broken(FailVisible, started(), ErrorUnseen(1, "ValueError: x"), ended(COMPLETED))
    assert (violation.severity, violation.turn) == ("soft", 1)
    assert violation.message == "nobody saw ValueError: x"


def test_fail_visible_is_judged_where_something_failed() -> None:
    one = [call()]
    assert not judged(FailVisible, *step(one, *ran(one[0]), answers(one, ok("c1"))))
    assert not judged(FailVisible, *step(one, *ran(one[0], end="raised", error="x")))
