"""The same scenario gives the same bytes: in any process, under any hash seed, twice in one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.runner.files.load import find

REPOSITORY = Path(__file__).parents[1]

EVERY_RUN = """
import sys
from pathlib import Path
from harness.loops import LOOPS
from harness.runner.agents import loop_subject
from harness.runner.files.load import find, load
from harness.runner.run import run

def digests():
    for path in find([Path("scenarios")]):
        scenario = load(path)
        for kind in LOOPS:
            for policy in kind.policies:
                trace = run(scenario, loop_subject(kind, scenario, policy).build).trace
                yield f"{path} {kind.name} {policy} {trace.digest}"

first = list(digests())
if "twice" in sys.argv:
    assert list(digests()) == first, "the second time in one process differs"
print("\\n".join(first))
"""


def digests(hash_seed: str, *options: str, twice: bool = False) -> list[str]:
    """One line a run: scenario, loop, policy, digest of the trace, from a fresh process."""
    done = subprocess.run(
        [sys.executable, *options, "-c", EVERY_RUN, *(["twice"] if twice else [])],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def under_seed_0() -> list[str]:
    return digests("0", twice=True)


def test_every_scenario_is_run(under_seed_0: list[str]) -> None:
    shown = {line.split()[0] for line in under_seed_0}
    assert shown == {str(path.relative_to(REPOSITORY)) for path in find([REPOSITORY / "scenarios"])}


def test_another_hash_seed_gives_the_same_traces(under_seed_0: list[str]) -> None:
    assert digests("12345") == under_seed_0


def test_development_mode_gives_the_same_traces(under_seed_0: list[str]) -> None:
    assert digests("7", "-X", "dev") == under_seed_0
