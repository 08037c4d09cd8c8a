"""A budget ends what it is for, and says what of it was spent."""

from __future__ import annotations

import pytest

from harness.core.errors import UsageError
from harness.exploration.budget import MEANS, Budget, Means, Meter, Progress


@pytest.mark.parametrize("budget", [(0, None), (-1, 1.0), (1, 0.0), (1, -1.0), (1, float("nan"))])
def test_a_budget_without_room_is_refused(budget: tuple[int, float | None]) -> None:
    with pytest.raises(UsageError, match="leaves no room to run; give at least one run"):
        Budget(*budget)


def test_runs_are_counted() -> None:
    meter = Meter(Budget(2, None), MEANS)
    assert meter.spent() is None
    meter.note_run()
    assert meter.spent() is None
    meter.note_run()
    assert meter.spent() == "the budget of 2 runs is spent"


def test_seconds_are_measured_by_the_clock_that_is_given() -> None:
    now = [100.0]
    meter = Meter(Budget(10_000, 2.5), Means(clock=lambda: now[0]))
    now[0] = 102.4
    meter.note_run()
    assert meter.spent() is None
    now[0] = 102.5
    assert meter.spent() == "the budget of 2.5 s is spent, after 1 runs"


def test_seconds_do_not_count_without_a_clock() -> None:
    assert Meter(Budget(10, 0.001), MEANS).spent() is None


def test_progress_is_told_after_every_run() -> None:
    told: list[Progress] = []
    meter = Meter(Budget(), Means(on_progress=told.append))
    meter.note_run()
    meter.doing, meter.planned, meter.found = "double", 9, 1
    meter.note_run()
    assert told == [Progress("baseline", 1, None, 0), Progress("double", 2, 9, 1)]
