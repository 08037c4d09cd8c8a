"""A replayed run: what was decided in it, and whether what was found shows again."""

from __future__ import annotations

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from harness.core.outcome import outcome_name
from harness.core.verdict import Status
from harness.explore.probe import MISSED, Run
from harness.report.decisions import decided
from harness.report.sweep import STYLES
from harness.report.terminal import Report, captured, print_failure
from harness.report.values import printable


class Replay(Struct, frozen=True):
    """A run that was made again, with the failures that count where runs are cut.

    As text it is the report that the command line prints.
    """

    report: Report
    run: Run

    @property
    def status(self) -> Status:
        """FAIL where something is wrong with the run, INCOMPLETE where nothing can be said."""
        if self.run.findings:
            return "FAIL"
        return "PASS" if self.open is None else "INCOMPLETE"

    @property
    def open(self) -> str | None:
        """Why nothing can be said of the run; None where something can."""
        for landing in self.run.landings:
            if landing.came_to in MISSED:
                return (
                    f"the cancel {landing.shot} was {landing.came_to}, so nothing was tried; the "
                    "agent has changed since the token was made, so search again"
                )
        return self.run.unresolved

    @property
    def ok(self) -> bool:
        """Whether the status is PASS."""
        return self.status == "PASS"

    def check(self) -> Replay:
        """Give the replay itself if it is ok; else AssertionError with the whole report."""
        if not self.ok:
            raise AssertionError(f"\n{self}")
        return self

    def __str__(self) -> str:
        return captured(lambda console: print_replay(console, self))


def print_replay(console: Console, replay: Replay) -> None:
    """What was decided in the run, what came out, and where something is wrong, what shows it."""
    report = replay.report
    console.print(Text(printable(f"{report.scenario} on {report.loop}"), style="bold"))
    for line in decided(replay.run):
        console.print(Text(printable(line)))
    outcomes = ", ".join(map(outcome_name, report.outcomes)) or "no turn ended"
    console.print(Text(f"outcomes: {outcomes}"))
    verdict = Text(replay.status, style=STYLES[replay.status])
    match replay.status:
        case "FAIL":
            verdict.append(": what was found shows again", "bold")
        case "PASS":
            verdict.append(": nothing is wrong with this run, so nothing shows again", "bold")
        case "INCOMPLETE":
            verdict.append(printable(f": {replay.open}"), "bold")
    console.print(verdict)
    if replay.status == "FAIL":
        print_failure(console, report)
