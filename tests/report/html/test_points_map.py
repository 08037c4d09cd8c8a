"""The map of cancel points: a row for each place, a column for each mode, the way to a failure."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from harness.exploration.probe import Run, Shot, Site
from harness.exploration.sweep_report import Swept
from harness.report.html import points_map as under_test
from harness.report.html.points_map import points_map
from tests.report.html.items import HOSTILE
from tests.report.html.test_markup import Seen
from tests.report.test_sweep import EARLY, LEAK, LOST, REPORT


def rows(markup: str) -> list[list[str]]:
    """The cells of each place as text."""
    found = re.findall(r'<tr(?: class="well")?>(<th scope="row">.*?)</tr>', markup)
    return [
        [re.sub(r"<[^>]+>", "", cell) for cell in re.split(r"</t[dh]>", row)][:-1] for row in found
    ]


def test_a_cell_says_what_came_of_its_points() -> None:
    markup = points_map(REPORT, {LEAK.key: "r1-f1", LOST.key: "r1-f2"})
    assert rows(markup) == [
        ["#0", "before its first step", "✓", "·", "·", "·", "✗ 1/2"],
        ["#1", "agent.py:12 in fetch", "·", "✗", "~", "⌀", "·"],
    ]
    assert 'title="the task has begun" class="absent"' in markup
    assert 'title="told at the same moment under another name"' in markup


def test_several_points_of_a_cell_are_counted() -> None:
    both = replace(REPORT, points=(*REPORT.points, *REPORT.points[:2]))
    assert rows(points_map(both, {}))[0][2] == "✓ 2"
    assert rows(points_map(both, {}))[1][3] == "✗ 2"


def test_a_failed_point_leads_to_its_failure_where_that_is_shown() -> None:
    markup = points_map(REPORT, {LEAK.key: "r1-f1"})
    [link] = re.findall(r"<a [^>]+>", markup)
    assert 'href="#r1-f1"' in link
    assert 'aria-label="1 of 1 cancel failed"' in link
    assert f"{EARLY}: failed ({LOST.key}; {LEAK.key})" in link
    assert 'class="sign failed">✗ 1/2</span>' in markup


def test_places_are_shown_by_task_with_its_role() -> None:
    markup = points_map(REPORT, {})
    assert re.findall(r'scope="rowgroup">(.*?)</th>', markup) == [
        "task 1 <i>turn</i>",
        "task 1.1 <i>tool</i>",
    ]


def test_what_is_too_much_is_left_out_but_never_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(under_test, "SITES_MAX", 3)
    sites = tuple([Site("1", k, "turn", f"a.py:{k}", k, k + 1) for k in range(10)])
    shots = [Shot("1", k, "late", "turn") for k in range(10)]
    points = tuple(
        [Swept((s,), "late", "turn", "failed" if s.k == 7 else "clean", keys=("x",)) for s in shots]
    )
    few = replace(REPORT, baseline=Run("d", sites), modes=("late",), points=points, absent=())
    markup = points_map(few, {})
    assert [row[0] for row in rows(markup)] == ["#0", "#1", "#7"]
    assert "7 more places with nothing wrong" in markup


def test_no_text_of_a_place_is_markup() -> None:
    site = Site(HOSTILE, 1, "turn", HOSTILE, 0, 1)
    point = Swept((Shot(HOSTILE, 1, "late", "turn"),), "late", "turn", "failed", keys=(HOSTILE,))
    hostile = replace(REPORT, baseline=Run("d", (site,)), points=(point,))
    assert "script" not in Seen(points_map(hostile, {HOSTILE: "r1-f1"})).tags
