"""What the reference loops do in every shipped scenario is pinned, in every view that applies.

After a change on purpose, `pytest tests/test_scenario_snapshots.py --snapshot-update` writes what
they do now; the difference in `__snapshots__` is what a reviewer reads.
"""

from pathlib import Path

import pytest

from harness.report.views import VIEWS
from harness.runner.agents import find_loop, loop_subject
from harness.runner.files.load import find, load
from harness.testing.running import HarnessRun
from harness.testing.snapshot import HarnessSnapshot

FOLDER = Path(__file__).parents[1] / "scenarios"
PINNED = {
    f"{path.parent.name}-{path.stem}-{loop}": (path, loop)
    for path in find([FOLDER])
    for loop in load(path).loops
}


RECORDED = [case for case in PINNED if case.endswith("-fsm")]
"""Cases of the loop whose recorded policy is pinned too, in each view that it makes different."""


@pytest.mark.parametrize(("path", "loop"), PINNED.values(), ids=PINNED)
def test_scenario(
    path: Path, loop: str, harness_run: HarnessRun, harness_snapshot: HarnessSnapshot
) -> None:
    harness_snapshot(harness_run(path, loop))


@pytest.mark.parametrize("case", RECORDED)
def test_scenario_under_reference(
    case: str, harness_run: HarnessRun, request: pytest.FixtureRequest
) -> None:
    path, loop = PINNED[case]
    scenario, kind = load(path), find_loop(loop)
    safe, recorded = [
        harness_run(scenario, loop_subject(kind, scenario, policy)).trace
        for policy in ("safe", "reference")
    ]
    shown = [(view.name, view.text(recorded), view.text(safe)) for view in VIEWS]
    different = [name for name, text, before in shown if text not in ("", before)]
    if different:  # the fixture wants to be called
        request.getfixturevalue("harness_snapshot")(recorded, *different)


def test_every_scenario_is_pinned_under_a_name_of_its_own() -> None:
    assert len(PINNED) == sum(len(load(path).loops) for path in find([FOLDER])) >= 62
