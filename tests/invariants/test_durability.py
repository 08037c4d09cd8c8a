"""EFFECT-KEPT, DURABLE and LOG-HISTORY, rule by rule."""

from typing import Any

import pytest

from harness.core.events import (
    AnyEvent,
    Compacted,
    LogRow,
    LoopEvent,
    ReplyEnded,
    RequestSent,
    ToolEffect,
    ToolEnded,
    ToolStarted,
    Trimmed,
)
from harness.core.messages import Message, Text, ToolCall, assistant, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED, STEP_LIMIT, Error
from harness.core.rows import AssistantRow, ToolCallRow, TurnEndRow, TurnStartRow
from harness.core.verdict import Violation
from harness.invariants.durability import Durable, EffectKept, LogHistory
from harness.invariants.invariant import Invariant
from harness.invariants.judge import judge
from tests.invariants.traces import cancelled, ended, found, sent, started, trace

GO, SO = user("Go."), user("So?")
PAY = ToolCall("c1", "pay", {"n": 12})
LOOK = ToolCall("c2", "look", {})
CALL, RESULT = assistant("", PAY), tool_result("c1", "paid")
NOTE = Message("system", (Text("[what came before was left out]"),))


def asks(*calls: ToolCall, text: str = "", reply: str = "1.1") -> ReplyEnded:
    return ReplyEnded(reply, "complete", assistant(text, *calls))


def runs(call: ToolCall = PAY, effect: bool = True) -> list[AnyEvent]:
    done = [ToolEffect(call.id, call.name)] if effect else []
    start, end = (
        ToolStarted(call.id, call.name, call.args),
        ToolEnded(call.id, call.name, "returned"),
    )
    return [start, *done, end]


PAID = [started(), sent(GO), asks(PAY), *runs()]
CUT = [*PAID, *cancelled(), ended(CANCELLED), started(2, "So?")]


def says(invariant: Invariant, *events: Any) -> list[str]:
    return [violation.message for violation in found(invariant, *events)]


def test_an_effect_is_in_the_next_request() -> None:
    assert says(EffectKept, *PAID, sent(CALL, RESULT, kept=1)) == []
    assert says(EffectKept, *CUT, sent(CALL, RESULT, SO, kept=1)) == []


def test_an_effect_that_the_model_never_hears_of_is_found() -> None:
    for events in ([*PAID, sent(kept=1)], [*CUT, sent(SO)], [*CUT, sent(SO, kept=1)]):
        [message] = says(EffectKept, *events)
        assert "does not show the call c1 of pay, which took effect" in message


def test_a_call_without_its_result_or_the_other_way_is_for_another_to_judge() -> None:
    for shown in (CALL, RESULT):
        assert says(EffectKept, *CUT, sent(shown, SO, kept=1)) == []


def test_a_call_with_another_id_is_known_by_its_arguments() -> None:
    other = assistant("", ToolCall("mine-1", "pay", {"n": 12}))
    assert says(EffectKept, *CUT, sent(other, SO, kept=1)) == []
    twice = assistant("", ToolCall("mine-1", "pay", {"n": 13}))
    assert len(says(EffectKept, *CUT, sent(twice, RESULT, SO, kept=1))) == 0
    assert len(says(EffectKept, *CUT, sent(SO, kept=1))) == 1


def test_a_summary_that_was_reported_may_stand_for_what_is_gone() -> None:
    for failed, lost in ((None, 0), ("it is empty", 1)):
        assert len(says(EffectKept, *PAID, Compacted(90, 9, failed), sent(GO))) == lost


def test_what_the_loop_says_itself_may_stand_for_what_is_gone() -> None:
    assert says(EffectKept, *CUT, sent(NOTE, SO)) == []
    assert says(EffectKept, *CUT, sent(user("[a summary]"), SO)) == []
    assert says(EffectKept, *CUT, Trimmed(3, 40, 1, 20), sent(SO)) == []


def test_what_the_loop_always_says_stands_for_nothing() -> None:
    first = [started(), sent(NOTE, GO), asks(LOOK), *runs(LOOK)]
    shown = [sent(assistant("", LOOK), tool_result("c2", "seen"), kept=2), asks(PAY, reply="1.2")]
    [message] = says(EffectKept, *first, *shown, *runs(), started(2, "So?"), sent(NOTE, SO, kept=4))
    assert "the call c1 of pay" in message


def test_a_loop_that_writes_calls_as_text_shows_them_in_words_of_its_own() -> None:
    seen = user("Observed: paid")
    again = [*runs(ToolCall("c3", "pay", {"n": 1})), sent(seen, kept=2)]
    assert says(EffectKept, *PAID, sent(seen, kept=1), asks(PAY, reply="1.2"), *again) == []


def test_what_is_missing_makes_no_request_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Message.calls.fget
    read: list[Message] = []

    def counted(message: Message) -> list[ToolCall]:
        read.append(message)
        return calls(message)

    monkeypatch.setattr(Message, "calls", property(counted))
    events, taken = [started()], []
    for steps in (50, 100):
        for number in range(len(events) // 5, steps):
            call = ToolCall(f"c{number}", "look", {})
            words = (assistant(f"I look, {number}."), user(f"Seen, {number}."))
            request = sent(*words[: 2 * number], kept=max(0, 2 * number - 1))
            events += [request, asks(call), *runs(call)]
        read.clear()
        assert says(EffectKept, *events) == []
        taken.append(len(read))
    assert taken[1] < 2.5 * taken[0]


def test_what_was_shown_may_be_cut_away_with_old_steps() -> None:
    shown = [*PAID, sent(CALL, RESULT, kept=1), asks(LOOK, reply="1.2"), *runs(LOOK)]
    later = sent(GO, assistant("", LOOK), tool_result("c2", "seen"))
    assert says(EffectKept, *shown, later) == []
    cut = [*shown, ended(CANCELLED), started(2, "So?")]
    after = sent(assistant("", LOOK), tool_result("c2", "seen"), SO)
    assert says(EffectKept, *cut, after) == []


def test_a_cut_turn_is_not_forgotten_as_a_whole() -> None:
    shown = [*PAID, sent(CALL, RESULT, kept=1), ended(Error("stream", "lost")), started(2, "So?")]
    [message] = says(EffectKept, *shown, sent(SO))
    assert "the call c1 of pay" in message


def test_a_completed_turn_may_be_cut_away() -> None:
    shown = [*PAID, sent(CALL, RESULT, kept=1), ended(COMPLETED), started(2, "So?")]
    assert says(EffectKept, *shown, sent(SO)) == []


def test_a_late_effect_of_a_call_that_was_shown_is_known() -> None:
    start, effect, end = runs()
    shown = [started(), sent(GO), asks(PAY), start, *cancelled(), ended(CANCELLED)]
    late = [started(2, "So?"), sent(CALL, RESULT, SO, kept=1), effect, end, ended(COMPLETED)]
    third = [started(3, "And?"), sent(user("And?"), kept=4)]
    assert says(EffectKept, *shown, *late, *third) == []


def test_an_effect_is_looked_for_in_its_own_conversation() -> None:
    beside = [
        started(),
        sent(GO, reply="helper.1", conversation="helper"),
        asks(PAY, reply="helper.1"),
        *runs(),
        sent(GO),
    ]
    assert says(EffectKept, *beside) == []
    lost = sent(assistant("Hello."), kept=1, reply="helper.2", conversation="helper")
    assert len(says(EffectKept, *beside, HELLO, lost)) == 1


def test_another_conversation_of_the_same_name_owes_nothing() -> None:
    def helper(number: str, *added: Message) -> RequestSent:
        kept = 1 if added else 0
        return sent(*added, kept=kept, reply=f"helper.{number}", conversation="helper")

    first = [started(), sent(GO), helper("1"), asks(PAY, reply="helper.1"), *runs()]
    first[2:2] = [HELLO]
    more = assistant("Hello.")
    assert says(EffectKept, *first, helper("2")) == []
    assert says(EffectKept, *first, helper("2"), helper("3", more)) == []
    assert len(says(EffectKept, *first, helper("1~2"), helper("2", more))) == 1
    # What broke off in a turn before is given to the first one of this turn.
    assert says(EffectKept, *first, started(2, "So?"), sent(SO, kept=1), helper("1~2")) == []
    # Of several at work at once, the request may be another one's than that which asked.
    both = [
        started(),
        sent(GO),
        HELLO,
        helper("1"),
        helper("2"),
        asks(PAY, reply="helper.1"),
        *runs(),
    ]
    assert says(EffectKept, *both, helper("3", more)) == []
    second = [started(2, "So?"), helper("4"), asks(PAY, reply="helper.4"), *runs()]
    assert len(says(EffectKept, *both, *second, helper("5", more))) == 1


def test_effect_kept_is_judged_only_where_there_was_an_effect() -> None:
    assert judge(trace(started(), sent(GO)), [EffectKept]).not_judged == ("EFFECT-KEPT",)
    assert judge(trace(*CUT, sent(SO)), [EffectKept]).not_judged == ()


HELLO = ReplyEnded("1.1", "complete", assistant("Hello."))
ANSWERED = [started(), sent(GO), HELLO, ended(COMPLETED), started(2, "So?")]


@pytest.mark.parametrize("shown", ["Hello.", " Hello.\n", "Hello. (shown)", "Hel"])
def test_an_answer_is_in_the_next_request(shown: str) -> None:
    assert says(Durable, *ANSWERED, sent(assistant(shown), SO, kept=1)) == []


def test_an_answer_that_is_gone_is_found() -> None:
    for added in ([SO], [assistant("Good day."), SO], [user("Hello."), SO]):
        [message] = says(Durable, *ANSWERED, sent(*added, kept=1, reply="2.1"))
        assert message == "request 2.1 does not show the answer of the turn before"


def test_an_answer_may_be_cut_away_or_summed_up_with_its_question() -> None:
    assert says(Durable, *ANSWERED, sent(SO)) == []
    assert says(Durable, *ANSWERED, sent(user("[a summary]"), GO, SO)) == []


def test_an_answer_that_was_summed_up_in_words_that_were_said_before_is_not_missed() -> None:
    for failed, missed in ((None, 0), ("it is empty", 1)):
        assert len(says(Durable, *ANSWERED, Compacted(90, 9, failed), sent(SO, kept=1))) == missed


def test_a_completed_turn_does_not_vanish_from_behind_an_older_reply() -> None:
    first = [*ANSWERED, sent(assistant("Hello."), SO, kept=1, reply="2.1")]
    second = [*first, ReplyEnded("2.1", "complete", assistant("Fine.")), ended(COMPLETED, 2)]
    third = [*second, started(3, "And?")]
    [message] = says(Durable, *third, sent(user("And?"), kept=2, reply="3.1"))
    assert message == "request 3.1 does not show the answer of the turn before"
    assert says(Durable, *third, sent(user("And?"), kept=1, reply="3.1")) == []
    noted = sent(user("[two messages are gone]"), user("And?"), kept=2, reply="3.1")
    assert says(Durable, *third, noted) == []


def test_an_answer_is_missed_where_its_question_is_still_there() -> None:
    reminder = user("(be brief)")
    first = [started(), sent(GO, reminder), HELLO, ended(COMPLETED), started(2, "So?")]
    assert says(Durable, *first, sent(assistant("Hello."), SO, reminder, kept=1)) == []
    assert len(says(Durable, *first, sent(SO, reminder, kept=1))) == 1


def test_a_loop_that_begins_anew_has_no_answer_to_lose() -> None:
    again = [started(), sent(GO), HELLO, ended(COMPLETED), started(2, "Go.")]
    assert says(Durable, *again, RequestSent("main", "2.1", 1, (), "d")) == []


def test_a_turn_without_words_goes_on_from_the_answer() -> None:
    resumed = [started(), sent(GO), HELLO, ended(COMPLETED), started(2, None)]
    assert len(says(Durable, *resumed, RequestSent("main", "2.1", 1, (), "d"))) == 1
    assert says(Durable, *resumed, sent(assistant("Hello."), kept=1)) == []


def test_an_answer_that_did_not_complete_its_turn_may_be_dropped() -> None:
    failed = [started(), sent(GO), HELLO, ended(Error("stream", "lost")), started(2, "So?")]
    assert says(Durable, *failed, sent(SO, kept=1)) == []
    nudged = [started(), sent(GO), HELLO, sent(user("(go on)"), kept=1, reply="1.2")]
    assert says(Durable, *nudged) == []


def test_a_reply_whose_tool_ran_is_in_the_next_request() -> None:
    ran = [started(), sent(GO), asks(PAY), *runs(effect=False)]
    assert says(Durable, *ran, sent(CALL, RESULT, kept=1)) == []
    [message] = says(Durable, *ran, sent(kept=1, reply="1.2"))
    assert message == "request 1.2 does not show the call c1 of pay, whose tool ran"


def test_a_reply_with_an_effect_is_for_another_to_judge() -> None:
    assert says(Durable, *CUT, sent(SO, kept=1)) == []


def test_a_tool_that_was_cut_off_leaves_nothing_to_keep() -> None:
    ran = [started(), sent(GO), asks(PAY), ToolStarted("c1", "pay", {}), *cancelled()]
    gone = [ToolEnded("c1", "pay", "cancelled"), ended(CANCELLED), started(2, "So?")]
    assert says(Durable, *ran, *gone, sent(SO, kept=1)) == []


def test_what_was_said_beside_the_calls_of_a_cut_turn_is_kept() -> None:
    for outcome in (CANCELLED, STEP_LIMIT):
        asked = [started(), sent(GO), asks(PAY, text="Let me pay."), *runs(), ended(outcome)]
        after = [*asked, started(2, "So?")]
        whole = sent(assistant("Let me pay.", PAY), RESULT, SO, kept=1)
        assert says(Durable, *after, whole) == []
        apart = sent(assistant("Let me pay."), CALL, RESULT, SO, kept=1)
        assert says(Durable, *after, apart) == []
        [message] = says(Durable, *after, sent(CALL, RESULT, SO, kept=1))
        assert message == "the request after reply 1.1 does not show what it said beside its calls"


def test_what_was_said_beside_calls_that_never_ran_may_be_dropped() -> None:
    asked = [started(), sent(GO), asks(PAY, text="Let me pay."), *cancelled(), ended(CANCELLED)]
    assert says(Durable, *asked, started(2, "So?"), sent(CALL, RESULT, SO, kept=1)) == []


def told(text: str, *calls: str) -> LoopEvent:
    return LoopEvent("done", {"text": text, "tool_calls": [{"id": call} for call in calls]})


def row(text: str) -> LogRow:
    return LogRow(AssistantRow(text))


START, END = LogRow(TurnStartRow("turn-0")), LogRow(TurnEndRow("turn-0"))
TOLD_END = LoopEvent("turn_end", {"outcome": "completed"})


@pytest.mark.parametrize(
    "events",
    [
        [told("Hi."), row("Hi.")],
        [row("Hi. And more."), told("Hi.")],
        [told("", "c1"), LogRow(ToolCallRow("c1", "pay", {}))],
        [told("")],
        [START, END, TOLD_END],
        [LoopEvent("done", {"answer": 42}), row("Hi.")],
        [LoopEvent("done", {"text": "", "tool_calls": ["pay", {"call": "c1"}]})],
    ],
)
def test_what_is_told_is_written(events: list[AnyEvent]) -> None:
    assert says(LogHistory, started(), START, *events, ended(COMPLETED)) == []


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([told("Hi.")], "the consumer was told of a reply whose text is not in the log"),
        ([told("Hi."), row("Hello.")], "the consumer was told of a reply whose text is not in"),
        ([told("", "c1")], "the consumer was told of the call c1, which is not in the log"),
        ([TOLD_END, END], "the turn's end was told before its turn_end"),
        ([TOLD_END, row("late")], "the turn's end was told before its assistant_message"),
    ],
)
def test_what_is_told_and_not_written_is_found(events: list[AnyEvent], message: str) -> None:
    [said] = says(LogHistory, started(), START, *events, ended(COMPLETED))
    assert said.startswith(message)


def test_a_row_after_the_logs_own_end_is_for_another_to_judge() -> None:
    assert says(LogHistory, started(), START, END, TOLD_END, row("late"), ended(COMPLETED)) == []


def test_a_row_counts_in_its_own_turn_only() -> None:
    first = [started(), START, row("Hi."), ended(COMPLETED)]
    assert len(says(LogHistory, *first, started(2), told("Hi."), ended(COMPLETED, 2))) == 1


@pytest.mark.parametrize("events", [[told("Hi.")], [row("Hi.")]])
def test_log_history_is_judged_only_where_both_are_reported(events: list[AnyEvent]) -> None:
    whole = trace(started(), *events, ended(COMPLETED))
    assert judge(whole, [LogHistory]).not_judged == ("LOG-HISTORY",)


def test_where_a_violation_is_shown() -> None:
    [violation] = found(LogHistory, started(), START, told("Hi."), ended(COMPLETED))
    assert violation == Violation(
        "LOG-HISTORY",
        "the consumer was told of a reply whose text is not in the log",
        3,
        1,
    )
