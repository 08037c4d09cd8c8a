"""Results of searches: what was tried, what was reached, and for each failure what shows why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.core.verdict import Status
from harness.core.wording import counted
from harness.exploration.budget import Budget
from harness.exploration.explain import Busy
from harness.exploration.probe import Run
from harness.exploration.search_report import Found, SearchReport
from harness.report.checked import Checked
from harness.report.decisions import decided
from harness.report.sweep import (
    SHOWN_MAX,
    STYLES,
    Beside,
    print_counts,
    print_difference,
    print_findings,
    print_rerun,
)
from harness.report.terminal import WHOLE_FROM, captured, print_table
from harness.report.values import printable
from harness.report.why import print_busy, print_why

WARNINGS = {
    "all": "order all: callbacks also run in orders that asyncio promises not to have, so what is "
    "found may never happen"
}
"""What is to be known of an order."""


class Discovery(Struct, frozen=True):
    """A failing run of a search, made simple, and what was `found` with it; `rerun`, which holds
    `token`, runs it again.
    """

    found: tuple[Found, ...]
    run: Run
    beside: Beside | None
    token: str
    rerun: str


class Open(Struct, frozen=True):
    """A run of which nothing can be said: where it was busy; `rerun`, which holds `token`, runs it
    again. It is empty where the token is too long to be told in a line.
    """

    busy: tuple[Busy, ...]
    token: str
    rerun: str


class Exploration(Checked, frozen=True):
    """A finished search of a scenario: what was tried and found, and why where it failed.

    `order` says which orders were choices. As text it is the report that the command line prints.
    """

    scenario: str
    loop: str
    order: str
    budget: Budget
    report: SearchReport
    failed: tuple[Discovery, ...] = ()
    open: Open | None = None

    @property
    def status(self) -> Status:
        """PASS only where nothing was found, every goal was reached and every run was resolved."""
        return self.report.status

    def __str__(self) -> str:
        return captured(lambda console: print_exploration(console, self))


def print_explorations(console: Console, explorations: Sequence[Exploration]) -> None:
    """One exploration whole; of several a table, and whole those that did not pass.

    The last line printed is the command that runs the last failure again, where there is one.
    """
    if len(explorations) == 1:
        print_exploration(console, explorations[0])
        return
    _print_list(console, explorations)
    print_counts(console, [each.status for each in explorations])
    bad = [each for each in explorations if not each.ok]
    for each in sorted(bad, key=lambda each: each.status == "FAIL"):
        console.print()
        print_exploration(console, each)


def print_exploration(console: Console, exploration: Exploration) -> None:
    """What was tried and reached, and each failure with what shows why."""
    report = exploration.report
    head = Text(exploration.status, style=STYLES[exploration.status])
    head.append(printable(f" {exploration.scenario} on {exploration.loop}"), "bold")
    console.print(head)
    _print_tried(console, report)
    for line in figures(exploration):
        console.print(Text(printable(line)))
    for known in report.tolerated:
        said = f"tolerated: {known.message} (in {counted(known.count, 'run')})"
        console.print(Text(printable(said), style="dim"))
    if exploration.order in WARNINGS:
        console.print(Text(WARNINGS[exploration.order], style=STYLES["INCOMPLETE"]))
    for why in report.incomplete:
        console.print(Text(printable(f"INCOMPLETE: {why}"), style=STYLES["INCOMPLETE"]))
    if exploration.open is not None:
        _print_open(console, exploration.open)
    if len(exploration.failed) > SHOWN_MAX:
        console.print(Text(f"shown are {SHOWN_MAX} of {len(exploration.failed)} failures"))
    for failed in exploration.failed[:SHOWN_MAX]:
        console.print()
        _print_failed(console, failed)


def _print_list(console: Console, explorations: Sequence[Exploration]) -> None:
    whole = console.width >= WHOLE_FROM
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("verdict")
    table.add_column("scenario", overflow="fold")
    if whole:
        table.add_column("loop", overflow="fold")
    for name in ("found", "runs", "schedules"):
        if whole or name != "schedules":
            table.add_column(name, justify="right")
    for each in explorations:
        report = each.report
        cells = [Text(each.status, style=STYLES[each.status]), Text(printable(each.scenario))]
        counts = [len(report.found), report.runs]
        if whole:
            cells.append(Text(printable(each.loop)))
            counts.append(report.distinct)
        table.add_row(*cells, *[Text(f"{count:,}") for count in counts])
    print_table(console, table)


def _print_tried(console: Console, report: SearchReport) -> None:
    """The strategies, their runs, and how many of them went a way of their own."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("strategy")
    for name in ("runs", "new"):
        table.add_column(name, justify="right")
    rows = [(each.strategy, each.runs, each.new) for each in report.tried]
    for name, runs, new in [*rows, ("all", report.runs, report.distinct)]:
        table.add_row(name, Text(f"{runs:,}"), Text(f"{new:,}"))
    print_table(console, table)


def figures(exploration: Exploration) -> Iterator[str]:
    """What could be decided, what was tried in full, what was reached, what it might take."""
    report, budget = exploration.report, exploration.budget
    cancels = f", up to {counted(report.cancels, 'cancel')} a run" if report.cancels else ""
    yield f"order {exploration.order}, strategy {report.strategy}, seed {report.seed}{cancels}"
    ways = counted(report.distinct, "different schedule")
    if report.exhausted:
        yield f"{ways}: there are no others"
    elif report.deviations:
        most = counted(report.deviations, "deviation")
        yield f"{ways}; every run with up to {most} from the ordinary one was tried"
    else:
        yield ways
    if report.goals:
        goals = [f"{goal} in {counted(count, 'run')}" for goal, count in report.goals]
        yield f"goals: {', '.join(goals)}"
    seconds = "" if budget.seconds is None else f" and {budget.seconds:g} s"
    yield f"budget: {counted(budget.runs, 'run')}{seconds}; it ended since {report.ended}"


def _print_open(console: Console, left: Open) -> None:
    """Where a run was busy that a limit ended, and what runs it again."""
    print_busy(console, left.busy, " of the first run not resolved")
    if left.rerun:
        print_rerun(console, left.rerun)
        return
    console.print(Text(without_line(left)))


def without_line(left: Open) -> str:
    """What to do where no line runs it again, since its token is too long for one."""
    return (
        f"its token has {len(left.token):,} characters, too many for a line; from Python, "
        "explore(...).open.token is what replay takes"
    )


def _print_failed(console: Console, failed: Discovery) -> None:
    run = failed.run
    head = Text("FAIL ", style=STYLES["FAIL"])
    kinds = dict.fromkeys([found.key.partition(":")[0] for found in failed.found])
    head.append(printable(", ".join(kinds)))
    console.print(head)
    for line in dict.fromkeys([made_simple(found) for found in failed.found]):
        console.print(Text(line))
    for line in decided(run):
        console.print(Text(printable(f"  {line}")))
    print_findings(
        console, run, {found.key: f"in {counted(found.count, 'run')}" for found in failed.found}
    )
    print_why(console, run)
    if failed.beside is not None:
        print_difference(console, failed.beside, run)
    print_rerun(console, failed.rerun)


def discovery_text(failed: Discovery) -> str:
    """What is printed of one failure of a search, the line that runs it again last."""
    return captured(lambda console: _print_failed(console, failed))


def made_simple(found: Found) -> str:
    """Where a finding was met, and what was made of it."""
    shrunk = found.shrunk
    counts = {"decision": len(shrunk.tape), "cancel": len(shrunk.shots)}
    left = " and ".join([counted(count, noun) for noun, count in counts.items() if count])
    least = "" if shrunk.minimal else ", which may not be the least"
    return (
        f"found by {found.strategy} in run {found.at_run:,} with "
        f"{counted(found.deviations, 'decision')}; made simple in "
        f"{counted(shrunk.runs, 'run')}: {left or 'nothing is decided'}{least}"
    )
