"""Each program that a cancel breaks is found by a sweep, and none that is right is blamed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from harness.exploration.sweep_report import SweepMode
from harness.runner.exploring import USUAL_MODES, replay, sweep
from tests.known_bugs import cancelled

WITH_DOUBLE: tuple[SweepMode, ...] = (*USUAL_MODES, "double")

BROKEN: list[tuple[Callable[[], Any], str, str]] = [
    (cancelled.Queries, "deadlock", "1.3 waits at tests/known_bugs/cancelled.py:"),
    (cancelled.Queries, "check", "it had not ended: 1 task will never be woken"),
    (cancelled.fetch_both, "orphan child", "task 1.2, created at tests/known_bugs/cancelled.py:"),
    (cancelled.Writer, "shield detached", "was shielded from the cancel, and goes on 60s"),
    (cancelled.stop_by_force, "cancel spin", "most of the last by 1.1 (500 suspensions), 1 ("),
    (cancelled.first_words, "abandoned generator", "tokens was left in the middle"),
]


@pytest.mark.parametrize(
    ("program", "kind", "says"), BROKEN, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_usual_sweep_finds_it(program: Callable[[], Any], kind: str, says: str) -> None:
    swept = sweep(program)
    assert swept.status == "FAIL"
    found = {group.key.partition(": ")[0]: group for group in swept.report.failed}
    assert says in found[kind].message
    failed = next(each for each in swept.failed if found[kind] in each.groups)
    again = replay(failed.token, program)
    assert found[kind].key in [finding.key for finding in again.run.findings]


@pytest.mark.parametrize(
    "program",
    [
        cancelled.CarefulQueries,
        cancelled.fetch_both_in_a_group,
        cancelled.fetch_with_timeout,
        cancelled.EndingWriter,
        cancelled.stop_patiently,
        cancelled.first_words_closing,
    ],
)
def test_what_is_right_passes(program: Callable[[], Any]) -> None:
    sweep(program).check()


def test_the_lost_hand_off_is_a_late_cancel() -> None:
    points = [point for point in sweep(cancelled.Queries).report.points if point.keys]
    assert {point.mode for point in points} == {"late"}
    assert {point.landings for point in points} == {("result lost",)}


def test_wait_for_of_python_3_11_swallows_a_late_cancel() -> None:
    swept = sweep(cancelled.fetch_in_time)
    keys = [group.key for group in swept.report.failed]
    if sys.version_info >= (3, 12):
        assert keys == []
        return
    assert keys == ["swallowed: fetch_in_time"]
    assert swept.failed[0].groups[0].message == (
        "swallowed: task 1, fetch_in_time, was cancelled and returned as if it had not been; "
        "cancelled() is False, cancelling() is 1"
    )
    assert [str(shot) for shot in swept.failed[0].groups[0].shots] == ["1#1/late:task"]


def test_a_second_cancel_interrupts_the_clean_up() -> None:
    sweep(cancelled.Transaction).check()
    swept = sweep(cancelled.Transaction, modes=WITH_DOUBLE)
    assert [group.key for group in swept.report.failed] == ["cleanup interrupted: Transaction.run"]
    first, second = swept.failed[0].groups[0].shots
    assert (str(first), str(second)) == ("1#1/early:task", "1#2/early:task")
    sweep(cancelled.ShieldedTransaction, modes=WITH_DOUBLE, roles=["turn"]).check()
