"""What sweeps find in published frameworks, as data: a findings.yaml beside each one's tests.

Each entry says what happens in one plain sentence, and why that is a fault, or is none. A sweep is
held against them exactly: what is not written down fails, and so does what is no more found.

Run as a program (`python -m tests.published.expected`), it writes the table of docs/findings.md.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import msgspec
import pytest
import yaml

import harness
from harness.exploration.probe import Shot
from harness.exploration.sweep_report import SweepReport

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "findings.md"
TRIP = REPOSITORY / "docs" / "recipes" / "trip.yaml"
UNTOLD = "uncancelled"
"""In the place of a mode: the run without a cancel shows it too."""
TOLD = {
    "turn": "the turn is cancelled",
    "agent": "its own cancel() is called",
    "twice": "the turn is cancelled, and again",
    "nobody": "nothing is cancelled",
}
"""What is done to an agent, by who is told."""


class Found(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An invariant that breaks, and at how many points of each mode; `fault` says whether that is
    the framework's fault. `upstream` is the address of a public report of it, where one is known.
    """

    invariant: str
    points: dict[str, int]
    happens: str
    fault: bool
    why: str
    upstream: str | None = None

    @property
    def figures(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        """What a sweep can say of it."""
        return self.invariant, tuple(sorted(self.points.items()))


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sweep: told is the turn, as a user's stop or a closed connection does, or the agent by its
    own `cancel()`; `points` is how many there are to cancel at. Where the turn is told twice, it is
    where its own task waits; where nobody is told, it is a run.
    """

    agent: str
    points: int = 0
    findings: tuple[Found, ...] = ()
    scenario: str = "docs/recipes/trip.yaml"
    whom: Literal["turn", "agent", "twice", "nobody"] = "turn"

    def __str__(self) -> str:
        return f"{self.name} on {self.agent.rpartition('.')[2]}, {TOLD[self.whom]}"

    @property
    def name(self) -> str:
        """The scenario's name, as the table has it."""
        return Path(self.scenario).stem

    def check(self) -> None:
        """Sweep, or run, and hold what is found against what is written down."""
        expected = sorted(found.figures for found in self.findings)
        if self.whom == "nobody":
            verdict = harness.run(REPOSITORY / self.scenario, self.agent).verdict
            broken = {each.invariant for each in verdict.violations if each.severity == "hard"}
            assert [(each, ((UNTOLD, 1),)) for each in sorted(broken)] == expected, verdict
            return
        at = REPOSITORY / self.scenario
        if self.whom == "twice":
            sweep = harness.sweep(at, self.agent, whom="turn", roles="turn", modes="double")
        else:
            sweep = harness.sweep(at, self.agent, whom=self.whom)
        report = sweep.report
        assert not report.incomplete, report.incomplete
        assert figures(report) == expected, shown(report)
        assert len(report.points) == self.points


class Framework(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A published framework as the package index knows it, and all that was swept of it."""

    name: str
    version: str
    sweeps: tuple[Case, ...]


def findings(folder: Path) -> Framework:
    """What is written down in a folder; it says which field is wrong."""
    return msgspec.convert(yaml.safe_load((folder / "findings.yaml").read_text()), Framework)


def all_findings() -> list[Framework]:
    """What is written down, by name."""
    folders = [path.parent for path in Path(__file__).parent.glob("*/findings.yaml")]
    return sorted(map(findings, folders), key=lambda framework: framework.name)


def cases(test_file: str) -> list[Case]:
    """The sweeps of the framework whose tests are in this file; skips the file where another
    version, or none, is installed, but for `make agents`.
    """
    framework = findings(Path(test_file).parent)
    try:
        there = version(framework.name)
    except PackageNotFoundError:
        there = "none"
    if there != framework.version and os.environ.get("HARNESS_AGENTS") != "required":
        needs = f"needs {framework.name} {framework.version}: make agents"
        pytest.skip(f"{needs}; installed is {there}", allow_module_level=True)
    assert there == framework.version
    return list(framework.sweeps)


def check_way(agent: str) -> None:
    """Fail where an agent does not complete both turns of the trip, or not twice the same."""
    first, again = [harness.run(TRIP, agent) for _ in range(2)]
    assert [str(outcome) for outcome in first.outcomes] == ["Completed()", "Completed()"]
    assert again.trace.digest == first.trace.digest


def figures(report: SweepReport) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
    """What a sweep found: each invariant with its points by mode, whatever it says of each."""
    points: dict[str, set[tuple[Shot, ...]]] = {}
    for group in report.failed:
        points.setdefault(group.key.partition(":")[0], set()).update(group.points)
    return sorted(
        (invariant, tuple(sorted(Counter(map(mode, at)).items())))
        for invariant, at in points.items()
    )


def mode(shots: tuple[Shot, ...]) -> str:
    """The mode of a point."""
    return "double" if len(shots) > 1 else shots[0].mode if shots else UNTOLD


def shown(report: SweepReport) -> str:
    """What a sweep found, in words, to be looked at and written down."""
    lines = [
        f"{group.message}\n  first at {', '.join(map(str, group.shots)) or 'no cancel'}; "
        f"points: {dict(Counter(map(mode, group.points)))}"
        for group in report.failed
    ]
    return "\n".join([f"of {len(report.points)} points:", *lines])


def table() -> str:
    """The table of docs/findings.md."""
    lines = [
        "| framework | scenario | breaks | at points | what happens, and why |",
        "|---|---|---|---|---|",
    ]
    for framework in all_findings():
        name = f"{framework.name} {framework.version}"
        for case in framework.sweeps:
            lines += [row(name, found, case) for found in case.findings]
            if not case.findings:
                lines.append(f"{begun(name, case)} | nothing | {reached(0, case)} | |")
    return "\n".join(lines)


def begun(name: str, case: Case) -> str:
    """How a line of the table begins."""
    scenario = f"[{case.name}]({os.path.relpath(case.scenario, 'docs')})"
    module, _, way = case.agent.partition(":")
    used = f", {way.lower()}" if module.endswith(".ways") else ""
    return f"| {name} | {scenario}{used}, {TOLD[case.whom]}"


def reached(count: int, case: Case) -> str:
    """At how many points something is found."""
    return "every run" if case.whom == "nobody" else f"{count} of {case.points}"


def row(name: str, found: Found, case: Case) -> str:
    """The line of one finding in the table."""
    at = reached(sum(found.points.values()) - (UNTOLD in found.points), case)
    if case.whom != "nobody" and UNTOLD in found.points:
        at += ", and without a cancel"
    happens = f"{found.happens} *{'A fault' if found.fault else 'No fault'}*. {found.why}"
    if found.upstream is not None:
        owner, repository, _, number = found.upstream.split("/")[-4:]
        happens += f" Reported: [{owner}/{repository}#{number}]({found.upstream})."
    return " | ".join([begun(name, case), found.invariant, at, f"{happens} |"])


def page(text: str) -> str:
    """The text of docs/findings.md with the table that it is to have."""
    return re.sub(r"(?:^\|.*\n)+", lambda _: f"{table()}\n", text, count=1, flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
