"""What the reference loops do in every shipped scenario is pinned, in every view that applies.

After a change on purpose, `pytest tests/test_scenario_snapshots.py --snapshot-update` writes what
they do now; the difference in `__snapshots__` is what a reviewer reads.
"""

from pathlib import Path

import pytest

from harness.runner.files.load import find, load
from harness.testing.running import HarnessRun
from harness.testing.snapshot import HarnessSnapshot

FOLDER = Path(__file__).parents[1] / "scenarios"
PINNED = {
    f"{path.parent.name}-{path.stem}-{loop}": (path, loop)
    for path in find([FOLDER])
    for loop in load(path).loops
}


@pytest.mark.parametrize(("path", "loop"), PINNED.values(), ids=PINNED)
def test_scenario(
    path: Path, loop: str, harness_run: HarnessRun, harness_snapshot: HarnessSnapshot
) -> None:
    harness_snapshot(harness_run(path, loop))


def test_every_scenario_is_pinned_under_a_name_of_its_own() -> None:
    assert len(PINNED) == sum(len(load(path).loops) for path in find([FOLDER])) >= 62
