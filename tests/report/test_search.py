"""Reports of searches: their pinned form, what is left out, what the last line is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.choices import Draw
from harness.exploration.budget import Budget
from harness.exploration.explain import Busy
from harness.exploration.probe import Asked, Finding, Landing, Run, Shot, Site, Waiting
from harness.exploration.search_report import Found, SearchReport, Tolerated, Tried, Undecided
from harness.exploration.shrink import Shrunk
from harness.report.decisions import decision_text, decision_texts
from harness.report.search import (
    Discovery,
    Exploration,
    Open,
    print_exploration,
    print_explorations,
)
from harness.report.sweep import SHOWN_MAX, Beside
from harness.report.text import lines
from harness.report.why import MOVES_MAX
from tests.report.samples import TRACE
from tests.report.test_terminal import console

HERE = Path(__file__).parent
LINES = tuple(lines(TRACE))[:10]
LATE = Shot("1.1", 1, "late", "task")
SLOW = Asked("latency", "slow\ncall_1_1_1", 5, 1, 2)
TIE = Asked("tie", "1", 3, 2, 2)
SITES = (
    Site("1", 0, "turn", "", 0, 1),
    Site("1", 1, "turn", "agent.py:12 in turn", 1, 2),
    Site("1", 2, "turn", "agent.py:12 in turn", 2, 3),
    Site("1", 3, "turn", "agent.py:14 in turn", 3, None),
    Site("1.1", 0, "tool", "agent.py:20 in fetch", 3, 4),
    Site("1.1", 1, "tool", "agent.py:21 in fetch", 4, 5),
)
ORDER = Finding("ORDER: another order", "ORDER: the answers are in another order", 3)
LOST = Finding("RESUME: # has no result", "RESUME: call_1_1_1 has no result")
RUN = Run(
    "d1",
    SITES,
    5,
    (SLOW, TIE, Asked("tie", "2", 2, 0, 4)),
    (Landing(LATE, "delivered"),),
    (ORDER, LOST),
    lines=LINES,
    left=(Waiting("1", "agent.py:14 in turn", ("1.1", "1.2")), Waiting("1.2", "agent.py:30 in x")),
)
TAPE = (Draw("latency", "slow\ncall_1_1_1", 1, 5), Draw("tie", "1", 2, 3))
SHRUNK = Shrunk(ORDER.key, TAPE, (LATE,), RUN, 23, minimal=True)
FOUND = (
    Found(ORDER.message, "pct:2", 1_017, 12, SHRUNK, 40),
    Found(LOST.message, "pct:2", 1_017, 12, replace(SHRUNK, key=LOST.key, minimal=False)),
)
TOKEN = "h1.311.0123456789.tasks,tie:1=2:3.89abcdef"
FAILED = Discovery(
    FOUND,
    RUN,
    Beside(
        "without tie 1: task 1 goes on (number 3 of 3 that may go next)", Run("d2", lines=LINES[2:])
    ),
    TOKEN,
    f"harness replay {TOKEN} 'a b.yaml' --loop turn",
)
REPORT = SearchReport(
    name="cancel/slow on turn (safe)",
    strategy="auto",
    seed=7,
    cancels=2,
    baseline=Run("d0"),
    runs=1_234,
    distinct=567,
    tried=(Tried("fifo", 2, 1), Tried("few", 231, 66), Tried("pct:2", 1_001, 500)),
    found=FOUND,
    tolerated=(Tolerated("QUIESCE: known", "QUIESCE, it is\nknown", 17),),
    undecided=2,
    undecided_first=Undecided("step_limit, too many", 9, (), ()),
    deviations=1,
    exhausted=False,
    goals=(("tool_ended slow", 12), ("reached cache\nfull", 0)),
    ended="the budget of 1,234 runs is spent",
)
OPEN = Open(
    (Busy("agent.py:14 in turn", "turn", 1_000), Busy("x.py:1 in y", "tool", 1)), "h1" * 6_000, ""
)
BAD = Exploration("cancel/slow", "turn (safe)", "all", Budget(1_234, 2.5), REPORT, (FAILED,), OPEN)
GOOD = Exploration(
    "cancel/early",
    "turn (safe)",
    "fifo",
    Budget(10, None),
    replace(
        REPORT,
        cancels=0,
        runs=4,
        distinct=3,
        tried=REPORT.tried[:1],
        found=(),
        tolerated=(),
        undecided=0,
        undecided_first=None,
        deviations=2,
        exhausted=True,
        goals=(),
        ended="every schedule was tried",
    ),
)
GOAL = replace(
    GOOD,
    scenario="cancel/goal",
    report=replace(GOOD.report, exhausted=False, deviations=0, goals=REPORT.goals),
)


def shown(show: object, *what: object, width: int = 80) -> list[str]:
    screen, file = console(width)
    show(screen, *what)  # type: ignore[operator]
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize(("name", "found"), [("search", [BAD]), ("searches", [GOOD, BAD, GOAL])])
def test_explorations_have_their_pinned_form(
    name: str, found: list[Exploration], width: int
) -> None:
    screen, file = console(width)
    print_explorations(screen, found)
    assert file.getvalue() == (HERE / f"{name}_{width}.txt").read_text(encoding="utf-8")


def test_the_text_is_what_a_pipe_gets_and_nothing_is_cut_in_it() -> None:
    text = str(BAD)
    assert text.splitlines()[-1] == FAILED.rerun
    assert "…" not in text
    assert f"  > {LINES[3]}\n" in text


def test_the_last_line_is_that_of_a_failure_and_stays_whole() -> None:
    assert shown(print_explorations, [GOAL, BAD, GOAL], width=30)[-1] == FAILED.rerun


def test_a_good_search_says_what_it_has_tried() -> None:
    assert shown(print_exploration, GOOD) == [
        "PASS cancel/early on turn (safe)",
        "strategy  runs  new",
        "fifo         2    1",
        "all          4    3",
        "order fifo, strategy auto, seed 7",
        "3 different schedules: there are no others",
        "budget: 10 runs; it ended since every schedule was tried",
    ]
    assert shown(print_explorations, [GOOD, GOOD])[-1] == "2 passed, 0 failed, 0 incomplete"


def test_a_run_that_a_limit_ended_is_run_again_by_the_last_line() -> None:
    left = replace(OPEN, token=TOKEN, rerun="again")
    open_only = replace(BAD, report=replace(REPORT, found=()), failed=(), open=left)
    assert open_only.status == "INCOMPLETE"
    assert shown(print_exploration, open_only)[-5:] == [
        "where tasks of the first run not resolved waited most often:",
        "    1,000 times at agent.py:14 in turn, in turn tasks",
        "    1 time at x.py:1 in y, in tool tasks",
        "run it again:",
        "again",
    ]


def test_a_failing_run_that_a_limit_ended_says_where_it_was_busy() -> None:
    run = replace(RUN, unresolved="step_limit", left=())
    text = str(replace(BAD, failed=(replace(FAILED, run=run, beside=None),), open=None))
    assert "where tasks waited most often:\n    2 times at agent.py:12 in turn, in turn" in text
    assert "who waits for whom" not in text
    assert "the nearest run" not in text


def test_many_failures_are_cut() -> None:
    many = replace(BAD, failed=(FAILED,) * (SHOWN_MAX + 1))
    rows = shown(print_exploration, many)
    assert f"shown are {SHOWN_MAX} of {SHOWN_MAX + 1} failures" in rows
    assert rows.count("FAIL ORDER, RESUME") == SHOWN_MAX


def test_of_many_steps_those_are_shown_that_follow_the_first_decision() -> None:
    sites = tuple([Site("1", k, "turn", f"a.py:{k}", k, k + 1) for k in range(100)])

    def rows(at: int) -> list[str]:
        run = replace(RUN, sites=sites, asked=(replace(TIE, step=at),), landings=())
        text = str(replace(BAD, failed=(replace(FAILED, run=run),)))
        moves, _, rest = text.partition("who ran when")[2].partition("who waits for whom")
        assert rest
        return moves.splitlines()[2:]

    middle = rows(50)
    assert len(middle) == MOVES_MAX + 1
    assert [row.split()[0] for row in middle[:3]] == ["48", "49", "50"]
    assert middle[-1] == "    (and 47 before and 29 after)"
    assert rows(100)[-1] == "    (and 76 before and 0 after)"
    assert rows(1)[-1] == "    (and 0 before and 76 after)"


def test_a_run_without_steps_and_without_decisions_is_told_too() -> None:
    bare = Run("d", findings=(ORDER,), lines=LINES)
    found = replace(FOUND[0], shrunk=replace(SHRUNK, tape=(), shots=()))
    text = str(replace(BAD, failed=(replace(FAILED, run=bare, found=(found,)),)))
    assert "made simple in 23 runs: nothing is decided\nORDER: the answers" in text
    assert "who ran when" not in text


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (("latency", "a", 2, 5), "latency of a: as the slowest beside it (2 of 5)"),
        (("latency", "a", 7, 9), "latency of a: 7 of 9"),
        (("chunking", "1.2", 3, 4), "chunking of 1.2: in halves (3 of 4)"),
        (("ready", "7", 1, 2), "ready 7: of 2 that may go next, number 2 does"),
        (("fault", "1.1", 1, 17), "fault of 1.1: http 429 (1 of 17)"),
        (("fault", "1.1", 6, 17), "fault of 1.1: json_error (6 of 17)"),
        (("disk", "a", 1, 2), "disk of a: 1 of 2"),
        (("job", "1.job2", 1, 3), "job of 1.job2: takes no time (1 of 3)"),
        (("job", "1.job2", 2, 3), "job of 1.job2: takes ten seconds (2 of 3)"),
        (("entropy", "uuid", 5, 8), "entropy of uuid: another sequence of numbers (5 of 8)"),
        (("user", "a#b#2", 1, 3), "choose('a#b'), number 2: 1 of 0 to 2"),
    ],
)
def test_a_decision_is_told_in_words(asked: tuple[str, str, int, int], text: str) -> None:
    assert decision_text(*asked) == text


def test_an_order_is_told_by_who_goes_before_whom() -> None:
    waiting = [Site(f"1.{n}", 1, "tool", "x", 4, 10 + n) for n in range(1, 6)]
    new = Site("1.7", 0, "tool", "x", 8, 9)
    later, never = Site("1.8", 1, "tool", "x", 9, 10), Site("1.9", 1, "tool", "x", 4, None)
    run = Run("d", (*waiting, new, later, never), 99)

    def told(step: int, value: int, source: str = "ready") -> str:
        asked = (Asked(source, "1", 9, value, step), Asked(source, "2", 9, 0, step))
        (text,) = decision_texts(replace(run, asked=asked)).values()
        return text

    assert told(8, 1) == ("ready 1: task 1.7 begins before 1.1 (number 2 of 9 that may go next)")
    assert told(10, 2, "tie").startswith("tie 1: task 1.1 goes on before 1.2 and 1.3 (number 3 ")
    assert told(10, 8).startswith("ready 1: task 1.1 goes on before 1.2 and 1.3 and 1.4 (")
    assert told(14, 1).startswith("ready 1: task 1.5 goes on (number 2 ")
    for step in (0, 15):
        assert told(step, 1) == "ready 1: of 9 that may go next, number 2 does"
    assert told(8, 1, "latency").startswith("latency of 1: zero")
