"""PAIR and RESUME, rule by rule."""

from harness.core.events import FaultInjected, Mismatch, ReplyEnded
from harness.core.messages import assistant, tool_result, user
from harness.core.outcome import CANCELLED, COMPLETED, STEP_LIMIT, Error
from harness.invariants.judge import judge
from harness.invariants.pairing import Pair, Resume
from tests.invariants.traces import ASK, cancelled, ended, found, replied, sent, started, trace

CALL = assistant("", ASK)
RESULT = tool_result("c1", "ok")


def test_a_call_with_its_result_is_fine_however_the_history_grows() -> None:
    events = [started(), sent(user("Go."), CALL, RESULT), sent(CALL, RESULT, kept=3)]
    assert found(Pair, *events) == []


def test_each_kind_of_breach_is_found() -> None:
    messages = [
        ([user("Go."), CALL], "no result follows for the call c1"),
        ([user("Go."), RESULT], "which no call before it asked"),
        ([CALL, RESULT, RESULT], "a second result for c1"),
        ([CALL, user("Well?"), RESULT], "no result follows"),
    ]
    for added, says in messages:
        violations = found(Pair, started(), sent(*added))
        assert says in violations[0].message


def test_a_breach_is_told_once_however_often_it_is_sent() -> None:
    events = [started(), sent(user("Go."), CALL, user("Well?")), sent(user("And?"), kept=3)]
    assert len(found(Pair, *events)) == 1


def test_a_history_cut_back_is_judged_from_the_cut() -> None:
    events = [started(), sent(user("Go."), CALL, RESULT), sent(user("Other."), kept=2)]
    [violation] = found(Pair, *events)
    assert "messages[1]: no result follows" in violation.message


def test_an_invalid_request_after_a_cut_turn_is_resumes_to_judge() -> None:
    events = [
        started(),
        *cancelled(),
        ended(CANCELLED),
        started(2),
        sent(user("Go."), CALL, user("Well?")),
        replied("refused"),
        ended(Error("refused", "")),
    ]
    assert found(Pair, *events) == []
    [violation] = found(Resume, *events)
    assert "the request after a cancelled turn is not valid" in violation.message


def test_a_turn_after_a_cut_one_must_complete_unless_disturbed() -> None:
    cut = [started(), *cancelled(), ended(CANCELLED), started(2), sent(reply="2.1")]
    failed = ended(Error("stream", "lost"))
    [violation] = found(Resume, *cut, failed)
    assert "ended as error (stream: lost), though nothing disturbed it" in violation.message
    assert found(Resume, *cut, FaultInjected("torn", "2.1"), failed) == []
    assert found(Resume, *cut, Mismatch("ScriptExhausted", "no reply 2"), failed) == []
    assert found(Resume, *cut, *cancelled(2), ended(CANCELLED)) == []
    assert found(Resume, *cut, ReplyEnded("2.1", "torn", None), failed) == []
    assert found(Resume, *cut, ReplyEnded("2.1", "failed", None), failed) != []
    assert found(Resume, *cut, ended(STEP_LIMIT)) == []
    broken = [started(), ended(Error("stream", "lost")), started(2)]
    [violation] = found(Resume, *broken, failed)
    assert violation.message.startswith("the turn after an error turn ended as error")


def test_resume_is_judged_only_where_a_turn_follows_a_cut_one() -> None:
    whole = trace(started(), ended(COMPLETED), started(2), ended(COMPLETED, 2))
    assert judge(whole, [Resume]).not_judged == ("RESUME",)
    cut = trace(started(), ended(CANCELLED), started(2), ended(COMPLETED, 2))
    assert judge(cut, [Resume]).not_judged == ()
