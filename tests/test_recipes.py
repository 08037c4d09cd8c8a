"""The recipes are short, run as they stand, and those without a framework are sound everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness.cli import main

REPOSITORY = Path(__file__).parents[1]
FOLDER = REPOSITORY / "docs" / "recipes"
TRIP = FOLDER / "trip.yaml"
SDKS = ("anthropic_sdk", "openai_sdk")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_recipe_is_short(path: Path) -> None:
    assert 15 <= len([line for line in path.read_text().splitlines() if line.strip()]) <= 40


@pytest.mark.parametrize("name", SDKS)
def test_a_recipe_runs_from_the_command_line(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(["run", "docs/recipes/trip.yaml", "--agent", f"docs.recipes.{name}:agent"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed"


@pytest.mark.parametrize("name", SDKS)
def test_a_recipe_without_a_framework_is_sound_wherever_it_is_cancelled(name: str) -> None:
    report = harness.sweep(TRIP, f"docs.recipes.{name}:agent", modes="all").check().report
    assert len(report.points) > 50


@pytest.mark.parametrize("name", SDKS)
def test_calls_that_are_answered_only_when_their_tools_have_ended_are_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    [early] = [line for line in lines if "before the tools run" in line]
    lines.remove(early)
    lines.insert(lines.index(next(line for line in lines if "gather" in line)) + 1, early)
    (tmp_path / f"late_{name}.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(tmp_path))
    found = harness.sweep(TRIP, f"late_{name}:agent", whom="turn")
    assert "RESUME" in {group.key.partition(":")[0] for group in found.report.failed}
