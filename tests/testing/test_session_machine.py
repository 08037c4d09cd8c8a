"""Sessions of both loops as state machines, and loops with one thing gone wrong that they find."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from harness.core.rows import Row, ToolResultRow, UserRow
from harness.loops.fsm.loop import Loop
from harness.loops.fsm.messages import Message
from tests.testing.fsm_session import FsmSession, without
from tests.testing.session_machine import SessionMachine
from tests.testing.turn_session import Log, TurnSession

STEPS = settings(max_examples=200, stateful_step_count=15, database=None, print_blob=False)
NO_SHRINKING = settings(STEPS, phases=[Phase.generate])


class KeepsOpenRounds(Loop):
    """Leaves a round that was cut off as it is."""

    def kept(self) -> list[Message]:
        return self.messages


class OpenRounds(FsmSession):
    loop = KeepsOpenRounds
    policy = without("repair_history")


class StaleWrites(FsmSession):
    policy = without("stale_writes")


class DropsCutRounds(FsmSession):
    policy = without("answer_cancelled_rounds")


class ForgetsResults(Log):
    """Does not write the second result of a reply."""

    def append(self, row: Row) -> None:
        if not (isinstance(row, ToolResultRow) and isinstance(self.rows()[-1], ToolResultRow)):
            super().append(row)


class WritesTwice(Log):
    """Writes what the user said twice."""

    def append(self, row: Row) -> None:
        super().append(row)
        if isinstance(row, UserRow):
            super().append(row)


class ForgottenResults(TurnSession):
    log = ForgetsResults


class WrittenTwice(TurnSession):
    log = WritesTwice


@pytest.mark.parametrize("machine", [TurnSession, FsmSession])
def test_a_session_goes_on_after_whatever_happens(machine: type[SessionMachine]) -> None:
    run_state_machine_as_test(machine, settings=STEPS)


@pytest.mark.parametrize(
    ("machine", "found_by"),
    [
        (OpenRounds, "a_provider_takes_it"),
        (StaleWrites, "replaced"),
        (DropsCutRounds, "it_holds_what_was_said_and_done"),
        (ForgottenResults, "it_holds_what_was_said_and_done"),
        (WrittenTwice, "nothing_is_there_twice_or_that_was_dropped"),
    ],
)
def test_a_loop_that_has_gone_wrong_is_found(machine: type[SessionMachine], found_by: str) -> None:
    with pytest.raises(AssertionError) as found:
        run_state_machine_as_test(machine, settings=NO_SHRINKING)
    assert found.traceback[-1].name == found_by
