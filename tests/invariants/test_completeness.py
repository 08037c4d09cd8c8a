"""COMPLETE-ONLY and NO-SILENT-DROP, rule by rule."""

import pytest
from msgspec.structs import replace

from harness.core.events import ReplyEnded, ToolStarted
from harness.core.messages import ToolCall, assistant, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED
from harness.invariants.completeness import CompleteOnly, NoSilentDrop
from harness.invariants.invariant import Facts
from tests.invariants.traces import ASK, cancelled, ended, found, judged, replied, sent, started

START = ToolStarted("c1", "t", {})
BROKEN = ReplyEnded("1.1", "failed", assistant("", ASK), None, "lost")
OTHER = ToolCall("c2", "u", {})
RESULT = tool_result("c1", "ok")


def test_tools_of_whole_replies_may_run() -> None:
    whole = replied("complete", ASK)
    assert found(CompleteOnly, started(), sent(), whole, START) == []
    assert found(CompleteOnly, started(), sent(), START, whole) == []


def test_no_tool_of_a_broken_reply_may_run() -> None:
    for events in ([BROKEN, START], [START, BROKEN]):
        [violation] = found(CompleteOnly, started(), sent(), *events)
        assert violation.message == (
            "t ran for call c1, though reply 1.1 failed (lost) after it had asked for that"
        )
        assert violation.turn == 1


def test_a_tool_may_run_when_the_reply_has_come_again_and_whole() -> None:
    again = replied("complete", ASK, reply="1.1~2")
    assert found(CompleteOnly, started(), sent(), BROKEN, sent(), again, START) == []
    assert len(found(CompleteOnly, started(), sent(), BROKEN, sent(), again, START, START)) == 1


def test_complete_only_is_judged_where_a_reply_broke() -> None:
    assert not judged(CompleteOnly, started(), sent(), replied("complete", ASK), START)
    assert judged(CompleteOnly, started(), sent(), replied("torn"))
    assert judged(CompleteOnly, started(), sent(), BROKEN)


def says(text: str, *calls: ToolCall) -> list[object]:
    return [
        started(),
        sent(),
        replace(replied("complete", *calls), message=assistant(text, *calls)),
    ]


def following(*added: object, kept: int = 1) -> object:
    return sent(*added, reply="1.2", kept=kept)  # type: ignore[arg-type]


def test_what_a_reply_says_and_asks_is_in_the_next_request() -> None:
    shown = following(assistant("Let me  look.", ASK), RESULT)
    assert found(NoSilentDrop, *says("Let me look.", ASK), shown) == []


def test_text_beside_calls_that_is_gone_is_found() -> None:
    [violation] = found(
        NoSilentDrop, *says("Let me look.", ASK), following(assistant("", ASK), RESULT)
    )
    assert violation.message == (
        "the request after reply 1.1 does not show what reply 1.1 said beside its calls"
    )
    assert (violation.entry, violation.turn) == (3, 1)


def test_a_call_that_is_gone_and_did_not_run_is_found() -> None:
    shown = following(assistant("", ASK), RESULT)
    [violation] = found(NoSilentDrop, *says("", ASK, OTHER), shown)
    assert violation.message == (
        "the request after reply 1.1 has no trace of u (c2), which no tool ran for"
    )
    ran = ToolStarted("c2", "u", {})
    assert found(NoSilentDrop, *says("", ASK, OTHER), ran, shown) == []


@pytest.mark.parametrize(
    "call",
    [ToolCall("c1", "u"), ToolCall("", "u"), ToolCall("c2", "u", [1]), ToolCall("c2", "magic")],
)
def test_calls_that_other_invariants_judge_are_left_to_them(call: ToolCall) -> None:
    facts = Facts(tools=frozenset(["t", "u"]))
    shown = following(assistant("", ASK), RESULT)
    assert found(NoSilentDrop, *says("", ASK, call), shown, facts=facts) == []


def test_plain_text_is_a_trace_until_the_agent_shows_that_it_knows_the_form() -> None:
    plain = following(assistant("I call t."), user("It said: busy."))
    assert found(NoSilentDrop, *says("", ASK), plain) == []
    form = [
        replied("complete", OTHER, reply="1.2"),
        sent(assistant("", OTHER), kept=3, reply="1.3"),
    ]
    assert len(found(NoSilentDrop, *says("", ASK), plain, *form)) == 1


def test_it_says_nothing_of_a_reply_that_was_thrown_away_cut_off_or_never_followed() -> None:
    asked = says("Let me look.", ASK)
    again = sent(reply="1.1~2", kept=1, conversation="main")
    cut = sent(user("Cut."), reply="1.2")
    next_turn = [*cancelled(), ended(CANCELLED), started(2), following(user("And?"))]
    for events in ([replace(again, added=())], [cut], next_turn, [ended(COMPLETED)]):
        assert found(NoSilentDrop, *asked, *events) == []
        assert not judged(NoSilentDrop, *asked, *events)
