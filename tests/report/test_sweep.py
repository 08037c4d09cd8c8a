"""What a terminal shows of sweeps and of replayed runs: counts, gaps, failures, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.outcome import CANCELLED, COMPLETED
from harness.core.verdict import Verdict, Violation
from harness.exploration.points import Absent
from harness.exploration.probe import Asked, Finding, Landing, Run, Shot, Site
from harness.exploration.sweep_report import Group, SweepReport, Swept
from harness.report.decisions import shot_sentences
from harness.report.replay import Replay, print_replay
from harness.report.sweep import Beside, Failed, Sweep, print_sweep, print_sweeps
from harness.report.terminal import Report
from harness.report.text import lines
from tests.report.samples import TRACE
from tests.report.test_terminal import console

HERE = Path(__file__).parent
LINES = tuple(lines(TRACE)[:12])
TURN = Site("1", 0, "turn", "", 0, 1, turn=1)
TOOL = Site("1.1", 1, "tool", "agent.py:12 in fetch", 3, 6, turn=1)
IDLE = Site("x1", 1, "other", "agent.py:80 in poll", 4, None)
SITES = (TURN, TOOL, IDLE)
START = Shot("1", 0, "start", "turn")
EARLY = Shot("1.1", 1, "early", "turn")
LATE = Shot("1.1", 1, "late", "task")
MID = Shot("1.1", 1, "mid", "agent", 5)
LOST = Finding("RESUME: # has no result", "RESUME: call_1_1_1 has no result", 3)
LEAK = Finding("QUIESCE: a task is alive", "QUIESCE: a task is alive", 9)
KNOWN = Finding("CAP: many", "CAP, \x1b[1mit is\u2028known", 2)
REPORT = SweepReport(
    name="cancel/slow on turn (safe)",
    modes=("start", "early", "late", "mid", "double"),
    roles=("turn", "model", "tool"),
    whom=("agent", "turn", "task"),
    tape=(),
    baseline=Run("d0", SITES, 9, lines=LINES),
    runs=1234,
    points=(
        Swept((START,), "start", "turn", "clean", ("cancelled",)),
        Swept((EARLY,), "early", "tool", "failed", ("cancelled",), (LOST.key, LEAK.key)),
        Swept((LATE,), "late", "tool", "tolerated", ("delivered",), (KNOWN.key,)),
        Swept((MID,), "mid", "tool", "missed", ("refused",), (), "refused"),
        Swept((START, EARLY), "double", "turn", "failed", ("cancelled",) * 2, (LOST.key,)),
        Swept((START, MID), "double", "turn", "unresolved", ("cancelled",) * 2, (), "no end"),
    ),
    absent=(
        Absent(TURN, "early", "turn", "the task has not begun"),
        Absent(TURN, "late", "turn", "the task has not begun"),
        Absent(TOOL, "start", "turn", "the task has begun"),
    ),
    failed=(
        Group(LEAK.key, LEAK.message, (EARLY,), Run("d1"), ((EARLY,),)),
        Group(LOST.key, LOST.message, (EARLY,), Run("d1"), ((EARLY,), (START, EARLY))),
    ),
    tolerated=(Group(KNOWN.key, KNOWN.message, (LATE,), Run("d2"), ((LATE,),)),),
    sampled=("double is sampled: 2 of 1,000 points",),
    spent="the budget of 1,234 runs is spent",
)
FAILED = Failed(
    REPORT.failed,
    Run("d1", SITES, 9, (), (Landing(EARLY, "cancelled"),), (LEAK, LOST), lines=LINES),
    Beside(f"cancelled at {LATE}", Run("d3", lines=(*LINES[:5], LINES[7], *LINES[9:]))),
    "h1.311.0123456789.1.1:1:early:turn.89abcdef",
    "harness replay h1.311.0123456789.1.1:1:early:turn.89abcdef 'a b.yaml' --loop turn",
)
BAD = Sweep("cancel/slow", "turn (safe)", REPORT, (FAILED,))
GOOD = Sweep(
    "cancel/early",
    "turn (safe)",
    replace(REPORT, points=REPORT.points[:1], failed=(), tolerated=(), sampled=(), spent=None),
)
OPEN = Sweep(
    "cancel/open",
    "turn (safe)",
    replace(GOOD.report, points=(REPORT.points[0], *REPORT.points[3:4])),
)
REPLAY = Replay(
    replace(FAILED.run, asked=(Asked("latency", "a\nb", 5, 4), Asked("ready", "3", 2, 0))),
    Report(
        scenario="cancel/slow",
        about="",
        source="cancel/slow.yaml",
        loop="turn (safe)",
        outcomes=(CANCELLED, COMPLETED),
        trace=TRACE,
        verdict=Verdict((Violation("RESUME", "call_1_1_1 has no result", 3, 1),)),
        failures=(),
        turn_lines=(4,),
        rerun=FAILED.rerun,
    ),
)


def shown(show: object, *what: object, width: int = 80) -> list[str]:
    screen, file = console(width)
    show(screen, *what)
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize(("name", "sweeps"), [("sweep", [BAD]), ("sweeps", [GOOD, BAD, OPEN])])
def test_sweeps_have_their_pinned_form(name: str, sweeps: list[Sweep], width: int) -> None:
    screen, file = console(width)
    print_sweeps(screen, sweeps)
    assert file.getvalue() == (HERE / f"{name}_{width}.txt").read_text(encoding="utf-8")


def test_the_text_is_what_a_pipe_gets_and_nothing_is_cut_in_it() -> None:
    text = str(BAD)
    assert text.splitlines()[-1] == FAILED.rerun
    assert "…" not in text
    assert f"  > {LINES[3]}\n" in text
    assert max(map(len, text.splitlines())) > 100


def test_the_last_line_stays_whole_in_a_narrow_terminal() -> None:
    assert shown(print_sweeps, [GOOD, BAD], width=30)[-1] == FAILED.rerun


def test_a_good_sweep_is_a_table_and_what_does_not_exist() -> None:
    assert shown(print_sweeps, [GOOD]) == [
        "PASS cancel/early on turn (safe)",
        "cancels     points  clean  tolerated  failed  unresolved  missed  n/a",
        "start            1      1          0       0           0       0    1",
        "early            0      0          0       0           0       0    1",
        "late             0      0          0       0           0       0    1",
        "mid              0      0          0       0           0       0    0",
        "double           0      0          0       0           0       0    0",
        "all              1      1          0       0           0       0    3",
        "turn tasks       1      1          0       0           0       0    2",
        "tool tasks       0      0          0       0           0       0    1",
        "2 sites, told: agent, turn, task; 1,234 runs",
        "n/a: the task has not begun (2), the task has begun (1)",
    ]


def test_sweeps_that_all_pass_end_with_their_count() -> None:
    assert shown(print_sweeps, [GOOD, GOOD])[-1] == "2 passed, 0 failed, 0 incomplete"


def test_gaps_are_told_and_keep_a_sweep_from_passing() -> None:
    assert OPEN.status == "INCOMPLETE"
    why = "INCOMPLETE: 1 point missed; the first is 1.1#1/mid@5:agent (refused)"
    assert shown(print_sweep, OPEN)[-1] == why
    with pytest.raises(AssertionError, match=r"^INCOMPLETE cancel/open on turn"):
        OPEN.check()
    assert GOOD.check() is GOOD


def test_a_run_without_a_cancel_that_fails_is_not_said_to_be_open_too() -> None:
    endless = Run("d0", unresolved="step_limit, no end")
    said = "the run without a cancel is not resolved: step_limit, no end"
    assert said in replace(REPORT, baseline=endless).incomplete
    assert said not in replace(REPORT, baseline=replace(endless, findings=(LOST,))).incomplete


def test_a_failure_without_a_cancel_is_told_as_such() -> None:
    group = Group(LOST.key, LOST.message, (), Run("d0"), ((), (EARLY,)))
    run = replace(FAILED.run, landings=(), findings=(LOST,))
    failed = Failed((group,), run, None, "h1", "harness replay h1")
    text = str(Sweep("case", "agent", replace(REPORT, failed=(group,)), (failed,)))
    assert (
        "\nFAIL without a cancel\nRESUME: call_1_1_1 has no result (without a cancel and at" in text
    )
    alone = replace(group, points=((),))
    failed = replace(failed, groups=(alone,))
    text = str(Sweep("case", "agent", replace(REPORT, failed=(alone,)), (failed,)))
    assert "RESUME: call_1_1_1 has no result (without a cancel)\n" in text


def test_a_finding_that_no_line_shows_comes_last_and_has_no_excerpt() -> None:
    run = replace(FAILED.run, findings=(replace(LEAK, line=None), LOST), landings=())
    failed = replace(FAILED, run=run, beside=None)
    rows = str(replace(BAD, failed=(failed,))).splitlines()
    at = rows.index("RESUME: call_1_1_1 has no result (at 2 of 6 points)")
    assert rows[at + 1] == "QUIESCE: a task is alive (at 1 of 6 points)"
    assert [row[:4] for row in rows[at + 2 :]] == ["    "] * 3 + ["  > ", "    ", "run ", "harn"]


def test_where_no_line_shows_what_is_wrong_the_last_ones_are_shown() -> None:
    lost = (replace(LEAK, line=None), replace(LOST, line=None))
    run = replace(FAILED.run, findings=lost, landings=())
    rows = str(replace(BAD, failed=(replace(FAILED, run=run, beside=None),))).splitlines()
    assert rows[-6:-2] == [*[f"    {line}" for line in LINES[-4:-1]], f"  > {LINES[-1]}"]


def test_many_failures_and_long_differences_are_cut() -> None:
    passing = Run("d3", lines=tuple([f"0s x {n}" for n in range(99)]))
    failed = replace(FAILED, beside=Beside("without it", passing))
    rows = str(replace(BAD, failed=(failed,) * 23)).splitlines()
    assert "shown are 20 of 23 failures" in rows
    assert rows[-1] == FAILED.rerun
    assert sum(row == "run it again:" for row in rows) == 20
    assert "    (96 lines more)" in rows


def test_what_a_cancel_did_is_a_sentence() -> None:
    shots = (START, EARLY, LATE, MID, Shot("9", 4, "early", "agent"))
    run = Run("d", SITES, landings=tuple([Landing(shot, "cancelled") for shot in shots]))
    assert list(shot_sentences(run)) == [
        "1#0/start:turn: before task 1 begins, the turn's task is cancelled; it came to: cancelled",
        "1.1#1/early:turn: right after task 1.1 suspends at agent.py:12 in fetch, "
        "the turn's task is cancelled; it came to: cancelled",
        "1.1#1/late:task: when task 1.1 has what it waits for and is about to go on "
        "at agent.py:12 in fetch, this task is cancelled; it came to: cancelled",
        "1.1#1/mid@5:agent: after step 5 of the run, while task 1.1 waits "
        "at agent.py:12 in fetch, the agent's own stop is called; it came to: cancelled",
        "9#4/early:agent: right after task 9 suspends, the agent's own stop is called; "
        "it came to: cancelled",
    ]


def test_a_replay_says_what_was_decided_and_that_it_fails_again() -> None:
    rows = shown(print_replay, REPLAY, width=200)
    assert rows[:8] == [
        "cancel/slow on turn (safe)",
        "1.1#1/early:turn: right after task 1.1 suspends at agent.py:12 in fetch, "
        "the turn's task is cancelled; it came to: cancelled",
        "latency of a\\u000ab: ten times (4 of 5)",
        "outcomes: cancelled, completed",
        "FAIL: something is wrong with this run",
        "FAIL cancel/slow on turn (safe)",
        "cancel/slow.yaml:4: RESUME in turn 1: call_1_1_1 has no result",
        f"    {LINES[0]}",
    ]
    assert rows[-1] == FAILED.rerun
    with pytest.raises(AssertionError, match="something is wrong with this run"):
        REPLAY.check()


def test_a_replay_that_is_well_says_so() -> None:
    well = replace(REPLAY, run=replace(REPLAY.run, findings=()))
    assert shown(print_replay, well)[-1] == ("PASS: nothing is wrong with this run")
    assert well.check() is well


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (
            replace(REPLAY.run, findings=(), landings=(Landing(EARLY, "not reached"),)),
            "the cancel 1.1#1/early:turn was not reached, so nothing was tried; the code has ",
        ),
        (replace(REPLAY.run, findings=(), unresolved="no\x1bend"), "no\\u001bend"),
    ],
)
def test_a_replay_that_shows_nothing_is_incomplete(run: Run, why: str) -> None:
    replay = replace(REPLAY, run=run)
    assert replay.status == "INCOMPLETE"
    assert shown(print_replay, replay, width=300)[-1].startswith(f"INCOMPLETE: {why}")
