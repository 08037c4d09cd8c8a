"""The first run of a process is as all others."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import pydantic
from harness.runner.exploring import sweep
from harness.runner.scenario import Scenario, Turn

class Agent:
    def __init__(self, env):
        self.env = env
    def turn(self, text):
        self.env.clock.wait(1)
        Late(seen=Later(n=1))
        self.env.clock.wait(1)

class Late(pydantic.BaseModel):
    seen: "Later"

class Later(pydantic.BaseModel):
    n: int

print(sweep(Scenario("first", turns=(Turn("Go."),)), Agent).report.status)
"""


def test_a_class_that_is_finished_when_it_is_first_used_makes_no_difference() -> None:
    pytest.importorskip("pydantic")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True
    )
    assert "NotDeterministic" not in done.stderr
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr


DRAWS = """
import os, random, secrets, uuid
DRAWN = random.random(), random.Random().random(), os.urandom(8), secrets.token_hex(), uuid.uuid4()
"""

IMPORTS = """
from harness.runner.exploring import sweep
from harness.runner.scenario import Scenario, Turn

class Agent:
    def __init__(self, env):
        self.env = env
    def turn(self, text):
        self.env.clock.wait(1)
        import draws
        self.env.clock.wait(1)

def build(env):
    return Agent(env)

print(sweep(Scenario("first", turns=(Turn("Go."),)), build).report.status)
"""


def test_what_a_module_draws_as_it_is_loaded_is_no_choice_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "draws.py").write_text(DRAWS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({str(tmp_path)!r})\n{IMPORTS}"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert "NotDeterministic" not in done.stderr
    assert (done.returncode, done.stdout) == (0, "PASS\n"), done.stderr
