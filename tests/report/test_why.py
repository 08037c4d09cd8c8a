"""What shows why a run of a sweep went as it did: shortly around its cancels, and how it ended."""

from __future__ import annotations

from msgspec.structs import replace

from harness.exploration.probe import Landing, Run, Shot, Site, Waiting
from harness.report.why import print_why
from tests.report.test_terminal import console

SITES = tuple(
    [Site(str(1 + k % 2), k // 2, "turn", f"a.py:{k}", k, k + 2) for k in range(40)],
)
FIRST, SECOND = Shot("1", 5, "early", "turn"), Shot("2", 12, "late", "task")
RUN = Run("d", SITES, 42, landings=(Landing(FIRST, "cancelled"), Landing(SECOND, "delivered")))


def shown(run: Run, width: int = 80) -> list[str]:
    screen, file = console(width)
    print_why(screen, run, around=True)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_the_steps_shortly_around_each_cancel_are_shown() -> None:
    assert shown(RUN) == [
        "who ran when, and where it waits then:",
        "    step task      waits at decided by then",
        "       8 1    turn a.py:8",
        "       9 2    turn a.py:9",
        "      10 1    turn a.py:10  cancel 1#5/early:turn",
        "      11 2    turn a.py:11",
        "      12 1    turn a.py:12",
        "      13 2    turn a.py:13",
        "     ...",
        "      25 2    turn a.py:25",
        "      26 1    turn a.py:26",
        "      27 2    turn a.py:27  cancel 2#12/late:task",
        "      28 1    turn a.py:28",
        "      29 2    turn a.py:29",
        "      30 1    turn a.py:30",
        "    (and 6 before and 11 after)",
    ]


def test_without_a_cancel_no_step_is_shown() -> None:
    assert shown(replace(RUN, landings=())) == []


def test_who_waits_for_whom_is_told_where_the_run_ended_in_a_deadlock() -> None:
    left = (Waiting("1", "a.py:1 in f", ("2",)), Waiting("2", "a.py:2 in g", ("1",)))
    assert shown(Run("d", left=left)) == [
        "who waits for whom, for ever:",
        "    1 waits at a.py:1 in f for 2",
        "    2 waits at a.py:2 in g for 1",
        "    in a circle: 1 waits for 2 waits for 1",
    ]


def test_a_run_in_which_nothing_waited_has_no_busiest_lines() -> None:
    assert shown(Run("d", unresolved="step_limit, ...")) == []


def test_the_busiest_lines_are_told_where_a_limit_ended_the_run() -> None:
    busy = Run("d", (Site("1", 1, "turn", "a.py:1 in f", 1, 2),), unresolved="step_limit, ...")
    assert shown(busy) == [
        "where tasks waited most often:",
        "    1 time at a.py:1 in f, in turn tasks",
    ]
