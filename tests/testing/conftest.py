"""A user's project, with the plugin as it is installed."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

import harness.loops
import harness.report.html.document
import harness.sim.draws
import harness.testing.exploring
import harness.testing.providing
import harness.testing.scenario_file
import harness.testing.serving
import harness.testing.snapshot
import harness.testing.sweeping  # noqa: F401
from harness.transport.libraries import library
from tests.doc_blocks import REPOSITORY, blocks

LOADED = library("httpx2")
"""With what is imported above, what pytester would load anew for each test and then take away."""
SHOWN = ("my_agent.py", "mended_agent.py", "weather.yaml")
"""The files of README's first example."""

GO_ON = "--continue-on-collection-errors"
"""Else pytest stops as for a keyboard interrupt, and takes long to draw where that came from."""

HELLO = """\
about: It answers.
loops: [turn]
turns:
  - user: Hello
    model: [{say: Hi.}]
    expect: {outcome: completed}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """README's first example, its scenario in a folder; pytest runs in it as `pytest`."""
    files = {
        block.options["file"]: "\n".join(block.lines) + "\n"
        for block in blocks((REPOSITORY / "README.md").read_text(encoding="utf-8"))
        if block.options.get("file") in SHOWN
    }
    assert set(files) == set(SHOWN)
    for name, text in files.items():
        write(pytester.path / ("scenarios" if name.endswith("yaml") else ".") / name, text)
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/pytest"])
    monkeypatch.setenv("PYTEST_ADDOPTS", os.environ.get("HARNESS_BESIDE", ""))  # tests/beside
    # Where it is set syrupy prints nothing, and this is not a worker's own pytest.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    return pytester


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def ini(project: pytest.Pytester, *lines: str) -> None:
    """Pytest's settings."""
    project.makeini("\n".join(["[pytest]", *lines]))


def told(result: pytest.RunResult) -> list[str]:
    """What pytest shows, down to what is said of all tests together."""
    ends = [
        at
        for at, line in enumerate(result.outlines)
        if line.strip("=") == " harness " or "short test summary" in line
    ]
    return result.outlines[: ends[0]] if ends else result.outlines


def last(result: pytest.RunResult) -> list[str]:
    """The last line of the failures, as a shell takes it."""
    return shlex.split(told(result)[-1])
