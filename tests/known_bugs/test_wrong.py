"""Each program with a mistake is found, and what is said of it names the mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.runner.exploring import explore, replay, sweep
from tests.known_bugs import wrong

FOUND: list[tuple[Callable[[], Any], str]] = [
    (wrong.LosesItsCleanUp, "check:AssertionError: opened but not closed"),
    (wrong.forgets_its_heartbeat, "orphan child: task 1.1, created at tests/known_bugs/wrong.py:"),
    (
        wrong.swallows_a_cancel,
        "swallowed: task 1, swallows_a_cancel, was cancelled and returned as if it had not been",
    ),
    (wrong.fires_and_forgets, "orphan child: task 1.1, created at tests/known_bugs/wrong.py:"),
    (
        wrong.ReleasesTwice,
        "converted:RuntimeError: task 1.1, ReleasesTwice.withdraw, was cancelled, and raised "
        "RuntimeError: Lock is not acquired. (tests/known_bugs/wrong.py:",
    ),
    (wrong.ChecksThenActs, "check:AssertionError: the balance is -2"),
    (wrong.PoisonsItsCache, "deadlock: 1 waits for 1.2 at tests/known_bugs/right_shared.py:"),
    (wrong.PoisonsItsCache, "check:CancelledError: it was cancelled (tests/known_bugs/wrong.py:"),
    (wrong.retries_cancels, "swallowed: task 1, retries_cancels, was cancelled and returned"),
    (wrong.ShieldsAndLeaves, "check:AssertionError: committed on a connection that was closed"),
    (wrong.gathers_and_leaves, "leaked task: task 1.2, created at tests/known_bugs/wrong.py:"),
    (wrong.UnlocksAfterAnAwait, "check:AssertionError: it is locked"),
    (wrong.LosesItems, "check:AssertionError: lost: [] done, [] left"),
    (wrong.LosesPermits, "check:TimeoutError: (tests/known_bugs/right.py:"),
]


@pytest.mark.parametrize(("program", "says"), FOUND)
def test_a_usual_sweep_finds_it(program: Callable[[], Any], says: str) -> None:
    swept = sweep(program)
    found = [group for group in swept.report.failed if group.message.startswith(says)]
    assert found, [group.message for group in swept.report.failed]
    failed = next(each for each in swept.failed if found[0] in each.groups)
    again = replay(failed.token, program)
    assert found[0].key in [finding.key for finding in again.run.findings]


@pytest.mark.parametrize("program", [wrong.ChecksThenActs, wrong.gathers_and_leaves])
def test_what_no_cancel_needs_is_found_by_a_search_too(program: Callable[[], Any]) -> None:
    assert explore(program, runs=10).status == "FAIL"


def test_what_only_differs_in_numbers_is_one_finding() -> None:
    keys = [group.key for group in sweep(wrong.LosesItems).report.failed]
    assert len(keys) == 1
