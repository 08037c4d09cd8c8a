"""The scenarios that come with the package, cancelled everywhere on the turn loop.

In every run of the tests each is cancelled at some points, first of each line of code one;
`-m sweep` tries them all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.exploration.sweep import MODES
from harness.loops import LOOPS
from harness.report.sweep import Sweep
from harness.runner.agents import loop_subject
from harness.runner.exploring import sweep
from harness.runner.files.load import find, load

FOLDER = Path(__file__).parents[2] / "scenarios"
FILES = [path for path in find([FOLDER]) if "turn" in load(path).loops]
TURN = LOOPS[0]
SOME = 20
"""How many runs of each scenario a sample is."""
SHOWN_BY = (
    "tools/text_beside_calls",
    "limits/step_limit",
    "tools/nine_calls_one_id",
)
"""Scenarios that show, where they are cancelled, all that is known of the recorded policy."""

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
def test_the_recorded_policy_breaks_nothing_that_is_not_known(path: Path) -> None:
    swept(path, "reference", modes=MODES).check()


def test_all_that_is_known_of_the_recorded_policy_shows_somewhere() -> None:
    seen: set[str] = set()
    for name in SHOWN_BY:
        found = swept(FOLDER / f"{name}.yaml", "reference").check()
        seen |= {group.message for group in found.report.tolerated}
    known = TURN.known["reference"]
    assert {f"{invariant}, {why}" for invariant, why in known.items()} <= seen
    assert not TURN.known["safe"]
