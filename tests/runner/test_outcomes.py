"""What the end of a turn means."""

from __future__ import annotations

import pytest

from harness.core.outcome import COMPLETED, STEP_LIMIT
from harness.fakes.script import Reply
from harness.runner.agents import find_loop, loop_subject
from harness.runner.run import run
from harness.runner.scenario import Cancel, Scenario, Turn
from tests.subjects.hand_loop import MendedHandLoop

LAST_STEP = Cancel("reply_ended", by="task")
"""The hand-written loops do not wait for anything after the end of their last reply."""


def cut(cancel: Cancel) -> Scenario:
    return Scenario("case", loops=("turn",), turns=(Turn("Hi.", (Reply("Ho."),), cancel),))


def test_a_turn_that_returns_is_completed_though_its_task_was_cancelled_in_its_last_step() -> None:
    result = run(cut(LAST_STEP), MendedHandLoop)
    assert result.outcomes == (COMPLETED,)
    assert result.ok


def test_and_what_it_returns_counts() -> None:
    class SaysLimit(MendedHandLoop):
        def outcome(self, _value: None) -> object:
            return STEP_LIMIT

    assert run(cut(LAST_STEP), SaysLimit).outcomes[0] == STEP_LIMIT


@pytest.mark.parametrize(
    ("loop", "event", "name"),
    [
        ("turn", "log_row", "turn_end"),
        ("turn", "loop_event", "turn_end"),
        ("fsm", "state_entered", "DONE"),
    ],
)
def test_a_reference_loop_returns_what_it_has_written(loop: str, event: str, name: str) -> None:
    scenario = cut(Cancel(event, name, by="task"))
    result = run(scenario, loop_subject(find_loop(loop), scenario))
    assert result.outcomes == (COMPLETED,)
    assert result.ok
