"""What one run gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from harness.core.outcome import Outcome, outcome_name
from harness.core.trace import Trace
from harness.core.verdict import Verdict
from harness.runner.agents import Subject
from harness.runner.scenario import Scenario

if TYPE_CHECKING:
    from harness.report.terminal import Report

FailureKind: TypeAlias = Literal[
    "agent",
    "run stopped",
    "mismatch",
    "expectation",
    "unused reply",
    "unused allow",
    "cancel did not fire",
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


class Result(Struct, frozen=True, repr_omit_defaults=True):
    """One run: how its turns ended, all that happened, the judgement, what was not as expected.

    `outcomes` has one outcome a turn that ended, the runner's own last turn included. As text it
    is the report that the command line prints.
    """

    scenario: Scenario
    subject: Subject
    outcomes: tuple[Outcome, ...]
    trace: Trace
    verdict: Verdict
    failures: tuple[Failure, ...] = ()
    related: bool = False
    """Whether it was also judged what must hold between runs."""

    @property
    def ok(self) -> bool:
        """Whether nothing hard was broken and everything was as the scenario expects."""
        return not self.failures and self.verdict.status == "PASS"

    def check(self) -> Result:
        """Give the result itself if it is ok; else AssertionError with the whole report."""
        if not self.ok:
            raise AssertionError(str(self))
        return self

    @property
    def rerun(self) -> str:
        """The command that runs the same again; where no command can, what was run."""
        flags = ("--relations",) if self.related else ()
        command = self.subject.command(self.scenario.source, "run", flags=flags)
        return command or f"run({self.scenario.name or 'the scenario'}, {self.subject.name})"

    def report(self) -> Report:
        """The result with all that is shown of it."""
        from harness.report.terminal import Report

        return Report(
            self.scenario.name,
            self.scenario.about,
            self.scenario.source,
            self.subject.name,
            self.outcomes,
            self.trace,
            self.verdict,
            self.failures,
            tuple([turn.line for turn in self.scenario.turns]),
            self.rerun,
        )

    def __str__(self) -> str:
        from harness.report.terminal import as_text

        return as_text([self.report()])

    def __repr__(self) -> str:
        outcomes = ", ".join(map(outcome_name, self.outcomes)) or "no turn ended"
        status = "ok" if self.ok else "failed"
        return f"<Result {status}: {self.scenario.name} on {self.subject.name}: {outcomes}>"
