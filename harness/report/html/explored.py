"""The parts of a page that show a sweep and a search: what was tried, and each failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from harness.core.wording import counted
from harness.exploration.probe import Run
from harness.report.decisions import decided, shot_sentences
from harness.report.html.beside import both, who_ran
from harness.report.html.markup import Markup, joined, tag
from harness.report.html.part import Part, paragraphs, rerun, sentences
from harness.report.html.points_map import points_map
from harness.report.html.runs import run_body
from harness.report.search import WARNINGS, Discovery, Exploration, Open, made_simple, without_line
from harness.report.search import figures as search_figures
from harness.report.sweep import Beside, Failed, Sweep, share
from harness.report.sweep import figures as sweep_figures
from harness.report.why import busiest

FAILURES_MAX = 50
"""How many failing runs of one sweep or search are shown."""
_COUNTS = ("points", "clean", "tolerated", "failed", "unresolved", "missed", "absent")


def sweep_part(sweep: Sweep, anchor: str) -> Part:
    """A sweep: its counts, the map of its points, each failure beside the nearest passing run."""
    report = sweep.report
    shown = sweep.failed[:FAILURES_MAX]
    anchors = {
        group.key: f"{anchor}-f{number}"
        for number, failed in enumerate(shown, 1)
        for group in failed.groups
    }
    reasons = Counter([each.why for each in report.absent])
    absent = ", ".join([f"{why} ({count:,})" for why, count in reasons.most_common()])
    tolerated = [
        f"tolerated: {group.message} ({counted(group.count, 'point')})"
        for group in report.tolerated
    ]
    body = joined(
        [
            paragraphs([f"INCOMPLETE: {why}" for why in report.incomplete], "open"),
            _tallies(sweep),
            paragraphs([sweep_figures([report])], "quiet"),
            paragraphs([f"no such point: {absent}"] if absent else [], "quiet"),
            paragraphs(tolerated, "quiet"),
            points_map(report, anchors),
            _failures(
                len(sweep.failed),
                [
                    _swept(failed, sweep, f"{anchor}-f{number}")
                    for number, failed in enumerate(shown, 1)
                ],
            ),
        ]
    )
    failing = sum(point.came == "failed" for point in report.points)
    summary = f"{counted(len(report.points), 'point')}, {failing:,} failed; "
    summary += counted(report.runs, "run")
    return Part("sweep", sweep.scenario, sweep.loop, sweep.status, summary, body)


def search_part(exploration: Exploration, anchor: str) -> Part:
    """A search: what was tried and reached, each finding beside the nearest passing run."""
    report = exploration.report
    tolerated = [
        f"tolerated: {known.message} (in {counted(known.count, 'run')})"
        for known in report.tolerated
    ]
    shown = exploration.failed[:FAILURES_MAX]
    body = joined(
        [
            paragraphs([f"INCOMPLETE: {why}" for why in report.incomplete], "open"),
            _tried(exploration),
            paragraphs(search_figures(exploration), "quiet"),
            paragraphs(tolerated, "quiet"),
            paragraphs(
                [WARNINGS[order]] if (order := exploration.order) in WARNINGS else [], "open"
            ),
            None if exploration.open is None else _open(exploration.open),
            _failures(
                len(exploration.failed),
                [
                    _discovered(failed, f"{anchor}-f{number}")
                    for number, failed in enumerate(shown, 1)
                ],
            ),
        ]
    )
    summary = f"{counted(report.runs, 'run')}, {counted(report.distinct, 'schedule')}, "
    summary += f"{counted(len(report.found), 'finding')}"
    on = exploration.loop
    return Part("exploration", exploration.scenario, on, exploration.status, summary, body)


def _table(caption: str, heads: Sequence[str], rows: Iterable[tuple[str, Sequence[int]]]) -> Markup:
    """A table of numbers, with a name before each row."""
    first, *others = heads
    head = [tag("th", first, scope="col"), *[tag("th", each, scope="col") for each in others]]
    body = [
        tag("tr", tag("th", name, scope="row"), *[tag("td", f"{n:,}") for n in numbers])
        for name, numbers in rows
    ]
    table = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        class_="numbers",
    )
    return tag("div", table, class_="scroll")


def _tallies(sweep: Sweep) -> Markup:
    report = sweep.report
    rows = [(tally.name, tally) for tally in report.by_mode]
    rows += [(f"{t.name} tasks", t) for t in report.by_role if t.points or t.absent]
    numbers = [(name, [getattr(tally, count) for count in _COUNTS]) for name, tally in rows]
    heads = ("cancels", *_COUNTS[:-1], "n/a")
    return _table("What the cancels came to", heads, numbers)


def _tried(exploration: Exploration) -> Markup:
    report = exploration.report
    rows = [(each.strategy, (each.runs, each.new)) for each in report.tried]
    rows.append(("all", (report.runs, report.distinct)))
    return _table("What was tried", ("strategy", "runs", "new"), rows)


def _failures(count: int, shown: Sequence[Markup]) -> Markup | None:
    if not shown:
        return None
    more = [f"shown are {len(shown)} of {count}"] if count > len(shown) else []
    title = tag("h3", f"{counted(count, 'failing run')}, the smallest of each kind")
    return joined([title, paragraphs(more, "quiet"), *shown])


def _swept(failed: Failed, sweep: Sweep, anchor: str) -> Markup:
    shots = failed.groups[0].shots
    head = f"Cancelled at {' and '.join(map(str, shots))}" if shots else "Without a cancel"
    often = {group.key: share(group, sweep.report) for group in failed.groups}
    said = paragraphs(shot_sentences(failed.run))
    return _failure(anchor, head, said, failed.run, often, failed.beside, failed.rerun)


def _discovered(failed: Discovery, anchor: str) -> Markup:
    kinds = dict.fromkeys([found.key.partition(":")[0] for found in failed.found])
    said = joined(
        [
            paragraphs(dict.fromkeys([made_simple(found) for found in failed.found]), "quiet"),
            sentences("What was decided", decided(failed.run)),
        ]
    )
    often = {found.key: f"in {counted(found.count, 'run')}" for found in failed.found}
    head = ", ".join(kinds)
    return _failure(anchor, head, said, failed.run, often, failed.beside, failed.rerun)


def _failure(
    anchor: str,
    head: str,
    said: Markup,
    run: Run,
    often: Mapping[str, str],
    beside: Beside | None,
    again: str,
) -> Markup:
    """One failing run with what shows why; `often` says of each finding how often it was met."""
    return tag(
        "article",
        tag("h4", tag("span", "✗", class_="sign failed"), f" {head}"),
        said,
        run_body(run, f"{anchor}-run", often),
        who_ran(run) if beside is None else both(beside, run),
        rerun(again),
        id=anchor,
        class_="failure",
        tabindex=-1,
    )


def _open(left: Open) -> Markup:
    """Where a run was busy that a limit ended, and what runs it again."""
    title = "Where tasks of the first run not resolved waited most often"
    again = rerun(left.rerun) or tag("p", without_line(left), class_="quiet")
    return joined([sentences(title, busiest(left.busy)), again])
