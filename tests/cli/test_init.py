"""`harness init`: what it writes, what it leaves alone, and what keeps it from writing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli.init import STARTERS
from tests.cli.conftest import Cli

WROTE = """\
wrote example_agent.py: an agent; put your own in its place
wrote scenarios/weather.yaml: what user, model and tools do
wrote tests/test_example_agent.py: runs and cancels it in each scenario
wrote .github/workflows/agent-loops.yml: runs the tests on GitHub
"""


def texts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_it_writes_all_that_there_is(cli: Cli, folder: Path) -> None:
    assert cli("init", "new/project") == (0, f"{WROTE}next: cd new/project && pytest\n", "")
    assert texts(folder / "new/project") == {starter.path: starter.text for starter in STARTERS}


def test_without_a_folder_it_writes_here(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "empty").mkdir()
    monkeypatch.chdir(folder / "empty")
    assert cli("init") == (0, f"{WROTE}next: pytest\n", "")
    assert set(texts(folder / "empty")) == {starter.path for starter in STARTERS}


def test_a_folder_that_looks_like_an_option_is_told_as_one(cli: Cli) -> None:
    assert cli("init", "--", "-new").out.endswith("next: cd ./-new && pytest\n")


def test_its_tests_pass_wherever_pytest_is_started_and_takes_its_root(
    cli: Cli, folder: Path
) -> None:
    whole = folder / "whole"
    (whole / "elsewhere").mkdir(parents=True)
    (whole / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    cli("init", "whole/a part")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "../a part"],
        cwd=whole / "elsewhere",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1].startswith("2 passed"), done.stdout


def test_what_is_there_is_left_as_it_is(cli: Cli, folder: Path) -> None:
    (folder / "scenarios" / "weather.yaml").write_text("mine", encoding="utf-8")
    before = texts(folder)
    done = cli("init")
    assert done.code == 0
    assert "\nkept scenarios/weather.yaml, which was there already\n" in done.out
    after = texts(folder)
    assert {name: after[name] for name in before} == before
    again = cli("init")
    assert again.out.count("kept ") == len(STARTERS)
    assert texts(folder) == after


def test_a_link_that_leads_nowhere_is_left_as_it_is(cli: Cli, folder: Path) -> None:
    (folder / "example_agent.py").symlink_to(folder / "gone.py")
    assert "kept example_agent.py" in cli("init").out
    assert not (folder / "gone.py").exists()


def test_in_a_repository_the_ci_file_is_written_at_its_root_only(cli: Cli, folder: Path) -> None:
    (folder / "repo" / ".git").mkdir(parents=True)
    done = cli("init", "repo/part")
    left = f"left out .github/workflows/agent-loops.yml, which GitHub reads in {folder}/repo only\n"
    assert left in done.out
    assert not (folder / "repo/part/.github").exists()
    assert "wrote .github" in cli("init", "repo").out


def test_without_pytest_it_says_how_to_get_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    done = cli("init", "new")
    assert done.out.endswith("next: cd new && pip install 'agent-loop-harness[test]' && pytest\n")


def test_a_file_in_the_place_of_a_folder_is_told_before_anything_is_written(
    cli: Cli, folder: Path
) -> None:
    (folder / "tests").write_text("", encoding="utf-8")
    before = texts(folder)
    done = cli("init")
    assert done == (2, "", "tests is a file; a folder of this name is needed\n")
    assert cli("init", "my_agent.py/deeper").code == 2
    assert texts(folder) == before


def test_a_file_that_cannot_be_written_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = Path.open

    def full(path: Path, mode: str = "r", **options: Any) -> Any:
        if mode == "x":
            raise OSError(28, "No space left on device")
        return ordinary(path, mode, **options)

    monkeypatch.setattr(Path, "open", full)
    assert cli("init").err == "example_agent.py cannot be written: No space left on device\n"


def test_a_name_that_no_folder_can_have_is_told(cli: Cli) -> None:
    done = cli("init", "x" * 300)
    assert done.code == 2
    assert "cannot be made: File name too long" in done.err


def test_the_ci_file_runs_pytest_and_keeps_the_page_of_what_failed() -> None:
    workflow = yaml.safe_load(STARTERS[-1].text)
    *_, install, run, keep = workflow["jobs"]["test"]["steps"]
    assert install["run"] == "pip install 'agent-loop-harness[test]'"
    assert run["run"] == "pytest --harness-html harness.html"
    assert (keep["if"], keep["with"]["path"]) == ("failure()", "harness.html")
