"""An agent that is a program: played over HTTP, stopped by signals, judged as any other."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from msgspec.structs import replace

from harness.core.errors import UsageError
from harness.core.events import CancelRequested, RunStopped, event_kind
from harness.core.outcome import Error, outcome_name
from harness.fakes.script import Also, AlsoWhen, Reply, ScriptedCall
from harness.fakes.tool_spec import ToolSpec
from harness.runner.agents import Subject, command_subject
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Cancel, Expect, Scenario, Turn

PROGRAM = Path(__file__).parents[1] / "subjects" / "program.py"
LINES = shlex.join([sys.executable, str(PROGRAM)])
ONCE = f"{LINES} '{{turn}}'"
CALLS = Reply(calls=(ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("clock", {})))
FINE = Reply(say="It is fine.")
ASK = Turn("How is it", (CALLS, FINE), expect=Expect(say="It is fine.", requests=2))
THANK = Turn("Thanks", (Reply(say="Welcome."),))


def case(*turns: Turn) -> Scenario:
    return Scenario("case", tools=(ToolSpec("weather"), ToolSpec("clock")), turns=turns)


def limited(line: str, turn: float = 30, cancel: float = 30) -> Subject:
    subject = command_subject(line)
    assert subject.process is not None
    return replace(subject, process=replace(subject.process, turn_limit=turn, cancel_limit=cancel))


def outcomes(result: Result) -> list[str]:
    return [outcome_name(each) for each in result.outcomes]


def events(result: Result) -> list[str]:
    return [event_kind(type(each.event)) for each in result.trace]


def test_a_program_that_answers_lines() -> None:
    result = run(case(ASK, THANK), command_subject(LINES)).check()
    assert outcomes(result) == ["completed", "completed"]
    assert len(result.trace.requests()[-1].messages) == 6  # it has kept the conversation
    assert not {"PAIR", "SHAPE", "TERMINAL-TRUTH", "ONE-TERMINAL"} & set(result.verdict.not_judged)
    assert "SERIAL" in result.verdict.not_judged
    assert "a replay may differ" in str(result)


def test_a_program_that_is_run_once_a_turn() -> None:
    result = run(case(ASK, THANK), command_subject(ONCE)).check()
    assert outcomes(result) == ["completed", "completed"]
    assert len(result.trace.requests()[-1].messages) == 1


def test_what_a_program_does_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "orphan")
    result = run(case(ASK), command_subject(LINES))
    assert not result.ok
    assert "PAIR" in [each.invariant for each in result.verdict.violations]
    first = result.outcomes[0]
    assert first == Error("ExitCode", "the program ended with exit code 1: HTTP 400")


@pytest.mark.parametrize("line", [LINES, ONCE])
@pytest.mark.parametrize(
    "cancel",
    [
        Cancel(after="request_sent", nth=2),
        Cancel(after="reply_ended"),
        Cancel(after="request_sent", name="1.1"),
    ],
)
def test_a_turn_is_cancelled_at_a_request_and_the_next_one_works(line: str, cancel: Cancel) -> None:
    result = run(case(Turn("How is it", (CALLS, FINE), cancel)), command_subject(line)).check()
    assert outcomes(result) == ["cancelled", "completed"]
    seen = events(result)
    ended = seen.index("turn_ended")
    assert seen.index("cancel_requested") < seen.index("cancel_delivered") < ended
    assert "request_sent" not in seen[seen.index("cancel_delivered") : ended]


@pytest.mark.parametrize("after", ["request_sent", "delta", "reply_ended"])
def test_a_stream_that_is_cancelled_is_closed(after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "streams")
    turn = Turn("How is it", (FINE,), Cancel(after=after))
    result = run(case(turn), command_subject(LINES)).check()
    assert outcomes(result) == ["cancelled", "completed"]


@pytest.mark.parametrize(("mode", "outcome"), [("clean", "cancelled"), ("stays", "completed")])
def test_a_program_that_handles_the_signal(
    mode: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODE", mode)
    turn = Turn("How is it", (FINE,), Cancel(after="request_sent"))
    result = run(case(turn, replace(THANK, user="More")), command_subject(LINES))
    assert outcomes(result) == [outcome, "completed"]


def test_a_program_that_will_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "deaf")
    turn = Turn("How is it", (CALLS, FINE), Cancel(after="request_sent"))
    result = run(case(turn), limited(LINES, cancel=0.1))
    assert outcomes(result) == []
    assert result.trace.stop is not None
    assert result.trace.stop[1] == RunStopped(
        "cancel_deadline", "it goes on 0.1 seconds after SIGINT"
    )
    assert not result.ok


def test_a_cancel_at_a_time() -> None:
    slow = Turn("How is it", (replace(FINE, takes=3_600_000_000_000),), Cancel(at=500_000_000))
    result = run(case(slow), command_subject(LINES))
    (asked,) = [each.event for each in result.trace if isinstance(each.event, CancelRequested)]
    assert asked.trigger == "at 500ms"
    assert len(result.outcomes) == 2


def test_a_turn_that_takes_too_long_is_ended() -> None:
    slow = Turn("How is it", (replace(FINE, takes=3_600_000_000_000),))
    result = run(case(slow), limited(LINES, turn=0.3))
    assert result.trace.stop is not None
    assert result.trace.stop[1].reason == "time_limit"


def test_a_program_that_ends_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "exits")
    result = run(case(THANK), command_subject(LINES))
    assert result.outcomes[0] == Error("NoAnswer", "the program ended without an answer")
    messages = [each.message for each in result.failures]
    assert not [each for each in messages if "was never asked for" in each]


def test_replies_that_nobody_asks_for_and_a_cancel_that_does_not_fire() -> None:
    turn = replace(THANK, replies=(*THANK.replies, FINE), cancel=Cancel(after="reply_ended", nth=2))
    kinds = [each.kind for each in run(case(turn), command_subject(LINES)).failures]
    assert kinds == ["unused reply", "cancel did not fire"]


def test_a_reply_beside_the_turns_that_nobody_asks_for() -> None:
    title = Also("title", AlsoWhen(message_contains="title"), (FINE,))
    result = run(replace(case(THANK), also=(title,)), command_subject(LINES))
    assert [each.kind for each in result.failures] == ["unused reply"]


def test_an_answer_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.runner.program._LINE", 100)
    turn = Turn("Thanks", (Reply(say="a" * 1000),))
    result = run(case(turn), command_subject(LINES))
    assert result.outcomes[0] == Error("NoAnswer", "the program ended without an answer")


def test_a_resume_is_an_empty_line() -> None:
    turns = (Turn("How is it", (CALLS, FINE), Cancel(after="request_sent")), Turn(None, (FINE,)))
    assert outcomes(run(case(*turns), command_subject(LINES)))[0] == "cancelled"


def test_what_a_program_starts_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "child")
    turn = Turn("How is it", (CALLS, FINE), Cancel(after="request_sent"))
    assert outcomes(run(case(turn), command_subject(LINES)))[0] == "cancelled"


@pytest.mark.parametrize(
    ("line", "turn", "says"),
    [
        (LINES, Turn("a", (FINE,), Cancel(point="1#2/now")), "its code is not seen"),
        (LINES, Turn("a", (FINE,), Cancel(after="delta", mode="late")), "after delta, late"),
        (LINES, Turn("a\nb", (FINE,)), "give it the text as an argument, {turn}"),
        ("no_such_program", Turn("a", (FINE,)), "'no_such_program' cannot be started"),
    ],
)
def test_what_a_command_cannot_do(line: str, turn: Turn, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        run(case(turn), command_subject(line))


@pytest.mark.parametrize(("line", "says"), [(" ", "is empty"), ("a 'b", "cannot be read")])
def test_a_command_that_is_none(line: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        command_subject(line)


def test_a_command_is_neither_swept_nor_played_at_another_level() -> None:
    from harness.runner.exploring import sweep

    with pytest.raises(UsageError, match="can be run, but not swept"):
        sweep(case(THANK), command_subject(LINES))
    with pytest.raises(UsageError, match="never at the level http"):
        run(case(THANK), command_subject(LINES), level="http")


WAITS = """
import os, sys, signal, subprocess
if sys.argv[1] == "leaves":
    subprocess.Popen(["sleep", "9"], start_new_session=True)
    sys.exit("bye")
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.write(os.open(sys.argv[2], os.O_WRONLY), b"ready\\n")
signal.pause()
"""


@pytest.mark.parametrize("once", [True, False])
def test_somebody_who_holds_its_output_is_not_waited_for(once: bool) -> None:
    words = [sys.executable, "-c", WAITS, "leaves", *(["{turn}"] if once else [])]
    result = run(case(THANK), limited(shlex.join(words)))
    assert result.outcomes[0] == Error("ExitCode", "the program ended with exit code 1: bye")


@pytest.mark.parametrize(
    ("sent", "code"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGHUP", -1)], ids=str
)
def test_a_program_ends_with_the_harness(sent: str, code: int, tmp_path: Path) -> None:
    """Whatever ends the harness: the program sits in a group of its own, and ignores Ctrl-C."""
    file = tmp_path / "case.yaml"
    file.write_text("about: a\nturns: [{user: hi, model: [{say: Hello.}]}]\n")
    told = tmp_path / "told"
    os.mkfifo(told)
    words = shlex.join([sys.executable, "-c", WAITS, "waits", str(told), "{turn}"])
    line = [sys.executable, "-m", "harness", "run", str(file), "--command", words]
    with subprocess.Popen(line, stdout=PIPE, stderr=PIPE) as harness:
        with told.open() as pipe:
            assert pipe.readline() == "ready\n"
            harness.send_signal(getattr(signal, sent))
            assert pipe.read() == ""  # nobody holds the other end any more
        said = harness.communicate(timeout=30)[1]
    assert harness.returncode == code
    assert b"Traceback" not in said


def test_what_tools_of_the_program_do_is_not_expected_of_it() -> None:
    turn = replace(ASK, expect=Expect(say="It is fine.", tools=("weather", "clock")))
    result = run(case(turn), command_subject(LINES))
    assert result.ok, result.failures
    assert "expect tools of turn 1" in result.verdict.not_judged
