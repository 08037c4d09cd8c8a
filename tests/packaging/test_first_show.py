"""What `harness init` writes is green, and finds a planted bug; from this checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.cli.init import STARTERS
from tests.packaging import first_show

REPOSITORY = Path(__file__).parents[2]
SCRIPTS = Path(sys.executable).parent


def test_a_newcomer_has_a_green_suite_that_finds_a_planted_bug(tmp_path: Path) -> None:
    place = first_show.Place(tmp_path, SCRIPTS, {"PYTHONDONTWRITEBYTECODE": "1"})
    assert first_show.show(place) < 10


def test_what_is_written_keeps_to_the_rules_of_ruff(tmp_path: Path) -> None:
    for starter in STARTERS:
        (tmp_path / Path(starter.path).name).write_text(starter.text, encoding="utf-8")
    for words in ("check", "format --check"):
        done = subprocess.run(
            [SCRIPTS / "ruff", *words.split(), "--isolated", "--no-cache", "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["basics", "errors", "streams", "tools"])
def test_the_example_is_sound_in_the_shipped_scenarios_too(folder: str) -> None:
    """Their expectations may be of our loops, and are not its own; the invariants are."""
    [text] = [each.text for each in STARTERS if each.path == "example_agent.py"]
    found: dict[str, object] = {"__name__": "example_agent"}
    exec(compile(text, "example_agent.py", "exec"), found)
    broken = {
        f"{path.stem}: {violation.invariant}, {violation.message}"
        for path in (REPOSITORY / "scenarios" / folder).glob("*.yaml")
        for violation in harness.run(path, found["ExampleAgent"]).verdict.violations
        if violation.severity == "hard"
    }
    assert broken == set()
