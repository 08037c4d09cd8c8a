"""What a newcomer meets: `harness init`, a green suite, and a bug that the suite finds.

`Place` says where that happens: in this environment, or in one that has only the built package.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import yaml

STARTERS = [
    ".github/workflows/agent-loops.yml",
    "example_agent.py",
    "scenarios/weather.yaml",
    "tests/test_example_agent.py",
]
SOUND = """\
        finally:
            # When the turn is cancelled too: a provider refuses a call that has no result.
            self.messages += results
"""
BUGGY = """\
        except ExceptionGroup:
            raise
        else:
            self.messages += results
"""
"""The classic one: where a cancel comes while tools run, their calls stay without results."""


class Place(NamedTuple):
    """A folder, and the programs and variables of the environment that it is used in."""

    folder: Path
    programs: Path
    variables: dict[str, str]

    def call(self, *words: str, code: int = 0) -> str:
        """Run a program of the environment; what it prints, if it ends with `code`."""
        return self.shell(" ".join([str(self.programs / words[0]), *words[1:]]), code)

    def shell(self, line: str, code: int = 0) -> str:
        """Run a line as a user would copy it into a shell."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env={"PATH": f"{self.programs}:/usr/bin:/bin", **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


def files_in(folder: Path) -> list[str]:
    """Every file below a folder, but those that running tests leaves."""
    made = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(
        path.as_posix() for path in made if not {"__pycache__", ".pytest_cache"} & {*path.parts}
    )


def show(place: Place) -> float:
    """Go the whole way, and give the seconds that the suite says it took."""
    place.call("harness", "init")
    assert files_in(place.folder) == STARTERS
    workflow = yaml.safe_load((place.folder / STARTERS[0]).read_text(encoding="utf-8"))
    [line] = [each["run"] for each in workflow["jobs"]["test"]["steps"] if "pytest" in str(each)]
    green = place.call(*line.split())
    assert "wrote harness.html" in green
    passed = re.search(r"=+ 2 passed in ([\d.]+)s =+", green)
    assert passed is not None, green
    plant(place.folder)
    _is_readable(red := place.call("pytest", code=1))
    _replays(place, red)
    return float(passed[1])


def plant(folder: Path) -> None:
    """Have the example forget the calls that a cancel cuts off."""
    agent = folder / "example_agent.py"
    text = agent.read_text(encoding="utf-8")
    assert text.count(SOUND) == 1
    agent.write_text(text.replace(SOUND, BUGGY), encoding="utf-8")


def _is_readable(red: str) -> None:
    """One failure, told by the smallest run that shows it, in some forty lines."""
    assert "1 failed, 1 passed" in red
    assert red.count("\nFAIL cancelled at ") == 1
    assert "\nFAIL cancelled at 1#3/early:turn\n" in red
    assert (
        "RESUME: the request after a cancelled turn is not valid: messages[1]: "
        "no result follows for the calls call_1_1_1, call_1_1_2 (at 8 of 24 points)"
    ) in red
    assert "\nthe nearest run that passes: cancelled at 1#2/early:turn; what differs" in red
    assert len(red.splitlines()) < 75


def _replays(place: Place, red: str) -> None:
    """The line that is printed last shows the same failure again, and nothing else."""
    _, _, after = red.partition("run it again:\n")
    line = after.splitlines()[0]
    assert line.startswith("pytest ")
    again = place.shell(line, code=1)
    assert "RESUME in turn 2: the request after a cancelled turn is not valid" in again
    assert "1 failed" in again
    assert "passed" not in again
