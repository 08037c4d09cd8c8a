"""Results of sweeps: how many points came to what, and for each failure what shows why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.core.verdict import Status
from harness.core.wording import counted
from harness.exploration.probe import Finding, Run
from harness.exploration.sweep_report import Group, SweepReport, Tally
from harness.report.checked import Checked
from harness.report.decisions import shot_sentences
from harness.report.terminal import WHOLE_FROM, captured, print_excerpt, print_table
from harness.report.text import untimed_diff
from harness.report.values import printable
from harness.report.why import print_why

SHOWN_MAX = 20
"""How many failing runs of one sweep are shown."""
DIFFERENCE_MAX = 16
"""How many lines of a difference are shown."""

STYLES = {"PASS": "green", "FAIL": "bold red", "INCOMPLETE": "bold yellow"}
_COUNTS = ("clean", "tolerated", "failed", "unresolved", "missed", "absent")
_WHOLE = ("points", *_COUNTS[:-1], "n/a")
_NARROW = ("points", "clean", "failed", "open")


class Beside(Struct, frozen=True):
    """The passing run that is most like a failing one, and in what it was made differently."""

    changed: str
    run: Run


class Failed(Struct, frozen=True):
    """A failing run of a sweep, the smallest for each of `groups`. `token` gives the run again, and
    the line `rerun` shows again what fails. Where the run is well by itself, `beside` is the one
    that it was held against.
    """

    groups: tuple[Group, ...]
    run: Run
    beside: Beside | None
    token: str
    rerun: str


class Sweep(Checked, frozen=True):
    """A finished sweep of a scenario: what every point came to, and why where it failed.

    As text it is the report that the command line prints.
    """

    scenario: str
    loop: str
    report: SweepReport
    failed: tuple[Failed, ...] = ()

    @property
    def status(self) -> Status:
        """PASS only where all points that exist were tried, and nothing is wrong with any."""
        return self.report.status

    def __str__(self) -> str:
        return captured(lambda console: print_sweep(console, self))


def print_sweeps(console: Console, sweeps: Sequence[Sweep]) -> None:
    """One sweep whole; of several a table, their sum, and whole those that did not pass.

    The last line printed is the command that runs the last failure again, where there is one.
    """
    if len(sweeps) == 1:
        print_sweep(console, sweeps[0])
        return
    _print_list(console, sweeps)
    reports = [sweep.report for sweep in sweeps]
    console.print()
    _print_tallies(console, reports)
    console.print(Text(figures(reports)))
    _print_absent(console, reports)
    _print_tolerated(console, reports)
    print_counts(console, [sweep.status for sweep in sweeps])
    bad = [sweep for sweep in sweeps if not sweep.ok]
    for sweep in sorted(bad, key=lambda sweep: sweep.status == "FAIL"):
        console.print()
        print_sweep(console, sweep)


def print_counts(console: Console, statuses: Sequence[Status]) -> None:
    """How many passed, failed, or are open."""
    counts = Counter(statuses)
    summary = f"{counts['PASS']} passed, {counts['FAIL']} failed, {counts['INCOMPLETE']} incomplete"
    whole: Status = "PASS" if counts["PASS"] == len(statuses) else "FAIL"
    console.print(Text(summary, style=STYLES[whole]))


def print_sweep(console: Console, sweep: Sweep) -> None:
    """What the points of a sweep came to, and each failure with what shows why."""
    report = sweep.report
    head = Text(sweep.status, style=STYLES[sweep.status])
    head.append(printable(f" {sweep.scenario} on {sweep.loop}"), "bold")
    console.print(head)
    _print_tallies(console, [report])
    console.print(Text(figures([report])))
    _print_absent(console, [report])
    _print_tolerated(console, [report])
    for why in report.incomplete:
        console.print(Text(printable(f"INCOMPLETE: {why}"), style=STYLES["INCOMPLETE"]))
    if len(sweep.failed) > SHOWN_MAX:
        console.print(Text(f"shown are {SHOWN_MAX} of {len(sweep.failed)} failures"))
    for failed in sweep.failed[:SHOWN_MAX]:
        console.print()
        _print_failed(console, failed, report)


def _print_list(console: Console, sweeps: Sequence[Sweep]) -> None:
    whole = console.width >= WHOLE_FROM
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("verdict")
    table.add_column("scenario", overflow="fold")
    if whole:
        table.add_column("loop", overflow="fold")
    for name in ("points", "failed", "open", "n/a", "runs"):
        if whole or name in ("points", "failed"):
            table.add_column(name, justify="right")
    for sweep in sweeps:
        tally = _sum("", sweep.report.by_mode)
        cells = [Text(sweep.status, style=STYLES[sweep.status]), Text(printable(sweep.scenario))]
        counts = [tally.points, tally.failed]
        if whole:
            cells.append(Text(printable(sweep.loop)))
            counts += [tally.unresolved + tally.missed, tally.absent, sweep.report.runs]
        table.add_row(*cells, *[Text(f"{count:,}") for count in counts])
    print_table(console, table)


def _print_tallies(console: Console, reports: Sequence[SweepReport]) -> None:
    """The points by mode, all of them, and by the role of the task that they stand at."""
    rows = _sums([tally for report in reports for tally in report.by_mode])
    rows.append(_sum("all", rows))
    roles = _sums([tally for report in reports for tally in report.by_role])
    rows += [_sum(f"{role.name} tasks", [role]) for role in roles if role.points or role.absent]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("cancels", overflow="fold")
    for name in _WHOLE if console.width >= WHOLE_FROM else _NARROW:
        table.add_column(name, justify="right")
    for row in rows:
        whole = (row.clean, row.tolerated, row.failed, row.unresolved, row.missed, row.absent)
        narrow = (row.clean, row.failed, row.unresolved + row.missed)
        counts = whole if console.width >= WHOLE_FROM else narrow
        table.add_row(row.name, *[Text(f"{count:,}") for count in (row.points, *counts)])
    print_table(console, table)


def _sums(tallies: Sequence[Tally]) -> list[Tally]:
    """The sum of the tallies of each name."""
    names = dict.fromkeys([tally.name for tally in tallies])
    return [_sum(name, [tally for tally in tallies if tally.name == name]) for name in names]


def _sum(name: str, tallies: Sequence[Tally]) -> Tally:
    counts = {count: sum(getattr(tally, count) for tally in tallies) for count in _COUNTS}
    return Tally(name, **counts)


def figures(reports: Sequence[SweepReport]) -> str:
    """Where was looked, who was told, how many runs that took."""
    sites = sum(site.role in report.roles for report in reports for site in report.baseline.sites)
    whom = dict.fromkeys([who for report in reports for who in report.whom])
    runs = sum(report.runs for report in reports)
    return f"{counted(sites, 'site')}, told: {', '.join(whom)}; {counted(runs, 'run')}"


def _print_absent(console: Console, reports: Sequence[SweepReport]) -> None:
    reasons = Counter([each.why for report in reports for each in report.absent])
    if reasons:
        said = ", ".join([f"{why} ({count:,})" for why, count in reasons.most_common()])
        console.print(Text(f"n/a: {said}", style="dim"))


def _print_tolerated(console: Console, reports: Sequence[SweepReport]) -> None:
    counts: Counter[str] = Counter()
    for report in reports:
        for group in report.tolerated:
            counts[group.message] += _points(group)
    for message, count in counts.items():
        known = printable(f"tolerated: {message} ({counted(count, 'point')})")
        console.print(Text(known, style="dim"))


def _print_failed(console: Console, failed: Failed, report: SweepReport) -> None:
    shots = failed.groups[0].shots
    head = Text("FAIL ", style=STYLES["FAIL"])
    at = f"cancelled at {' and '.join(map(str, shots))}" if shots else "without a cancel"
    head.append(printable(at))
    console.print(head)
    for sentence in shot_sentences(failed.run):
        console.print(Text(printable(sentence)))
    print_findings(
        console, failed.run, {group.key: share(group, report) for group in failed.groups}
    )
    print_why(console, failed.run, around=True)
    if failed.beside is not None:
        print_difference(console, failed.beside, failed.run)
    print_rerun(console, failed.rerun)


def failed_text(sweep: Sweep, failed: Failed) -> str:
    """What is printed of one failure of a sweep, the line that runs it again last."""
    return captured(lambda console: _print_failed(console, failed, sweep.report))


def print_findings(console: Console, run: Run, often: Mapping[str, str]) -> None:
    """The findings of a run whose keys are in `often`, which says how often each was met, and the
    lines of the run that show them.
    """
    findings = {each.key: each for each in reversed(run.findings) if each.key in often}
    marked = [finding.line for finding in findings.values() if finding.line is not None]
    for finding in sorted(findings.values(), key=place):
        console.print(Text(printable(f"{finding.message} ({often[finding.key]})")))
    print_excerpt(console, run.lines, *(marked or [len(run.lines) - 1]))


def print_rerun(console: Console, rerun: str) -> None:
    """The line that runs it again, in one piece."""
    console.print(Text("run it again:", style="dim"))
    console.print(Text(rerun, style="bold"), soft_wrap=True)  # one line, to be copied


def place(finding: Finding) -> float:
    """Where in the run a finding shows, so that what follows from another comes after it."""
    return inf if finding.line is None else finding.line


def print_difference(console: Console, beside: Beside, run: Run) -> None:
    """In what a failing run differs from the run beside it."""
    changed = printable(beside.changed)
    console.print(Text(f"the nearest run that passes: {changed}; what differs, times aside:"))
    lines = untimed_diff(beside.run.lines, run.lines)
    for line in lines[:DIFFERENCE_MAX]:
        text = Text(f"    {line}", style="dim")
        text.truncate(console.width, overflow="ellipsis")
        console.print(text)
    if len(lines) > DIFFERENCE_MAX:
        console.print(
            Text(f"    ({counted(len(lines) - DIFFERENCE_MAX, 'line')} more)", style="dim")
        )


def share(group: Group, report: SweepReport) -> str:
    """At how many of all points a finding shows."""
    count = _points(group)
    if not count:
        return "without a cancel"
    also = "" if count == len(group.points) else "without a cancel and "
    return f"{also}at {count:,} of {counted(len(report.points), 'point')}"


def _points(group: Group) -> int:
    """How many points show it: the run without a cancel is none."""
    return sum(bool(shots) for shots in group.points)
