"""The part of a page that shows what could not be run."""

from __future__ import annotations

from harness.report.html.markup import tag
from harness.report.html.part import Part, paragraphs
from harness.report.not_run import NotRun


def not_run_part(item: NotRun) -> Part:
    """What was not run, and why."""
    if item.passed_over:
        summary = "passed over: nothing to try"
    elif item.meant == "test":
        summary = "ended by an error, without a verdict"
    else:
        summary = "could not be run"
    told = paragraphs(item.reason.splitlines())
    body = told if item.passed_over else tag("ul", tag("li", told), class_="findings")
    kind = "exploration" if item.meant == "search" else item.meant
    name = item.scenario or item.source or "everything"
    return Part(kind, name, item.on, item.status, summary, body)
