"""Results of runs in a terminal: the table, what failed, the time line of one run."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.core.durations import moment
from harness.core.events import RequestMissed, RequestSent
from harness.core.outcome import Outcome
from harness.core.trace import Entry, Trace
from harness.core.verdict import Verdict, Violation
from harness.invariants import INVARIANTS
from harness.invariants.recordings import Miss
from harness.invariants.relations import RELATIONS
from harness.report.text import brief
from harness.report.text import line as line_of
from harness.report.timeline import timeline
from harness.report.values import outcomes_text, printable
from harness.sim.stop import OVER

BEFORE, AFTER = 3, 1
"""How many trace entries an excerpt shows around the one that matters."""
SHOWN_MAX = 5
"""How many failures of one run are shown whole."""
NAMED_MAX = 3
"""Up to how many invariants that could not judge are named."""
TABLE_FROM = 60
"""From this width on, in columns, the table has all of its columns."""
WHOLE_FROM = 80
"""The same for tables of sweeps and searches."""
_UNBOUND = 10_000


class Failing(Protocol):
    """One way in which a run is not what its scenario says."""

    @property
    def message(self) -> str:
        """What was expected and what was found."""
        ...

    @property
    def turn(self) -> int | None:
        """The turn that it happened in, from 1."""
        ...

    @property
    def line(self) -> int:
        """The scenario file's line that asks for it; 0 is none."""
        ...

    @property
    def entry(self) -> int | None:
        """The trace entry that shows it."""
        ...


class Report(Struct, frozen=True):
    """One run, as it is shown; `rerun` is the command that runs it again."""

    scenario: str
    about: str
    source: str
    loop: str
    outcomes: tuple[Outcome, ...]
    trace: Trace
    verdict: Verdict
    failures: tuple[Failing, ...]
    turn_lines: tuple[int, ...]
    """The line of each turn in the scenario's file."""
    rerun: str

    @property
    def hard(self) -> list[Violation]:
        """The violations that make the run fail."""
        return [found for found in self.verdict.violations if found.severity == "hard"]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not self.failures and not self.hard

    def turn_line(self, turn: int | None) -> int:
        """The scenario file's line of a turn; 0 where it has none, as the runner's own turn."""
        return self.turn_lines[turn - 1] if turn and turn <= len(self.turn_lines) else 0


def make_console(*, stderr: bool = False) -> Console:
    """A console on a standard stream; where that is no terminal, lines are as long as they are.

    With NO_COLOR nothing is coloured, bold or dim; with FORCE_COLOR it is, also in a pipe.
    """
    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(
        stderr=stderr,
        color_system=None if plain else "auto",
        no_color=plain,
        highlight=False,
        markup=False,
        emoji=False,
    )
    if not on_terminal(console):
        console.width = _UNBOUND
        console.soft_wrap = True
    return console


def on_terminal(console: Console) -> bool:
    """Whether a terminal shows what is printed, whatever FORCE_COLOR says of colours."""
    return console.file.isatty()


def as_text(reports: Sequence[Report]) -> str:
    """What `print_results` prints, without colours and as wide as it needs to be."""
    return captured(lambda console: print_results(console, reports, verbose=True))


def failure_text(report: Report) -> str:
    """What `print_failure` prints, without colours and as wide as it needs to be."""
    return captured(lambda console: print_failure(console, report))


def captured(show: Callable[[Console], None]) -> str:
    """What `show` prints, without colours and as wide as it needs to be."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=_UNBOUND,
        soft_wrap=True,
        force_terminal=False,  # whatever FORCE_COLOR says
        color_system=None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    show(console)
    return file.getvalue().rstrip("\n")


def print_results(
    console: Console, reports: Sequence[Report], *, about: bool = False, verbose: bool = False
) -> None:
    """The table of runs, what no invariant could judge, the count, and each failure.

    With `about`, each run has what its scenario is about in place of a row; with `verbose`, what
    could not be judged is named, however much it is. The last line printed is the command that
    runs the last failure again.
    """
    if about:
        _print_each(console, reports)
    else:
        _print_table(console, reports)
    unjudged = not_judged(reports, verbose=verbose)
    if unjudged:
        console.print(Text(f"not judged: {unjudged}", style="dim"))
    for finding in soft(reports):
        console.print(Text(printable(f"soft: {finding}"), style="yellow"))
    for known in accepted(reports):
        console.print(Text(printable(f"accepted: {known}"), style="dim"))
    failed = [report for report in reports if not report.ok]
    summary = f"{len(reports) - len(failed)} passed, {len(failed)} failed"
    console.print(Text(summary, style="bold red" if failed else "bold green"))
    for report in failed:
        console.print()
        print_failure(console, report)


def _print_each(console: Console, reports: Sequence[Report]) -> None:
    for report in reports:
        outcomes, requests, time = figures(report)
        asked = "1 request" if requests == "1" else f"{requests} requests"
        text = Text().append_text(_status(report))
        text.append(f"  {printable(f'{report.scenario} on {report.loop}')}", "bold")
        text.append(f": {outcomes}; {asked}, {time} of virtual time")
        console.print(text)
        console.print(Padding(Text(printable(report.about)), (0, 0, 0, 6), expand=False))


def _print_table(console: Console, reports: Sequence[Report]) -> None:
    whole = console.width >= TABLE_FROM
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("verdict", "scenario", "loop", "outcomes", "requests", "time"):
        if whole or name in ("verdict", "scenario"):
            table.add_column(name, overflow="fold")
    for report in reports:
        cells = [_status(report), Text(printable(report.scenario))]
        if whole:
            cells += map(Text, (printable(report.loop), *figures(report)))
        table.add_row(*cells)
    print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """A table, its lines without blanks at their ends."""
    with console.capture() as capture:
        console.print(table)
    for row in capture.get().splitlines():
        console.file.write(f"{row.rstrip()}\n")


def figures(report: Report) -> tuple[str, str, str]:
    """The outcomes, the number of requests, the virtual time that passed."""
    requests = sum(isinstance(entry.event, RequestSent) for entry in report.trace)
    last = report.trace.entries[-1].at if len(report.trace) else 0
    return outcomes_text(report.outcomes, report.trace), str(requests), moment(last)


def _status(report: Report) -> Text:
    return Text("PASS", style="green") if report.ok else Text("FAIL", style="bold red")


def not_judged(reports: Sequence[Report], *, verbose: bool = False) -> str:
    """What had nothing to read: expectations by name, invariants too where they are few or with
    `verbose`, else how many of all they are: in every run, and in some.
    """
    counts = Counter(
        name
        for report in reports
        for name in {each.partition(" of turn ")[0] for each in report.verdict.not_judged}
    )
    names = sorted(counts)
    if verbose or len(names) <= NAMED_MAX:
        return ", ".join([_often(name, counts[name], reports) for name in names])
    invariants = [name for name in names if " " not in name]
    always = sum(counts[name] == len(reports) for name in invariants)
    some = len(invariants) - always
    told = [f"{always} of {len(INVARIANTS) + len(RELATIONS)} invariants"]
    told += [f"{some} more in some runs"] if some else []
    told += [_often(name, counts[name], reports) for name in names if name not in invariants]
    return f"{', '.join(told)} (--verbose names them)"


def soft(reports: Sequence[Report]) -> list[str]:
    """What is not as it should be, and yet lets a run pass."""
    counts = Counter(
        known
        for report in reports
        for known in {
            f"{one.invariant}, {one.message}"
            for one in report.verdict.violations
            if one.severity == "soft"
        }
    )
    return [_often(known, count, reports) for known, count in sorted(counts.items())][:SHOWN_MAX]


def accepted(reports: Sequence[Report]) -> list[str]:
    """What was broken and is known to be, with the reason that scenarios give."""
    counts = Counter(
        known
        for report in reports
        for known in {f"{one.violation.invariant}, {one.why}" for one in report.verdict.accepted}
    )
    return [_often(known, count, reports) for known, count in sorted(counts.items())]


def _often(name: str, count: int, reports: Sequence[Report]) -> str:
    return name if count == len(reports) else f"{name} (in {count} of {len(reports)} runs)"


def print_failure(console: Console, report: Report) -> None:
    """What failed in a run, each with the place in the scenario and in the trace."""
    head = Text("FAIL ", style="bold red")
    head.append(printable(f"{report.scenario} on {report.loop}"), style="bold")
    console.print(head)
    found = what_failed(report)
    for entry, same in groupby(found[:SHOWN_MAX], lambda one: one[1]):
        for message, _ in same:
            console.print(Text(message))
        if entry is not None:
            print_excerpt(console, [line_of(_in_log(each)) for each in report.trace], entry)
    if len(found) > SHOWN_MAX:
        console.print(Text(f"and {len(found) - SHOWN_MAX} more"))
    console.print(Text("run it again:", style="dim"))
    console.print(Text(report.rerun, style="bold"), soft_wrap=True)  # one line, to be copied


def what_failed(report: Report) -> list[tuple[str, int | None]]:
    """Everything that failed: where in the scenario and what, and the trace entry that shows it.

    In the order in which it happened, so that what follows from a cause comes after it; but first
    that the run left the simulation, or that a limit ended it.
    """
    found = [
        (one.line or report.turn_line(one.turn), printable(one.message), one.entry)
        for one in report.failures
    ]
    for one in report.hard:
        turn = "" if one.turn is None else f" in turn {one.turn}"
        message = f"{one.invariant}{turn}: {_told(one)}"
        found.append((report.turn_line(one.turn), message, one.entry))
    stop = report.trace.stop
    over = stop[0] if stop is not None and stop[1].reason in OVER else None

    def when(one: tuple[int, str, int | None]) -> int:
        if one[2] is None:
            return len(report.trace)
        return -1 if one[2] == over else one[2]

    found.sort(key=when)
    places = [f"{report.source}:{line}" if line else report.source for line, _, _ in found]
    return [
        (f"{printable(place)}: {message}", entry)
        for place, (_, message, entry) in zip(places, found, strict=True)
    ]


def _told(violation: Violation) -> str:
    """What was broken; on several lines where it shows what differs from a recording, which quotes
    all that is not its own.
    """
    if violation.invariant != Miss.id:
        return printable(violation.message)
    return "\n".join([printable(line) for line in violation.message.split("\n")])


def _in_log(entry: Entry) -> Entry:
    """An entry as the lines of a run show it: of a miss the first line, as all is told above."""
    match entry.event:
        case RequestMissed(message=message):
            return replace(entry, event=RequestMissed(message.partition("\n")[0]))
        case _:
            return entry


def print_excerpt(console: Console, lines: Sequence[str], *marked: int) -> None:
    """The lines of a run around those that matter, each cut to the terminal's width."""
    near = {at + by for at in marked for by in range(-BEFORE, AFTER + 1)}
    last = None
    for index in sorted(near & set(range(len(lines)))):
        if last is not None and index > last + 1:
            console.print(Text("    ...", style="dim"))
        last = index
        shown = lines[index] if console.width >= TABLE_FROM else brief(lines[index])
        mark, style = (">", "") if index in marked else (" ", "dim")
        text = Text(f"  {mark} {shown}", style=style)
        text.truncate(console.width, overflow="ellipsis")
        console.print(text)


def print_run(console: Console, report: Report) -> None:
    """One run as a time line, and its judgement below."""
    console.print(Text(printable(f"{report.scenario} on {report.loop}"), style="bold"))
    if report.about:
        console.print(Text(printable(report.about)))
    for row in timeline(report.trace, console.width):
        console.print(row)
    console.print(_status(report))
    for message, _ in what_failed(report):
        console.print(Text(message))
