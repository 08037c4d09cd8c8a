"""PINNED, TASK-KEPT, TRIM, BOUND and ESTIMATE, rule by rule."""

import pytest
from msgspec.structs import replace

from harness.core.budget import Budget
from harness.core.events import Estimated, ReplyEnded, RequestHead, RequestSent, Trimmed
from harness.core.messages import Message, Text, ToolCall, ToolSchema, assistant, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED
from harness.invariants.invariant import Facts
from harness.invariants.trimming import Bound, Estimate, Pinned, TaskKept, Trim
from tests.invariants.traces import ended, found, judged, sent, started

GO, SO, AND = user("Go."), user("So?"), user("And?")
GONE, SEEN = assistant("Gone."), assistant("Seen.")
RULES = Message("system", (Text("Never curse."),))
TODAY = Message("system", (Text("It is Monday."),))
NOTE = Message("system", (Text("[2 messages were left out]"),))
TOOLS = (ToolSchema("pay"), ToolSchema("look"))


def with_head(
    *added: Message, kept: int = 0, system: str = "Be brief.", tools: tuple[ToolSchema, ...] = TOOLS
) -> RequestSent:
    return RequestSent("main", "1.1", kept, added, "d", RequestHead("m", system, tools))


def more(*added: Message, kept: int = 0) -> RequestSent:
    """A request with the head of the one before."""
    return RequestSent("main", "2.1", kept, added, "d")


def step(number: int) -> tuple[Message, Message]:
    return assistant("", ToolCall(f"c{number}", "look", {})), tool_result(f"c{number}", "ok")


A, B, C, D = step(1), step(2), step(3), step(4)


def test_what_stands_before_the_history_stays_through_a_cut() -> None:
    for second in (more(RULES, NOTE, SO), with_head(RULES, SO)):
        assert found(Pinned, started(), with_head(RULES, GO, GONE, SO), second) == []


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (with_head(RULES, SO, system=""), "was cut and lost its system prompt"),
        (with_head(RULES, SO, tools=TOOLS[:1]), "was cut and lost tools: look"),
        (more(NOTE, SO), "was cut and lost the system message 'Never curse.'"),
        (more(GO, GONE, SO), "was cut and lost the system message 'Never curse.'"),
    ],
)
def test_what_a_cut_takes_from_before_the_history_is_found(second: RequestSent, says: str) -> None:
    [violation] = found(Pinned, started(), with_head(RULES, GO, GONE, SO), second)
    assert says in violation.message


def test_a_summary_may_stand_beside_the_prompt() -> None:
    first = [started(), with_head(RULES, GO, GONE, SO)]
    longer = with_head(RULES, SO, system="Be brief.\nBefore: the user said go.")
    assert found(Pinned, *first, longer) == []
    inside = Message("system", (Text("Never curse. Before: the user said go."),))
    assert found(Pinned, *first, more(inside, SO)) == []
    assert found(Pinned, *first, with_head(SO, system="Be brief. Never curse.")) == []


def test_a_loop_that_changes_its_prompt_at_any_time_may_do_it_at_a_cut() -> None:
    first = [started(), with_head(TODAY, GO, system="It is nine.")]
    tuesday = Message("system", (Text("It is Tuesday."),))
    other = with_head(tuesday, GO, GONE, SO, system="It is ten.", tools=TOOLS[:1])
    cut = with_head(tuesday, SO, system="It is eleven.", tools=())
    [violation] = found(Pinned, *first, other, cut)
    assert "lost tools: pay" in violation.message  # which had not changed before


def test_what_is_lost_is_told_once() -> None:
    cut = [more(NOTE, SO), more(AND)]
    assert len(found(Pinned, started(), with_head(RULES, GO, GONE, SO), *cut)) == 1


def test_the_note_of_a_cut_that_was_made_before_the_first_request_is_not_pinned() -> None:
    other = Message("system", (Text("[4 messages were left out]"),))
    unsent = [started(), ended(CANCELLED), started(2, "So?")]
    assert found(Pinned, *unsent, with_head(NOTE, SO), started(3, "And?"), more(other, AND)) == []


def test_each_conversation_has_a_front_of_its_own() -> None:
    other = RequestSent("title", "title.1", 0, (GO,), "d", RequestHead("m", "A title.", ()))
    assert found(Pinned, started(), with_head(RULES, GO), other, more(SO, kept=2)) == []


PAY_ONLY = TOOLS[:1]


def test_a_tool_that_was_called_may_have_taken_itself_away() -> None:
    first = [started(), with_head(GO, GONE, SO)]
    leave = ReplyEnded("1.1", "complete", assistant("", ToolCall("c", "look", {})))
    assert found(Pinned, *first, leave, with_head(SO, tools=PAY_ONLY)) == []
    assert len(found(Pinned, *first, leave, with_head(SO, tools=TOOLS[1:]))) == 1
    for other in (replace(leave, reply="helper.1"), ReplyEnded("1.1", "torn")):
        assert len(found(Pinned, *first, other, with_head(SO, tools=PAY_ONLY))) == 1


def test_another_conversation_of_the_same_name_has_pins_of_its_own() -> None:
    def helper(number: int, request: RequestSent) -> RequestSent:
        return replace(request, conversation="helper", reply=f"helper.{number}")

    first = [started(), helper(1, with_head(GO)), helper(2, more(GONE, SO, kept=1))]
    assert found(Pinned, *first, helper(3, with_head(GO, tools=PAY_ONLY))) == []
    same = [*first, helper(3, more(GO)), helper(4, more(GONE, SO, kept=1))]
    assert found(Pinned, *same) == []
    assert len(found(Pinned, *same, helper(5, with_head(GONE, GO, tools=PAY_ONLY)))) == 1


def test_pinned_is_judged_only_where_something_was_cut() -> None:
    grows = [started(), with_head(RULES, GO), more(GONE, SO, kept=2)]
    assert not judged(Pinned, *grows)
    assert judged(Pinned, *grows, more(RULES, SO))


def test_the_users_words_are_in_each_request_of_the_turn() -> None:
    events = [started(), sent(GO), sent(*A, kept=1), sent(*B, kept=3), sent(GO, *B)]
    assert found(TaskKept, *events) == []


def test_words_that_are_gone_are_found_once_a_turn() -> None:
    events = [started(), sent(GO), sent(*A), sent(*B), started(2, "So?"), sent(*B, GO)]
    says = [violation.message for violation in found(TaskKept, *events)]
    assert says == [
        "request 1.1 has lost what the user said in turn 1",
        "request 1.1 has lost what the user said in turn 2",
    ]


def test_the_users_words_may_have_more_around_them() -> None:
    events = [started(text=" Go.\n"), sent(user("<time>9:00</time> Go. (Be brief.)"))]
    assert found(TaskKept, *events) == []
    assert len(found(TaskKept, *events, sent(assistant("Go.")))) == 1


def test_another_model_may_put_the_words_differently() -> None:
    beside = sent(GO, reply="summary.1", conversation="summary")
    summed = ReplyEnded("summary.1", "complete", assistant("The user wants to leave."))
    events = [started(), sent(GO), beside, summed]
    assert found(TaskKept, *events, sent(user("Before: The user wants to leave."))) == []
    assert len(found(TaskKept, *events, sent(user("Before: nothing.")))) == 1


def test_a_turn_without_words_has_none_to_lose() -> None:
    for text in (None, "", " "):
        assert not judged(TaskKept, started(text=text), sent(*A))


LONG = [started(), sent(GO, *A, *B, *C)]


def test_a_cut_takes_the_oldest_first() -> None:
    for left in ((*C, *D), (GO, *C, *D), (NOTE, GO, *B, *C, *D)):
        assert found(Trim, *LONG, sent(*left)) == []


def test_a_gap_is_found() -> None:
    for left, lost in (((*A, *C, *D), "c2"), ((GO, *A, *C), "c2"), ((GO, *A, *D), "c2")):
        [violation] = found(Trim, *LONG, sent(*left))
        assert violation.message.endswith(
            f"was cut and lost the call {lost}, though older ones are kept"
        )
    [violation] = found(Trim, *LONG, sent(*C, kept=3))
    assert "lost the call c2" in violation.message


def test_a_step_taken_back_at_the_end_is_no_gap() -> None:
    assert found(Trim, *LONG, sent(SO, kept=5)) == []
    assert found(Trim, *LONG, sent(RULES, GO, *A, *B, SO)) == []


def test_what_is_shortened_is_still_there() -> None:
    short = tool_result("c2", "[left out]")
    assert found(Trim, *LONG, sent(B[0], short, *C, kept=3)) == []


TALK = [
    started(),
    ReplyEnded("1.1", "complete", GONE),
    started(2, "So?"),
    ReplyEnded("2.1", "complete", SEEN),
    started(3, "And?"),
    ReplyEnded("3.1", "complete", assistant("Done.")),
    sent(GO, GONE, SO, SEEN, AND, assistant("Done."), AND),
]


def test_an_answer_is_not_cut_from_between_others() -> None:
    [violation] = found(Trim, *TALK, sent(AND, assistant("Done."), AND, kept=2))
    assert "lost the reply 'Seen.'" in violation.message
    assert found(Trim, *TALK, sent(SEEN, AND, assistant("Done."), AND)) == []


def test_an_answer_that_may_have_been_shortened_is_not_missed() -> None:
    short = assistant("[S.]")
    assert found(Trim, *TALK, sent(short, AND, assistant("Done."), AND, kept=2)) == []


def test_answers_may_be_kept_where_calls_are_not() -> None:
    events = [started(), ReplyEnded("1.1", "complete", GONE), sent(GO, GONE, *A, SO)]
    assert found(Trim, *events, sent(SO, kept=2)) == []


def test_trim_is_judged_only_where_something_is_gone() -> None:
    assert not judged(Trim, *LONG, sent(*D, kept=7))
    assert judged(Trim, *LONG, sent(SO))
    assert not judged(Trim, *LONG, sent(NOTE, GO, *A, *B, *C))
    assert judged(Trim, *LONG, sent(*C))


CUT = Trimmed(4, 400, 5, 100)
LEFT = sent(NOTE, user("Before."), GONE, GO, *A)


def test_a_request_that_was_cut_is_within_its_budget() -> None:
    assert found(Bound, started(), CUT, Estimated(100), LEFT) == []
    [violation] = found(Bound, started(), CUT, Estimated(101), LEFT)
    assert violation.message == (
        "request 1.1 was cut to a budget of 100 tokens and still has ~101, in 5 messages"
    )


def test_the_messages_that_are_always_kept_may_be_too_many() -> None:
    facts = Facts(budget=Budget(keep_messages=5))
    assert found(Bound, started(), CUT, Estimated(101), LEFT, facts=facts) == []
    few = Facts(budget=Budget(keep_messages=4))
    assert len(found(Bound, started(), CUT, Estimated(101), LEFT, facts=few)) == 1


def test_the_turn_that_is_played_may_be_too_large() -> None:
    for added in ((NOTE, GO, *A), (GO, *A), (RULES, user("[a summary]"), GO, *A)):
        assert found(Bound, started(), CUT, Estimated(500), sent(*added)) == []


@pytest.mark.parametrize("events", [[CUT], [Estimated(500)], []])
def test_bound_is_judged_only_where_a_cut_was_estimated(events: list[Trimmed | Estimated]) -> None:
    assert not judged(Bound, started(), *events, LEFT, ended(COMPLETED))


def test_a_cut_counts_for_the_next_request_only() -> None:
    assert found(Bound, started(), CUT, Estimated(90), LEFT, Estimated(500), LEFT) == []


def large(tokens: int) -> RequestSent:
    return RequestSent("main", "1.1", 0, (GO,), "d", None, tokens)


@pytest.mark.parametrize("estimate", [200, 400, 800])
def test_an_estimate_may_be_off_by_a_factor_of_two(estimate: int) -> None:
    assert found(Estimate, started(), Estimated(estimate), large(400)) == []


@pytest.mark.parametrize("estimate", [0, 199, 801])
def test_an_estimate_that_is_further_off_is_found(estimate: int) -> None:
    [violation] = found(Estimate, started(), Estimated(estimate), large(400))
    assert violation.message == (
        f"request 1.1 was estimated as {estimate} tokens; a provider would count about 400"
    )


def test_a_small_request_has_no_size_to_speak_of() -> None:
    assert not judged(Estimate, started(), Estimated(1), large(199))
    assert not judged(Estimate, started(), large(400))
    assert judged(Estimate, started(), Estimated(300), large(200))
