"""The scenarios that come with the package, cancelled everywhere on the loops that they name.

In every run of the tests each is cancelled at some points, first of each line of code one;
`-m sweep` tries them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.exploration.sweep import MODES
from harness.loops import LOOPS
from harness.loops.kind import LoopKind
from harness.report.sweep import Sweep
from harness.runner.agents import find_loop, loop_subject
from harness.runner.exploring import USUAL_MODES, sweep
from harness.runner.files.load import find, load

FOLDER = Path(__file__).parents[2] / "scenarios"
CASES = {
    f"{path.relative_to(FOLDER).with_suffix('').as_posix()}-{loop}": (path, find_loop(loop))
    for path in find([FOLDER])
    for loop in load(path).loops
}
SOME = 10
"""How many runs of each scenario a sample is: `-m sweep`, a gate of its own, makes them all."""
SHOWN_BY = {
    "turn": ("tools/text_beside_calls", "limits/step_limit", "tools/nine_calls_one_id"),
    "fsm": ("fsm/one_id_for_two_calls",),
}
"""Scenarios that show, where they are cancelled, all that is known of the recorded policy."""

HELD_CLEAN = {"turn": MODES, "fsm": (*USUAL_MODES, "mid")}
"""The modes in which every point of a loop is held clean.

A run of the state-machine loop has so many steps that of its pairs of cancels only a sample would
be tried in some scenarios, and all of it would take minutes.
"""

each_case = pytest.mark.parametrize(("path", "kind"), CASES.values(), ids=CASES)


def swept(path: Path, kind: LoopKind, policy: str, **options: object) -> Sweep:
    scenario = load(path)
    return sweep(scenario, loop_subject(kind, scenario, policy), **options)  # type: ignore[arg-type]


@each_case
def test_a_sample_of_its_points_is_clean(path: Path, kind: LoopKind) -> None:
    found = swept(path, kind, "safe", budget=SOME)
    assert not found.failed, str(found)
    assert {point.came for point in found.report.points} <= {"clean", "tolerated"}
    assert found.report.whom == ("agent", "turn", "task")


@pytest.mark.sweep
@each_case
def test_every_point_is_clean(path: Path, kind: LoopKind) -> None:
    swept(path, kind, "safe", modes=HELD_CLEAN[kind.name]).check()


@pytest.mark.sweep
@each_case
def test_the_recorded_policy_breaks_nothing_that_is_not_known(path: Path, kind: LoopKind) -> None:
    swept(path, kind, "reference", modes=HELD_CLEAN[kind.name]).check()


@pytest.mark.parametrize("kind", LOOPS, ids=lambda kind: kind.name)
def test_all_that_is_known_of_the_recorded_policy_shows_somewhere(kind: LoopKind) -> None:
    seen: set[str] = set()
    for name in SHOWN_BY[kind.name]:
        found = swept(FOLDER / f"{name}.yaml", kind, "reference").check()
        seen |= {group.message for group in found.report.tolerated}
    known = kind.known["reference"]
    assert {f"{invariant}, {why}" for invariant, why in known.items()} <= seen
    assert not kind.known.get("safe")


THREADED = ("two_subagents", "subagent_beside_a_background_tool", "cancel_while_two_subagents_run")
"""Scenarios of the state-machine loop in which threads run."""

TABLES = f"""
from pathlib import Path
from harness.report.sweep import Sweep
from harness.runner.agents import find_loop, loop_subject
from harness.runner.exploring import explore, sweep
from harness.runner.files.load import load

for name in {THREADED!r}:
    scenario = load(Path({str(FOLDER)!r}) / "fsm" / (name + ".yaml"))
    subject = loop_subject(find_loop("fsm"), scenario, "reference")
    found = sweep(scenario, subject, budget=40)
    print(found)
    print(*found.report.points, sep="\\n")
    print(explore(scenario, subject, runs=30, cancels=1, seconds=600.0))
"""


def test_sweeps_and_searches_of_threads_are_the_same_in_every_process() -> None:
    told = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        made = subprocess.run(
            [sys.executable, "-c", TABLES], env=env, capture_output=True, text=True, check=True
        )
        told.append(made.stdout)
    assert told[0] == told[1]
    assert told[0].count("Swept(") > 20
