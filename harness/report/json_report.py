"""What runs, sweeps, searches and replays came to, as plain data for other programs.

The text is one JSON object: `version`, which changes where a reader would have to, what `harness`
wrote it, `totals`, and `results`, each with its `kind`. `schema` describes it in JSON Schema. A
field may be added within a version; what is there keeps its name and its meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from inspect import cleandoc
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from harness import __version__
from harness.core.json_text import Json, dumps_readable, loads
from harness.core.outcome import outcome_name
from harness.core.verdict import Status
from harness.core.wording import counted
from harness.exploration.sweep_report import Group
from harness.report.not_run import Meant, NotRun, Unjudged
from harness.report.replay import FunctionReplay, Replay
from harness.report.search import Discovery, Exploration
from harness.report.sweep import Failed, Sweep
from harness.report.terminal import Report

VERSION: Final = 1
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class FindingJson(Struct, frozen=True):
    """Something wrong: equal `key`s are the same thing, `message` is for people.

    `count` is how many points of a sweep, or runs of a search, show it. `cancels` are those of the
    smallest run that does; `token` replays that, and `rerun` is the line that does it.
    """

    key: str
    message: str
    count: int = 1
    cancels: tuple[str, ...] = ()
    token: str = ""
    rerun: str = ""
    turn: int | None = None


class RunJson(Struct, frozen=True, tag="run", tag_field="kind", kw_only=True):
    """One run of a scenario. `soft` is what is wrong and lets it pass, `not_judged` are the
    invariants that had nothing to read.
    """

    scenario: str
    source: str
    on: str
    status: Status
    outcomes: tuple[str, ...]
    findings: tuple[FindingJson, ...]
    soft: tuple[FindingJson, ...]
    accepted: tuple[FindingJson, ...]
    not_judged: tuple[str, ...]
    rerun: str
    test: str = ""


class TallyJson(Struct, frozen=True):
    """How many points of a mode came to what; `absent` ones do not exist, and do not count."""

    mode: str
    points: int
    clean: int
    tolerated: int
    failed: int
    unresolved: int
    missed: int
    absent: int


class SweepJson(Struct, frozen=True, tag="sweep", tag_field="kind", kw_only=True):
    """A sweep of a scenario or a function; `incomplete` says why it says less than it was meant to.

    Points that were `missed` were not reached, or nobody took the cancel; of those `unresolved`
    nothing can be said.
    """

    scenario: str
    on: str
    status: Status
    runs: int
    points: int
    unresolved: int
    missed: int
    modes: tuple[TallyJson, ...]
    findings: tuple[FindingJson, ...]
    tolerated: tuple[FindingJson, ...]
    incomplete: tuple[str, ...]
    test: str = ""


class GoalJson(Struct, frozen=True):
    """A goal of a search, and how many runs came to it."""

    goal: str
    runs: int


class SearchJson(Struct, frozen=True, tag="search", tag_field="kind", kw_only=True):
    """A search; `schedules` counts those that differ, `exhausted` says that there are no others.

    Of `unresolved` runs nothing can be said; `token` and `rerun` are those of the first.
    """

    scenario: str
    on: str
    status: Status
    order: str
    strategy: str
    seed: int
    runs: int
    schedules: int
    exhausted: bool
    unresolved: int
    goals: tuple[GoalJson, ...]
    findings: tuple[FindingJson, ...]
    tolerated: tuple[FindingJson, ...]
    incomplete: tuple[str, ...]
    ended: str
    token: str = ""
    rerun: str = ""
    test: str = ""


class ReplayJson(Struct, frozen=True, tag="replay", tag_field="kind", kw_only=True):
    """One run that was made again; `open` says why nothing can be said of it."""

    scenario: str
    on: str
    status: Status
    findings: tuple[FindingJson, ...]
    open: str
    rerun: str
    test: str = ""


class NotRunJson(Struct, frozen=True, tag="not_run", tag_field="kind", kw_only=True):
    """What could not be run at all, and the `message` that says why; `findings` are none, as
    nothing was judged. What is not known, such as the scenario of a file with errors, is "".

    ERROR is a mistake that somebody has to mend; SKIPPED had nothing to try, such as a sweep
    without points. Of `meant` a test is one of pytest's that ended before it ran anything.
    """

    meant: Meant
    scenario: str
    source: str
    on: str
    status: Unjudged
    message: str
    findings: tuple[FindingJson, ...] = ()
    test: str = ""


ResultJson: TypeAlias = RunJson | SweepJson | SearchJson | ReplayJson | NotRunJson
Item: TypeAlias = Report | Sweep | Exploration | Replay | FunctionReplay | NotRun


class Totals(Struct, frozen=True):
    """All results together. `reached` are the cancel points of sweeps whose cancel was taken and
    whose run was judged; `not_judged` are invariants, and in how many runs each could not judge.
    `errors` could not be run at all, and `skipped` had nothing to try: they count nowhere else.
    `incomplete` are the sweeps and searches that tried less than they were meant to.
    """

    scenarios_run: int = 0
    scenarios_failed: int = 0
    sweeps: int = 0
    points: int = 0
    reached: int = 0
    searches: int = 0
    schedules: int = 0
    goals: int = 0
    goals_reached: int = 0
    replays: int = 0
    runs: int = 0
    findings: int = 0
    unresolved: int = 0
    not_judged: dict[str, int] = {}
    errors: int = 0
    skipped: int = 0
    incomplete: int = 0


class Document(Struct, frozen=True):
    """The whole file."""

    version: Literal[1]
    harness: str
    totals: Totals
    results: tuple[ResultJson, ...]


def result_of(item: Item) -> ResultJson:
    """A finished run, sweep, search or replay, or what could not be run, as plain data."""
    match item:
        case Report():
            return _run(item)
        case Sweep():
            return _sweep(item)
        case Exploration():
            return _search(item)
        case Replay(report=report):
            return _replay(item, report.scenario, report.loop, report.rerun)
        case FunctionReplay(name=name, on=on, rerun=rerun):
            return _replay(item, name, on, rerun)
        case NotRun():
            return NotRunJson(
                meant=item.meant,
                scenario=item.scenario,
                source=item.source,
                on=item.on,
                status=item.status,
                message=item.reason,
            )


def json_report(results: Sequence[ResultJson]) -> str:
    """The text of a whole file, which ends with a new line."""
    document = Document(VERSION, __version__, totals_of(results), tuple(results))
    return f"{dumps_readable(msgspec.to_builtins(document))}\n"


def schema() -> Json:
    """The JSON Schema of a whole file."""
    made = {"$schema": _DIALECT, "title": "harness results", **msgspec.json.schema(Document)}
    for each in made["$defs"].values():  # older ones of msgspec's keep a docstring's indentation
        each["description"] = cleandoc(each["description"])
    return loads(dumps_readable(made))  # defaults of msgspec's are tuples


def totals_of(results: Sequence[ResultJson]) -> Totals:
    """The sum of all results."""
    runs = [each for each in results if isinstance(each, RunJson)]
    sweeps = [each for each in results if isinstance(each, SweepJson)]
    searches = [each for each in results if isinstance(each, SearchJson)]
    replays = [each for each in results if isinstance(each, ReplayJson)]
    goals = [goal for each in searches for goal in each.goals]
    unjudged = [name for each in runs for name in each.not_judged]
    tried: list[SweepJson | SearchJson] = [*sweeps, *searches]
    return Totals(
        scenarios_run=len(runs),
        scenarios_failed=sum(each.status == "FAIL" for each in runs),
        sweeps=len(sweeps),
        points=sum(each.points for each in sweeps),
        reached=sum(each.points - each.unresolved - each.missed for each in sweeps),
        searches=len(searches),
        schedules=sum(each.schedules for each in searches),
        goals=len(goals),
        goals_reached=sum(bool(goal.runs) for goal in goals),
        replays=len(replays),
        runs=len(runs) + len(replays) + sum(each.runs for each in tried),
        findings=sum(len(each.findings) for each in results),
        unresolved=sum(each.unresolved for each in tried)
        + sum(bool(each.open) for each in replays),
        not_judged=dict(sorted(Counter(unjudged).items())),
        errors=sum(each.status == "ERROR" for each in results),
        skipped=sum(each.status == "SKIPPED" for each in results),
        incomplete=sum(bool(each.incomplete) for each in tried),
    )


def totals_lines(totals: Totals, named: int | None = None) -> list[str]:
    """The totals in a few short lines, without what there is none of.

    Invariants that no run could judge are named where there are no more than `named` (None: all).
    """
    lines = []
    if totals.errors:
        lines.append(f"could not be run: {totals.errors:,}")
    if totals.skipped:
        lines.append(f"passed over, with nothing to try: {totals.skipped:,}")
    if totals.scenarios_run:
        lines.append(f"{counted(totals.scenarios_run, 'scenario')} run")
    if totals.sweeps:
        lines.append(
            f"{counted(totals.sweeps, 'sweep')}: {totals.reached:,} of "
            f"{counted(totals.points, 'cancel point')} reached"
        )
    if totals.searches:
        searches = "1 search" if totals.searches == 1 else f"{totals.searches:,} searches"
        goals = f"; {totals.goals_reached:,} of {counted(totals.goals, 'goal')} reached"
        schedules = f"{counted(totals.schedules, 'schedule')} tried"
        lines.append(f"{searches}: {schedules}{goals if totals.goals else ''}")
    if totals.incomplete:
        lines.append(f"incomplete, with less tried than there is: {totals.incomplete:,}")
    if totals.replays:
        lines.append(counted(totals.replays, "replay"))
    if totals.unresolved:
        lines.append(f"unresolved: {counted(totals.unresolved, 'run')}")
    never = [name for name, count in totals.not_judged.items() if count == totals.scenarios_run]
    if never:
        whole = named is None or len(never) <= named
        said = ", ".join(never) if whole else counted(len(never), "invariant")
        lines.append(f"not judged in any scenario: {said}")
    return lines


def _run(report: Report) -> RunJson:
    failures = [
        FindingJson(str(getattr(each, "kind", "failure")), each.message, turn=each.turn)
        for each in report.failures
    ]
    hard: list[FindingJson] = []
    soft: list[FindingJson] = []
    for each in report.verdict.violations:
        found = FindingJson(each.invariant, each.message, turn=each.turn)
        (hard if each.severity == "hard" else soft).append(found)
    accepted = [
        FindingJson(each.violation.invariant, f"{each.violation.message} ({each.why})")
        for each in report.verdict.accepted
    ]
    return RunJson(
        scenario=report.scenario,
        source=report.source,
        on=report.loop,
        status="PASS" if report.ok else "FAIL",
        outcomes=tuple([outcome_name(each) for each in report.outcomes]),
        findings=(*hard, *failures),
        soft=tuple(soft),
        accepted=tuple(accepted),
        not_judged=report.verdict.not_judged,
        rerun=report.rerun,
    )


def _sweep(sweep: Sweep) -> SweepJson:
    report = sweep.report
    tallies = report.by_mode
    shown = {group.key: failed for failed in sweep.failed for group in failed.groups}
    return SweepJson(
        scenario=sweep.scenario,
        on=sweep.loop,
        status=sweep.status,
        runs=report.runs,
        points=sum(tally.points for tally in tallies),
        unresolved=sum(tally.unresolved for tally in tallies),
        missed=sum(tally.missed for tally in tallies),
        modes=tuple(
            [
                TallyJson(
                    each.name,
                    each.points,
                    each.clean,
                    each.tolerated,
                    each.failed,
                    each.unresolved,
                    each.missed,
                    each.absent,
                )
                for each in tallies
            ]
        ),
        findings=tuple([_group(group, shown.get(group.key)) for group in report.failed]),
        tolerated=tuple([_group(group, None) for group in report.tolerated]),
        incomplete=report.incomplete,
    )


def _group(group: Group, failed: Failed | None) -> FindingJson:
    cancels = tuple(map(str, group.shots))
    token, rerun = ("", "") if failed is None else (failed.token, failed.rerun)
    return FindingJson(group.key, group.message, group.count, cancels, token, rerun)


def _search(search: Exploration) -> SearchJson:
    report, left = search.report, search.open
    shown: dict[str, Discovery] = {
        found.key: failed for failed in search.failed for found in failed.found
    }
    findings = []
    for each in report.found:
        failed = shown.get(each.key)
        token, rerun = ("", "") if failed is None else (failed.token, failed.rerun)
        cancels = tuple(map(str, each.shrunk.shots))
        findings.append(FindingJson(each.key, each.message, each.count, cancels, token, rerun))
    return SearchJson(
        scenario=search.scenario,
        on=search.loop,
        status=search.status,
        order=search.order,
        strategy=report.strategy,
        seed=report.seed,
        runs=report.runs,
        schedules=report.distinct,
        exhausted=report.exhausted,
        unresolved=report.undecided,
        goals=tuple([GoalJson(goal, count) for goal, count in report.goals]),
        findings=tuple(findings),
        tolerated=tuple(
            [FindingJson(each.key, each.message, each.count) for each in report.tolerated]
        ),
        incomplete=report.incomplete,
        ended=report.ended,
        token="" if left is None else left.token,
        rerun="" if left is None else left.rerun,
    )


def _replay(item: Replay | FunctionReplay, scenario: str, on: str, rerun: str) -> ReplayJson:
    cancels = tuple([str(each.shot) for each in item.run.landings])
    return ReplayJson(
        scenario=scenario,
        on=on,
        status=item.status,
        findings=tuple(
            [FindingJson(each.key, each.message, cancels=cancels) for each in item.run.findings]
        ),
        open=item.open or "",
        rerun=rerun,
    )
