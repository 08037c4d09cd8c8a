"""The built package in a fresh environment: whole, and enough for a newcomer.

Takes a minute, and an index of packages: see the marker `nightly`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import harness
from tests.packaging import first_show

REPOSITORY = Path(__file__).parents[2]
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}

pytestmark = pytest.mark.nightly


def call(*words: str | Path, folder: Path) -> None:
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


def environment(folder: Path) -> Path:
    """Make a virtual environment, and give the folder of its programs."""
    call(sys.executable, "-m", "venv", folder, folder=folder.parent)
    return folder / ("Scripts" if os.name == "nt" else "bin")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built of the source archive that is built of this checkout."""
    folder = tmp_path_factory.mktemp("built")
    programs = environment(folder / "env")
    call(programs / "python", "-m", "pip", "install", "build", folder=folder)
    call(programs / "python", "-m", "build", "--outdir", "dist", REPOSITORY, folder=folder)
    [found] = (folder / "dist").glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [about] = [name for name in names if name.endswith("/METADATA")]
        metadata = archive.read(about).decode()
        [points] = [name for name in names if name.endswith("/entry_points.txt")]
        entries = archive.read(points).decode()
    package = {
        path.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "harness").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == package
    assert "harness/cli/starter/example_agent.py.txt" in package
    assert "harness/py.typed" in package
    assert f"\nVersion: {harness.__version__}\n" in metadata
    assert "\nLicense-Expression: MIT\n" in metadata
    assert "harness = harness.cli:main" in entries
    assert "harness = harness.testing.plugin" in entries


def test_a_newcomer_has_a_green_suite_that_finds_a_planted_bug(wheel: Path, tmp_path: Path) -> None:
    programs = environment(tmp_path / "env")
    folder = tmp_path / "empty"
    folder.mkdir()
    place = first_show.Place(folder, programs, {})

    call(programs / "python", "-m", "pip", "install", wheel, folder=tmp_path)
    assert place.call("harness", "--version") == f"harness {harness.__version__}\n"
    told = place.call("harness", "init", "alone").splitlines()[-1]
    assert told == "next: cd alone && pip install 'agent-loop-harness[test]' && pytest"
    alone = place._replace(folder=folder / "alone")
    for command in ("run", "sweep"):
        out = alone.call("harness", command, "scenarios", "--agent example_agent:ExampleAgent")
        assert "PASS" in out

    call(programs / "python", "-m", "pip", "install", f"{wheel}[test]", folder=tmp_path)
    (tmp_path / "second").mkdir()
    assert first_show.show(place._replace(folder=tmp_path / "second")) < 10
