"""Every relation catches the bug that was planted for it; no other does, and no single run."""

import pytest

from harness.core.ports import Build
from harness.exploration.sweep import MODES
from harness.invariants.relations import RELATIONS
from harness.runner.exploring import sweep
from harness.runner.relate import relate
from harness.runner.run import run
from tests.bugs.planted_relations import RELATED, SWEPT
from tests.bugs.planting import Planted


def test_there_is_a_planted_bug_for_every_relation() -> None:
    assert {bug.caught_by for bug in RELATED} == {relation.id for relation in RELATIONS}


@pytest.mark.parametrize("bug", RELATED, ids=lambda bug: bug.caught_by)
def test_a_planted_bug_is_caught_by_its_relation_alone(bug: Planted) -> None:
    verdict = relate(bug.scenario, bug.build)
    print(bug.caught_by, bug.build.__name__, [v.message for v in verdict.violations])
    assert {violation.invariant for violation in verdict.violations} == {bug.caught_by}
    assert verdict.status == "FAIL"


@pytest.mark.parametrize("bug", RELATED, ids=lambda bug: bug.caught_by)
def test_no_single_run_shows_it(bug: Planted) -> None:
    result = run(bug.scenario, bug.build)
    assert result.verdict.violations == ()
    assert bug.caught_by in result.verdict.not_judged


MENDED = {(id(bug.scenario), bug.mended): bug for bug in RELATED}
"""Several bugs have one scenario and one agent without them."""


@pytest.mark.parametrize("bug", MENDED.values(), ids=lambda bug: bug.caught_by)
def test_the_loop_without_the_bug_keeps_every_relation(bug: Planted) -> None:
    assert relate(bug.scenario, bug.mended).violations == ()


@pytest.mark.parametrize("build", [SWEPT.build, SWEPT.mended])
def test_a_sweep_holds_its_runs_against_each_other(build: Build) -> None:
    found = sweep(SWEPT.scenario, build, whom=["turn"], modes=MODES)
    caught = [group.key.partition(":")[0] for group in found.report.failed]
    assert caught == ([SWEPT.caught_by] if build is SWEPT.build else [])
    assert {violation.invariant for violation in relate(SWEPT.scenario, build).violations} == {
        *caught
    }
    assert run(SWEPT.scenario, build).verdict.violations == ()
