"""A replayed run: what was decided in it, and whether something is wrong with it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from harness.core.outcome import outcome_name
from harness.core.verdict import Status
from harness.exploration.probe import MISSED, Run
from harness.report.checked import Checked
from harness.report.decisions import decided
from harness.report.sweep import STYLES, print_findings, print_rerun
from harness.report.terminal import Report, captured, print_failure
from harness.report.values import printable


class _Replayed(Checked, frozen=True):
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
        missed = self.missed
        if missed is None:
            return self.run.unresolved
        return (
            f"{missed}, so nothing was tried; the code has changed since the token was made, so "
            "search again"
        )

    @property
    def missed(self) -> str | None:
        """Which cancel came to nothing; None where none did."""
        for landing in self.run.landings:
            if landing.came_to in MISSED:
                return f"the cancel {landing.shot} was {landing.came_to}"
        return None


class Replay(_Replayed, frozen=True):
    """A run of a scenario that was made again, with the failures that count where runs are cut.

    As text it is the report that the command line prints.
    """

    report: Report

    def __str__(self) -> str:
        return captured(lambda console: print_replay(console, self))


class FunctionReplay(_Replayed, frozen=True):
    """A run of a function that was made again; `rerun` makes it once more."""

    name: str
    on: str
    rerun: str

    def __str__(self) -> str:
        return captured(lambda console: _print_function(console, self))


def print_replay(console: Console, replay: Replay) -> None:
    """What was decided in the run, what came out, and where something is wrong, what shows it."""
    report = replay.report
    console.print(Text(printable(f"{report.scenario} on {report.loop}"), style="bold"))
    for line in decided(replay.run):
        console.print(Text(printable(line)))
    outcomes = ", ".join(map(outcome_name, report.outcomes)) or "no turn ended"
    console.print(Text(f"outcomes: {outcomes}"))
    _print_verdict(console, replay)
    if replay.status == "FAIL":
        print_failure(console, report)


def _print_function(console: Console, replay: FunctionReplay) -> None:
    run = replay.run
    console.print(Text(printable(f"{replay.name} on {replay.on}"), style="bold"))
    for line in decided(run):
        console.print(Text(printable(line)))
    _print_verdict(console, replay)
    if replay.status == "FAIL":
        print_findings(console, run, {each.key: "again" for each in run.findings})
        print_rerun(console, replay.rerun)


def _print_verdict(console: Console, replay: _Replayed) -> None:
    verdict = Text(replay.status, style=STYLES[replay.status])
    match replay.status:
        case "FAIL" if replay.missed is not None:
            verdict.append(printable(f": {without_its_cancel(replay.missed)}"), "bold")
        case "FAIL":
            verdict.append(": something is wrong with this run", "bold")
        case "PASS":
            verdict.append(": nothing is wrong with this run", "bold")
        case "INCOMPLETE":
            verdict.append(printable(f": {replay.open}"), "bold")
    console.print(verdict)


def without_its_cancel(missed: str) -> str:
    """What to say of a run in which something is wrong, though its cancel came to nothing."""
    return f"{missed}; what is wrong with this run comes without it"
