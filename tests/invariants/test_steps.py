"""How a step is read: which run is of which call, and what of it the next request shows."""

from collections.abc import Iterable
from typing import ClassVar

from harness.core.events import AnyEvent, Mismatch, ToolEnded, ToolStarted
from harness.core.messages import ToolCall, assistant, tool_result, user
from harness.core.outcome import CANCELLED, Error
from harness.core.trace import Entry, Trace
from harness.invariants.judge import judge
from harness.invariants.steps import Step, StepFold, shows_failure
from tests.invariants.traces import ASK, cancelled, ended, replied, sent, started, trace

OTHER = ToolCall("c2", "u", {})


class Steps(StepFold):
    """Takes every step, and breaks none."""

    id = "STEPS"
    taken: ClassVar[list[Step]]

    def take(self, step: Step) -> None:
        self.taken.append(step)


def read(*events: AnyEvent) -> list[Step]:
    """All steps of a hand-made trace."""
    return read_entries(trace(*events).entries)


def read_entries(entries: Iterable[Entry]) -> list[Step]:
    Steps.taken = []
    assert judge(Trace(entries), [Steps]).violations == ()
    return Steps.taken


def after(*added: object, kept: int = 1, reply: str = "1.2") -> AnyEvent:
    return sent(*added, reply=reply, kept=kept)  # type: ignore[arg-type]


def runs(call: ToolCall, end: str = "returned", value: object = None) -> list[AnyEvent]:
    return [
        ToolStarted(call.id, call.name, call.args),
        ToolEnded(call.id, call.name, end, value),  # type: ignore[arg-type]
    ]


def test_a_step_has_its_runs_and_its_answers() -> None:
    [step] = read(
        started(),
        sent(),
        replied("complete", ASK, OTHER),
        *runs(OTHER, value="u's"),
        *runs(ASK, value="t's"),
        after(assistant("", ASK, OTHER), tool_result("c1", "1"), tool_result("c2", "2")),
    )
    assert [slot.ended.value for slot in step.slots if slot.ended] == ["t's", "u's"]
    assert [slot.answer.text for slot in step.slots if slot.answer] == ["1", "2"]
    assert [(slot.shown, slot.told) for slot in step.slots] == [(0, 0), (1, 1)]
    assert (step.turn, step.at, step.answered_at, step.went_on) == (1, 2, 7, True)
    assert step.structured


def test_a_reply_without_calls_or_without_an_end_is_no_step() -> None:
    assert read(started(), sent(), replied()) == []
    assert read(started(), sent(), replied("failed")) == []
    assert read(started(), sent()) == []


def test_calls_with_one_id_are_told_apart_by_their_arguments() -> None:
    first, second = ToolCall("c", "t", {"n": 1}), ToolCall("c", "t", {"n": 2})
    [step] = read(
        started(),
        sent(),
        replied("complete", first, second),
        *runs(second, value=2),
        *runs(first, value=1),
        after(assistant("", first, second), tool_result("c", "1"), tool_result("c", "2")),
    )
    assert [slot.shared for slot in step.slots] == [True, True]
    assert [slot.ended.value for slot in step.slots if slot.ended] == [1, 2]
    assert [slot.answer.text for slot in step.slots if slot.answer] == ["1", "2"]


def test_a_run_without_arguments_is_of_the_call_that_has_none_and_not_of_one_that_is_no_json() -> (
    None
):
    garbled, bare = ToolCall("c", "t", None, "{"), ToolCall("c", "t", None)
    [step] = read(started(), sent(), replied("complete", garbled, bare), *runs(bare, value=2))
    assert [slot.ended.value if slot.ended else None for slot in step.slots] == [None, 2]


def test_runs_with_one_id_that_overlap_are_told_apart_by_their_tasks() -> None:
    call = ToolCall("c", "t", {})
    events = [
        ("1", started()),
        ("1", sent()),
        ("1", replied("complete", call, call)),
        ("1.1", ToolStarted("c", "t", {})),
        ("1.2", ToolStarted("c", "t", {})),
        ("1.2", ToolEnded("c", "t", "returned", 2)),
        ("1.1", ToolEnded("c", "t", "returned", 1)),
    ]
    [step] = read_entries([Entry(at, task, event) for at, (task, event) in enumerate(events)])
    assert [slot.ended.value for slot in step.slots if slot.ended] == [1, 2]


def test_an_id_that_an_earlier_reply_had_is_shared() -> None:
    steps = read(
        started(),
        sent(),
        replied("complete", ASK),
        *runs(ASK, value=1),
        after(assistant("", ASK), tool_result("c1", "1")),
        replied("complete", ASK, reply="1.2"),
        *runs(ASK, value=2),
        after(assistant("", ASK), tool_result("c1", "2"), kept=3, reply="1.3"),
    )
    assert [step.slots[0].shared for step in steps] == [False, True]
    assert [[run.ended.value for run in step.slots[0].runs if run.ended] for step in steps] == [
        [1],
        [2],
    ]


def test_a_tool_may_run_before_its_reply_has_ended() -> None:
    [step] = read(
        started(),
        sent(),
        *runs(ASK, value=1),
        after(assistant("", ASK), tool_result("c1", "1")),
        replied("complete", ASK),
    )
    assert len(step.slots[0].runs) == 1
    assert step.went_on
    assert step.slots[0].answer is not None


def test_a_reply_that_ends_after_its_turn_has_that_turns_end() -> None:
    [step] = read(started(), sent(), *cancelled(), ended(CANCELLED), replied("complete", ASK))
    assert (step.outcome, step.disturbed, step.went_on) == (CANCELLED, True, False)


def test_other_ids_are_matched_by_name_and_order() -> None:
    shown = assistant("", ToolCall("x", "t", {}), ToolCall("y", "u", {}))
    [step] = read(
        started(),
        sent(),
        replied("complete", ASK, OTHER),
        after(shown, tool_result("x", "1"), tool_result("y", "2")),
    )
    assert [slot.answer.text for slot in step.slots if slot.answer] == ["1", "2"]


def test_a_history_that_was_cut_shows_a_step_only_where_its_calls_come_last() -> None:
    old = [started(), sent(user("Go."), user("And go.")), replied("complete", ASK)]
    whole = [assistant("", ASK), tool_result("c1", "1")]
    [step] = read(*old, after(user("Cut."), *whole, kept=0))
    assert step.slots[0].answer is not None
    [step] = read(*old, after(user("Cut."), kept=0))
    assert step.shown is None
    later = [assistant("", OTHER), tool_result("c2", "2")]
    [step] = read(*old, after(user("Cut."), *whole, *later, kept=0))
    assert step.shown is None


def test_the_same_request_again_shows_nothing() -> None:
    [step] = read(started(), sent(), replied("complete", ASK), sent(reply="1.1~2", kept=1))[:1]
    assert step.slots[0].answer is None


def test_the_same_reply_to_two_requests_at_once_is_one_step() -> None:
    again = sent(user("Go."), reply="1.1~2")
    both = [replied("complete", ASK), replied("complete", ASK, reply="1.1~2")]
    assert len(read(started(), sent(), again, *both)) == 1


def test_an_error_right_after_a_reply_broke_the_turn_unless_something_explains_it() -> None:
    asked = [started(), sent(), replied("complete", ASK)]
    end = ended(Error("KeyError", "t"))
    assert read(*asked, end)[0].broke == Error("KeyError", "t")
    assert read(*asked, *runs(ASK), end)[0].broke == Error("KeyError", "t")
    assert read(*asked, *runs(ASK, "raised"), end)[0].broke is None
    assert read(*asked, Mismatch("UnrequestedTool", ""), end)[0].broke is None
    assert read(*asked, ended(CANCELLED))[0].broke is None


def test_a_failure_shows_by_flag_by_word_or_by_the_error_itself() -> None:
    assert shows_failure(tool_result("c", "null", is_error=True))
    for text in (
        "Error: no",
        '{"ok":false,"error":"no"}',
        "There is no tool called magic.",
        "Unknown tool name: 'magic'.",
        "not executed: the arguments are not valid JSON",
        "It timed out.",
    ):
        assert shows_failure(tool_result("c", text)), text
    assert shows_failure(tool_result("c", "Sorry, busy today"), "busy")
    for text in ("sunny", "null", '"14:05"', "nothing new", ""):
        assert not shows_failure(tool_result("c", text), ""), text
