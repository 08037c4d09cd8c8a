"""What one run gives back."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.outcome import Outcome
from harness.core.trace import Trace
from harness.core.verdict import Verdict
from harness.runner.scenario import Scenario

FailureKind: TypeAlias = Literal[
    "agent", "mismatch", "expectation", "unused reply", "unused allow", "cancel did not fire"
]


class Failure(Struct, frozen=True):
    """One way in which a run is not what its scenario says.

    `line` is the scenario file's line that asks for it (0: none), `entry` the trace entry that
    shows it.
    """

    kind: FailureKind
    message: str
    turn: int | None = None
    line: int = 0
    entry: int | None = None


class Result(Struct, frozen=True):
    """One run: how its turns ended, all that happened, the judgement, what was not as expected.

    `loop` names what was run: a reference loop with its policy, or the user's agent. `outcomes`
    has one outcome a turn that ended, the runner's own last turn included.
    """

    scenario: Scenario
    loop: str
    outcomes: tuple[Outcome, ...]
    trace: Trace
    verdict: Verdict
    failures: tuple[Failure, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing hard was broken and everything was as the scenario expects."""
        return not self.failures and self.verdict.status == "PASS"
