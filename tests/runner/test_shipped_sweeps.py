"""The scenarios that come with the package, cancelled everywhere on the turn loop.

In every run of the tests each is cancelled at some points, first of each line of code one;
`-m sweep` tries them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.explore.sweep import MODES
from harness.loops import LOOPS
from harness.report.sweep import Sweep
from harness.runner.agents import loop_subject
from harness.runner.exploring import sweep
from harness.runner.load import find, load

FOLDER = Path(__file__).parents[2] / "scenarios"
FILES = [path for path in find([FOLDER]) if "turn" in load(path).loops]
TURN = LOOPS[0]
SOME = 20
"""How many runs of each scenario a sample is."""
KNOWN = {"CANCEL", "DURABLE", "LOG-HISTORY", "OUTCOME-TRUTH", "RESUME", "TERMINAL-TRUTH"}
"""What the recorded policy breaks somewhere where it is cancelled."""

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).stem)


def swept(path: Path, policy: str, **options: object) -> Sweep:
    scenario = load(path)
    return sweep(scenario, loop_subject(TURN, scenario, policy), **options)  # type: ignore[arg-type]


@each_file
def test_a_sample_of_its_points_is_clean(path: Path) -> None:
    found = swept(path, "safe", budget=SOME)
    assert not found.failed, str(found)
    assert {point.came for point in found.report.points} <= {"clean", "tolerated"}
    assert found.report.whom == ("agent", "turn", "task")


@pytest.mark.sweep
@each_file
def test_every_point_is_clean(path: Path) -> None:
    swept(path, "safe", modes=MODES).check()


@pytest.mark.sweep
@each_file
def test_what_the_recorded_policy_breaks_is_known(path: Path) -> None:
    found = swept(path, "reference")
    assert found.report.incomplete == ()
    broken = {group.key.partition(":")[0] for group in found.report.failed}
    assert broken <= KNOWN, str(found)
