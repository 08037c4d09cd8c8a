"""What a terminal shows: the table, failures with their place and their excerpt, the time line."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

from harness.core.events import Delta, LoopEvent, StateEntered, ToolEffect, TurnStarted
from harness.core.outcome import CANCELLED, COMPLETED
from harness.core.trace import Entry, Trace
from harness.core.verdict import Accepted, Verdict, Violation
from harness.invariants import INVARIANTS
from harness.invariants.relations import RELATIONS
from harness.report import terminal
from harness.report.terminal import Report, make_console, not_judged, print_results, print_run
from harness.report.timeline import STYLES, mark, marks, timeline
from tests.report.samples import EVENTS, TRACE

HERE = Path(__file__).parent


class Failing(msgspec.Struct, frozen=True):
    """Has what `terminal.Failing` asks for."""

    message: str
    line: int = 0
    entry: int | None = None
    turn: int | None = None


GOOD = Report(
    scenario="cancel/slow",
    about="The slow tool is cut off.",
    source="scenarios/cancel/slow.yaml",
    loop="turn (safe)",
    outcomes=(CANCELLED, COMPLETED),
    trace=Trace(TRACE.entries[:12]),
    verdict=Verdict((), ("ORDER",)),
    failures=(),
    turn_lines=(4, 9),
    rerun="harness run scenarios/cancel/slow.yaml --loop turn",
)
BAD = msgspec.structs.replace(
    GOOD,
    scenario="cancel/lost result",
    source="scenarios/cancel/lost result.yaml",
    loop="agent:build",
    verdict=Verdict(
        (
            Violation("RESUME", "call_1_1_1 has no result", 3, 2),
            Violation("QUIESCE", "a generator is open", 4, 1, "soft"),
        ),
        ("ORDER", "PARITY"),
    ),
    failures=(Failing("turn 1: expected outcome completed, found cancelled", 7, 0),),
    rerun="harness run 'scenarios/cancel/lost result.yaml' --agent agent:build",
)


def console(width: int, *, colour: bool = False) -> tuple[Console, io.StringIO]:
    """A terminal of `width` columns, and what it was given."""
    file = io.StringIO()
    made = Console(
        file=file,
        width=width,
        force_terminal=True,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    return made, file


@pytest.mark.parametrize("width", [80, 40])
def test_results_have_their_pinned_form(width: int) -> None:
    screen, file = console(width)
    print_results(screen, [GOOD, BAD])
    assert file.getvalue() == (HERE / f"results_{width}.txt").read_text(encoding="utf-8")


def test_the_last_line_printed_runs_the_failure_again_and_stays_whole() -> None:
    screen, file = console(40)
    print_results(screen, [BAD, GOOD])
    assert file.getvalue().splitlines()[-1] == BAD.rerun


def test_good_runs_end_with_their_count() -> None:
    screen, file = console(80)
    print_results(screen, [GOOD, msgspec.structs.replace(GOOD, trace=Trace([]))])
    assert file.getvalue().splitlines()[2:] == [
        "PASS     cancel/slow  turn (safe)  cancelled, completed  0         0s",
        "not judged: ORDER",
        "2 passed, 0 failed",
    ]


def test_each_run_can_say_what_it_is_about() -> None:
    screen, file = console(48)
    print_results(screen, [GOOD], about=True)
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "PASS  cancel/slow on turn (safe): cancelled,",
        "completed; 0 requests, 16.5ms of virtual time",
        "      The slow tool is cut off.",
        "not judged: ORDER",
        "1 passed, 0 failed",
    ]


def test_what_is_not_there_takes_no_line() -> None:
    screen, file = console(80)
    silent = msgspec.structs.replace(GOOD, about="", verdict=Verdict(), trace=Trace([]))
    print_results(screen, [silent])
    print_run(screen, silent)
    assert [line.rstrip() for line in file.getvalue().splitlines()[2:]] == [
        "1 passed, 0 failed",
        "cancel/slow on turn (safe)",
        "PASS",
    ]


def test_a_failure_without_a_line_of_its_own_is_at_its_turn() -> None:
    screen, file = console(80)
    failures = (Failing("one", 7, turn=2), Failing("two", turn=2), Failing("three", turn=3))
    print_results(screen, [msgspec.structs.replace(GOOD, failures=failures)])
    assert [line for line in file.getvalue().splitlines() if line.startswith("scenarios")] == [
        "scenarios/cancel/slow.yaml:7: one",
        "scenarios/cancel/slow.yaml:9: two",
        "scenarios/cancel/slow.yaml: three",
    ]


def test_what_turns_could_not_show_is_told_once_a_run() -> None:
    unseen = Verdict((), ("expect rows of turn 1", "expect rows of turn 2", "ORDER"))
    reports = [GOOD, msgspec.structs.replace(GOOD, verdict=unseen)]
    assert not_judged(reports) == "ORDER, expect rows (in 1 of 2 runs)"


def test_much_that_had_nothing_to_judge_is_counted_unless_its_names_are_asked_for() -> None:
    several = Verdict((), ("CAP", "COUNT", "LIMIT", "ORDER", "expect rows of turn 1"))
    one = msgspec.structs.replace(GOOD, verdict=several)
    whole = len(INVARIANTS) + len(RELATIONS)
    asked = f"4 of {whole} invariants, expect rows (--verbose names them)"
    assert not_judged([one]) == asked
    assert not_judged([one], verbose=True) == "CAP, COUNT, LIMIT, ORDER, expect rows"
    assert not_judged([one, GOOD]) == (
        f"1 of {whole} invariants, 3 more in some runs, expect rows (in 1 of 2 runs) "
        "(--verbose names them)"
    )
    screen, file = console(80)
    print_results(screen, [one], verbose=True)
    assert "not judged: CAP, COUNT, LIMIT, ORDER, expect rows" in file.getvalue().splitlines()


def test_accepted_findings_are_told_with_their_reason() -> None:
    known = Accepted(Violation("RESUME", "a call has no result", 3, 2), "we resend\nit")
    verdict = Verdict(accepted=(known, known))
    screen, file = console(80)
    print_results(screen, [GOOD, msgspec.structs.replace(GOOD, verdict=verdict)])
    assert file.getvalue().splitlines()[-2:] == [
        r"accepted: RESUME, we resend\u000ait (in 1 of 2 runs)",
        "2 passed, 0 failed",
    ]


def test_failures_shown_by_one_entry_share_its_excerpt() -> None:
    screen, file = console(80)
    both = (Failing("one", 7, 3), Failing("two", 8, 3), Failing("three", 8, 4))
    print_results(screen, [msgspec.structs.replace(GOOD, failures=both)])
    lines = file.getvalue().splitlines()
    first = lines.index("scenarios/cancel/slow.yaml:7: one")
    assert lines[first + 1] == "scenarios/cancel/slow.yaml:8: two"
    assert [line[:4] for line in lines[first + 2 : first + 8]] == ["    "] * 3 + [
        "  > ",
        "    ",
        "scen",
    ]


def test_many_failures_are_counted_and_the_first_are_shown() -> None:
    screen, file = console(80)
    many = tuple(Failing(f"problem {number}") for number in range(1, 9))
    print_results(screen, [msgspec.structs.replace(BAD, failures=many)])
    shown = [line for line in file.getvalue().splitlines() if "problem" in line or "more" in line]
    assert shown == [
        *[f"scenarios/cancel/lost result.yaml: problem {number}" for number in range(1, 5)],
        "and 4 more",
    ]


@pytest.mark.parametrize("width", [80, 40])
def test_the_time_line_has_its_pinned_form(width: int) -> None:
    screen, file = console(width)
    print_run(screen, msgspec.structs.replace(BAD, trace=TRACE))
    assert file.getvalue() == (HERE / f"timeline_{width}.txt").read_text(encoding="utf-8")


def test_a_turn_that_the_runner_added_stands_apart() -> None:
    started = [TurnStarted(1, "a"), TurnStarted(2, "b"), TurnStarted(3, "Continue.", default=True)]
    trace = Trace(Entry(0, "", event) for event in started)
    screen, file = console(200)
    for outcomes in ((CANCELLED, COMPLETED, COMPLETED), (CANCELLED, CANCELLED)):
        print_results(screen, [msgspec.structs.replace(GOOD, outcomes=outcomes, trace=trace)])
    assert " cancelled, completed (+completed)  0 " in file.getvalue()
    assert " cancelled, cancelled  0 " in file.getvalue()
    assert [row.plain for row in timeline(trace, 80)] == [
        '0s       turn 1: "a"',
        '0s       turn 2: "b"',
        '0s       turn 3: "Continue." (added by the runner)',
    ]


@pytest.mark.parametrize(
    ("events", "header"),
    [
        ([Delta("1.1", "text", "a")], "time     model"),
        ([ToolEffect("c", "clock")], "time     tools"),
        ([Delta("1.1", "text", "a"), ToolEffect("c", "clock")], f"time     {'model':<35}tools"),
        (
            [ToolEffect("c", "clock"), StateEntered("idle"), Delta("1.1", "text", "a")],
            f"time     {'model':<23}{'tools':<23}log",
        ),
    ],
)
def test_a_lane_in_which_nothing_happens_has_no_column(events: list[Any], header: str) -> None:
    trace = Trace(Entry(0, "", event) for event in events)
    first, *rows = timeline(trace, 80)
    assert first.plain == header
    for row, shown in zip(rows, marks(trace), strict=True):
        assert row.plain[header.index(shown.lane) :] == shown.text


@pytest.mark.parametrize("width", [40, 80])
def test_lines_that_are_cut_are_said_to_be(width: int) -> None:
    def last(text: str) -> str:
        return timeline(Trace([Entry(0, "", Delta("1.1", "text", text))]), width)[-1].plain

    room = width - 9 - (6 if width < 72 else 0) - len('says ""')
    assert last("x" * room).endswith('x"')
    assert last("x" * (room + 1)) == "whole lines: --plain"


@pytest.mark.parametrize("width", [1, 10, 40, 71, 72, 80, 200])
def test_no_line_of_a_time_line_is_wider_than_the_terminal(width: int) -> None:
    wide = Entry(0, "1", Delta("1.1", "text", "漢字🙂" * 50))
    for row in timeline(Trace([*TRACE, wide]), width):
        assert cell_len(row.plain) <= width


def test_every_event_has_a_lane_and_words() -> None:
    for event in EVENTS:
        lane, words, _alarm = mark(event)
        assert lane in STYLES
        assert words
    assert mark(LoopEvent("text", {"delta": "a"})) == ("log", 'tells text {"delta":"a"}', False)
    assert not any(each.text.startswith(("tells", "counts")) for each in marks(TRACE))


def test_deltas_of_one_reply_are_shown_as_one() -> None:
    pieces = [("1.1", "thinking", "a"), ("1.1", "text", "b"), ("1.1", "text", "c")]
    pieces.append(("1.2", "text", "d"))
    entries = [Entry(i, "1", Delta(*piece)) for i, piece in enumerate(pieces)]
    shown = [row.plain.split(None, 1)[1] for row in timeline(Trace(entries), 80)[1:]]
    assert shown == ['thinks "a"', 'says "bc"', 'says "d"']


def test_a_terminal_has_colours() -> None:
    screen, file = console(80, colour=True)
    print_results(screen, [GOOD])
    assert "\x1b[32mPASS" in file.getvalue()


def test_what_users_write_cannot_steer_the_terminal() -> None:
    hostile = msgspec.structs.replace(
        BAD, scenario="\x1b[2J[red]x", failures=(Failing("a\x07b\nc [bold]"),)
    )
    screen, file = console(80)
    print_results(screen, [hostile])
    print_run(screen, hostile)
    assert "\x1b[2J" not in file.getvalue()
    assert r"\u001b[2J[red]x" in file.getvalue()
    assert r"a\u0007b\u000ac [bold]" in file.getvalue()


def test_no_colour_and_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    print_results(make_console(), [GOOD, BAD])
    written = capsys.readouterr().out
    assert "\x1b" not in written
    assert not any(line.endswith(" ") for line in written.splitlines())
    assert "> 4.5ms    1.3    turn_ended          turn 1 completed\n" in written
    assert written == (HERE / "results_pipe.txt").read_text(encoding="utf-8")


def test_no_color_takes_colours_and_weights_from_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    print_results(make_console(), [GOOD])
    assert "\x1b[32mPASS" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_results(make_console(), [GOOD])
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "")  # is as if it were not there
    print_results(make_console(), [GOOD])
    assert "\x1b[32mPASS" in capsys.readouterr().out


def test_colours_in_a_pipe_leave_lines_as_long_as_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    print_results(make_console(), [GOOD, BAD])
    written = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert written.split() == (HERE / "results_pipe.txt").read_text(encoding="utf-8").split()
    assert max(map(len, written.splitlines())) > 80


def test_an_excerpt_shows_what_is_around_the_entry() -> None:
    assert (terminal.BEFORE, terminal.AFTER) == (3, 1)
    screen, file = console(80)
    print_results(screen, [msgspec.structs.replace(BAD, failures=())])
    marked = [line[:4] for line in file.getvalue().splitlines() if line.startswith("  ")]
    assert marked == ["    ", "    ", "    ", "  > ", "    "]
