"""The map of cancel points: where a run can be cancelled and when, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from harness.core.wording import counted
from harness.exploration.probe import Site
from harness.exploration.sweep_report import Came, SweepReport, Swept
from harness.report.html.markup import Markup, joined, tag

SITES_MAX = 2_000
"""How many places are shown; those with nothing but clean points are left out first."""

TOLD_MAX = 12
"""How many points of a cell are told one by one."""

_Place: TypeAlias = tuple[str, int]
"""A task, and how often it had waited."""

_WORST: tuple[Came, ...] = ("failed", "unresolved", "missed", "tolerated", "clean")
_SIGNS: dict[Came, str] = {
    "failed": "✗",
    "unresolved": "?",
    "missed": "⌀",
    "tolerated": "~",
    "clean": "✓",
}


def points_map(report: SweepReport, failures: Mapping[str, str]) -> Markup:
    """A table: a row for each place, a column for each mode. A failed point leads to where it is
    shown, by `failures`: the anchor of each finding's key.
    """
    sites = [site for site in report.baseline.sites if site.role in report.roles]
    bad = {_place(point) for point in report.points if point.came != "clean"}
    shown = _fewer(sites, bad)
    bodies = _bodies(report, shown, bad, failures)
    left_out = len(sites) - len(shown)
    return joined(
        [
            tag("h3", "Cancel points"),
            _legend(),
            tag(
                "div",
                tag(
                    "table",
                    tag("caption", "What came of a cancel, by place and mode", class_="unseen"),
                    tag("thead", _head(report)),
                    *bodies,
                    class_="map",
                ),
                class_="scroll",
                tabindex=0,
                role="region",
                aria_label="Cancel points",
            ),
            tag("p", f"{counted(left_out, 'more place')} with nothing wrong", class_="quiet")
            if left_out
            else None,
        ]
    )


def _place(point: Swept) -> _Place:
    shot = point.shots[0]
    return shot.path, shot.k


def _bodies(
    report: SweepReport, sites: Sequence[Site], bad: set[_Place], failures: Mapping[str, str]
) -> list[Markup]:
    """The rows of the places, those of a task together."""
    points: dict[tuple[_Place, str], list[Swept]] = {}
    for point in report.points:
        points.setdefault((_place(point), point.mode), []).append(point)
    lacks: dict[tuple[_Place, str], dict[str, None]] = {}
    for each in report.absent:
        lacks.setdefault(((each.site.path, each.site.k), each.mode), {})[each.why] = None
    tasks: dict[str, list[Markup]] = {}
    for site in sites:
        place = site.path, site.k
        if site.path not in tasks:
            name = joined([f"task {site.path} ", tag("i", site.role)])
            head = tag("th", name, colspan=2 + len(report.modes), scope="rowgroup")
            tasks[site.path] = [tag("tr", head, class_="task")]
        cells = [
            _cell(points.get((place, mode), []), lacks.get((place, mode), {}), failures)
            for mode in report.modes
        ]
        label = tag("th", f"#{site.k}", scope="row")
        where = tag("td", site.where or "before its first step", class_="where")
        row = tag("tr", label, where, *cells, class_=None if place in bad else "well")
        tasks[site.path].append(row)
    return [tag("tbody", *rows) for rows in tasks.values()]


def _fewer(sites: Sequence[Site], bad: set[_Place]) -> list[Site]:
    """As many places as are shown, in their order; those first at which something is wrong."""
    room = max(0, SITES_MAX - sum((site.path, site.k) in bad for site in sites))
    shown = []
    for site in sites:
        wrong = (site.path, site.k) in bad
        if wrong or room:
            shown.append(site)
            room -= not wrong
    return shown[:SITES_MAX]


def _head(report: SweepReport) -> Markup:
    modes = [tag("th", mode, scope="col") for mode in report.modes]
    first = tag("th", "place", scope="colgroup", colspan=2)
    return tag("tr", first, *modes)


def _legend() -> Markup:
    signs = [
        tag("span", tag("span", sign, class_=f"sign {came}"), f" {came}")
        for came, sign in _SIGNS.items()
    ]
    only = tag("label", tag("input", type="checkbox", class_="only"), " only what is not clean")
    absent = tag("span", tag("span", "·", class_="sign absent"), " no such point")
    return tag("p", *signs, absent, only, class_="legend")


def _cell(
    points: Sequence[Swept], lacks: Mapping[str, None], failures: Mapping[str, str]
) -> Markup:
    if not points:
        why = "; ".join(lacks) or "told at the same moment under another name"
        return tag("td", "·", title=why, class_="absent")
    worst = min([point.came for point in points], key=_WORST.index)
    alike = [point for point in points if point.came == worst]
    shown = _SIGNS[worst]
    if len(points) > 1:
        shown += f" {len(alike)}" if len(alike) == len(points) else f" {len(alike)}/{len(points)}"
    if worst == "clean":
        return tag("td", shown, class_="clean")
    told = "\n".join([_told(point) for point in alike[:TOLD_MAX]])
    key = next((key for point in alike for key in point.keys if key in failures), None)
    if key is None:
        return tag("td", tag("span", shown, title=told, class_=f"sign {worst}"))
    says = f"{len(alike)} of {counted(len(points), 'cancel')} {worst}"
    link = tag(
        "a", shown, href=f"#{failures[key]}", title=told, aria_label=says, class_=f"sign {worst}"
    )
    return tag("td", link)


def _told(point: Swept) -> str:
    """A point in a line: its cancels, what came of it, why."""
    shots = " and ".join(map(str, point.shots))
    more = "; ".join(point.keys) or point.why
    return f"{shots}: {point.came}" + (f" ({more})" if more else "")
