"""Every invariant catches the bug that was planted for it, and no other invariant does."""

import pytest

from harness.core.choices import Choices
from harness.invariants import INVARIANTS
from harness.runner.run import run
from tests.bugs.planted import PLANTED
from tests.bugs.planting import Planted


def named(bug: Planted) -> str:
    return f"{bug.caught_by} {bug.build.__name__}"


SOFT = {invariant.id for invariant in INVARIANTS if invariant.severity == "soft"}


def test_there_is_a_planted_bug_for_every_invariant() -> None:
    assert {bug.caught_by for bug in PLANTED} == {invariant.id for invariant in INVARIANTS}


@pytest.mark.parametrize("bug", PLANTED, ids=named)
def test_a_planted_bug_is_caught_by_its_invariant_alone(bug: Planted) -> None:
    verdict = run(bug.scenario, bug.build, cassette=bug.cassette()).verdict
    print(bug.caught_by, bug.build.__name__, [v.message for v in verdict.violations])
    broken = {violation.invariant for violation in verdict.violations}
    assert broken - bug.too == {bug.caught_by}
    assert verdict.status == ("PASS" if bug.soft or bug.caught_by in SOFT else "FAIL")


@pytest.mark.parametrize("bug", PLANTED, ids=named)
def test_the_loop_without_the_bug_is_clean_in_the_same_scenario(bug: Planted) -> None:
    verdict = run(bug.scenario, bug.mended, Choices(), cassette=bug.cassette()).verdict
    assert {violation.invariant for violation in verdict.violations} <= bug.too
    assert verdict.status == "PASS"
