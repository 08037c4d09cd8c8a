"""The part of a page that shows one run, or one that was made again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from harness.core.outcome import outcome_name
from harness.core.verdict import Status
from harness.core.wording import counted, plural
from harness.exploration.explain import hottest
from harness.exploration.probe import Run
from harness.report import text
from harness.report.decisions import decided
from harness.report.html.figure import figure
from harness.report.html.markup import Markup, joined, tag
from harness.report.html.part import Part, Shown, findings, paragraphs, rerun, sentences
from harness.report.replay import FunctionReplay, Replay, without_its_cancel
from harness.report.sweep import place
from harness.report.terminal import Report, accepted, figures, not_judged, soft, what_failed
from harness.report.why import busiest, waits

OPEN_MAX = 200
"""Up to how many lines the whole of a run is unfolded from the first."""

OUTCOMES_MAX = 8
"""Up to how many turns each outcome is named in the summary of a run."""


def run_part(report: Report, anchor: str) -> Part:
    """A run: what it is about, what failed, its lanes, what nobody could judge."""
    status: Status = "PASS" if report.ok else "FAIL"
    return Part(
        "run", report.scenario, report.loop, status, _summary(report), _body(report, anchor)
    )


def replay_part(replay: Replay, anchor: str) -> Part:
    """A run of a scenario that was made again, with what was decided in it."""
    report = replay.report
    body = joined([*_again(replay), _body(report, anchor)])
    summary = _summary(report)
    return Part("replay", report.scenario, report.loop, replay.status, summary, body)


def function_part(replay: FunctionReplay, anchor: str) -> Part:
    """A run of a function that was made again."""
    run = replay.run
    body = joined([*_again(replay), run_body(run, anchor), rerun(replay.rerun)])
    summary = counted(len(run.lines), "line")
    return Part("replay", replay.name, replay.on, replay.status, summary, body)


def _again(replay: Replay | FunctionReplay) -> list[Markup | None]:
    said = replay.open
    if replay.status == "FAIL" and replay.missed is not None:
        said = without_its_cancel(replay.missed)
    told = paragraphs([] if said is None else [said], "open")
    return [told, sentences("What was decided", decided(replay.run))]


def run_body(run: Run, anchor: str, often: Mapping[str, str] | None = None) -> Markup:
    """What is wrong with a run that was explored, who waits for whom for ever, and its lanes.

    With `often`, only findings with its keys are told, with how often each was met.
    """
    told = {each.key: each for each in reversed(run.findings) if often is None or each.key in often}
    found = [
        Shown(
            each.message if often is None else f"{each.message} ({often[each.key]})",
            () if each.line is None else (each.line,),
        )
        for each in sorted(told.values(), key=place)
    ]
    busy = hottest(run) if run.unresolved is not None else ()
    return joined(
        [
            findings(found, anchor, run.lines),
            sentences("Who waits for whom, for ever", waits(run)),
            sentences("Where tasks waited most often", busiest(busy)),
            figure(anchor, run.lines, [line for each in found for line in each.lines]),
        ]
    )


def _body(report: Report, anchor: str) -> Markup:
    lines = tuple(text.lines(report.trace))
    found = [
        Shown(message, () if entry is None else (entry,)) for message, entry in what_failed(report)
    ]
    notes = [f"soft: {each}" for each in soft([report])]
    notes += [f"accepted: {each}" for each in accepted([report])]
    marked = [line for each in found for line in each.lines]
    return joined(
        [
            paragraphs([report.about] if report.about else [], "about"),
            findings(found, anchor, lines),
            figure(anchor, lines, marked, open_=len(lines) <= OPEN_MAX),
            paragraphs(notes, "quiet"),
            _not_judged(report),
            rerun(report.rerun),
        ]
    )


def _not_judged(report: Report) -> Markup | None:
    names = not_judged([report], verbose=True)
    if not names:
        return None
    count = counted(len(report.verdict.not_judged), "thing")
    return tag("details", tag("summary", f"Not judged: {count}"), tag("p", names), class_="quiet")


def _summary(report: Report) -> str:
    outcomes, requests, time = figures(report)
    if len(report.outcomes) > OUTCOMES_MAX:
        counts = Counter([outcome_name(outcome) for outcome in report.outcomes])
        outcomes = ", ".join([f"{count:,} {name}" for name, count in counts.items()])
    asked = f"{requests} {plural('request', int(requests))}"
    return f"{outcomes or 'no turn ended'}; {asked}, {time} of virtual time"
