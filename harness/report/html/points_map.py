"""The map of cancel points: where a run can be cancelled and when, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.core.wording import counted
from harness.exploration.probe import Site
from harness.exploration.sweep_report import Came, SweepReport, Swept
from harness.report.html.markup import Markup, joined, tag

SITES_MAX = 2_000
"""How many places are shown; those with nothing but clean points are left out first."""

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
    points: dict[tuple[str, int, str], list[Swept]] = {}
    for point in report.points:
        shot = point.shots[0]
        points.setdefault((shot.path, shot.k, point.mode), []).append(point)
    lacks: dict[tuple[str, int, str], dict[str, None]] = {}
    for each in report.absent:
        lacks.setdefault((each.site.path, each.site.k, each.mode), {})[each.why] = None
    sites = [site for site in report.baseline.sites if site.role in report.roles]
    bad = {(p.shots[0].path, p.shots[0].k) for p in report.points if p.came != "clean"}
    shown = _fewer(sites, bad)
    tasks: dict[str, list[Site]] = {}
    for site in shown:
        tasks.setdefault(site.path, []).append(site)
    bodies = []
    for path, own in tasks.items():
        head = tag(
            "th",
            f"task {path} ",
            tag("i", own[0].role),
            colspan=2 + len(report.modes),
            scope="rowgroup",
        )
        rows = [tag("tr", head, class_="task")]
        for site in own:
            cells = [
                _cell(
                    points.get((site.path, site.k, mode), []),
                    lacks.get((site.path, site.k, mode), {}),
                    failures,
                )
                for mode in report.modes
            ]
            label = tag("th", f"#{site.k}", scope="row")
            where = tag("td", site.where or "before its first step", class_="where")
            is_bad = (site.path, site.k) in bad
            rows.append(tag("tr", label, where, *cells, class_=None if is_bad else "well"))
        bodies.append(tag("tbody", *rows))
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


def _fewer(sites: Sequence[Site], bad: set[tuple[str, int]]) -> list[Site]:
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
    if worst == "clean" and len(points) == 1:
        return tag("td", _SIGNS["clean"], class_="clean")
    count = f" {len(alike)}/{len(points)}" if len(points) > 1 else ""
    shown = f"{_SIGNS[worst]}{count}"
    told = "\n".join([_told(point) for point in points[:12]])
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
