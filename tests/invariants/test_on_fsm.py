"""The invariants on the state-machine loop: what its scenarios have them judge and find."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.core.verdict import Violation
from harness.fakes.script import Reply, ScriptedCall
from harness.invariants import INVARIANTS
from harness.loops.fsm.agent import KIND
from harness.runner.agents import loop_subject
from harness.runner.files.load import find, load
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from tests.bugs.planted_fsm import SAYS_MUCH, SHORT, TIGHT
from tests.bugs.planting import QUICK
from tests.bugs.planting_fsm import fsm_scenario, summaries

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NEVER = {
    "ACCEPTED": "nothing goes over HTTP at the level of the model",
    "BOUND": "the loop replaces its conversation by a summary, and cuts none to a budget",
    "ESTIMATE": "the loop reports no estimate of a request",
    "LOG-HISTORY": "the loop keeps a file for people, and no log of rows",
    "MISS": "no scenario is run on a cassette here",
    "RETRY-VISIBLE": "the loop tells its consumer of no text as it comes",
}
"""What no scenario has judged on the loop, and why."""


@pytest.mark.parametrize("policy", KIND.policies)
def test_all_that_can_be_judged_is_judged(policy: str) -> None:
    judged: Counter[str] = Counter()
    scenarios = [each for each in map(load, find([SCENARIOS])) if KIND.name in each.loops]
    for scenario in scenarios:
        verdict = run(scenario, loop_subject(KIND, scenario, policy)).verdict
        judged.update(each.id for each in INVARIANTS if each.id not in verdict.not_judged)
    print(f"\n{policy}: judged in how many of {len(scenarios)} scenarios")
    for invariant in INVARIANTS:
        print(f"{invariant.id:18} {judged[invariant.id] or NEVER.get(invariant.id)}")
    assert {each.id for each in INVARIANTS if not judged[each.id]} == set(NEVER)


def found(scenario: Scenario, policy: str) -> list[Violation]:
    """What there is beside the user's messages in a row, which the loop makes."""
    verdict = run(scenario, loop_subject(KIND, scenario, policy)).verdict
    return [each for each in verdict.violations if each.invariant != "SHAPE"]


@pytest.mark.parametrize("policy", KIND.policies)
def test_the_same_call_again_and_again_is_noticed(policy: str) -> None:
    replies = (*[Reply(calls=(ScriptedCall("quick"),))] * 12, Reply(say="Gone."))
    [violation] = found(fsm_scenario(Turn("Go.", replies), tools=(QUICK,)), policy)
    assert (violation.invariant, violation.severity) == ("LOOP-DETECT", "soft")
    assert violation.message == "quick was called 11 times in a row, with the same result"


def test_the_recorded_loop_compacts_without_end_and_the_safe_one_does_not() -> None:
    endless = fsm_scenario(
        Turn(SAYS_MUCH, (Reply(say="Fine."),)),
        also=summaries(*[SHORT] * 20, Reply(say="")),
        **TIGHT,
    )
    [violation] = found(endless, "reference")
    assert (violation.invariant, violation.severity) == ("COMPACT-PROGRESS", "hard")
    assert violation.message.startswith(
        "the conversation was compacted again with no reply in between, and is no smaller: "
    )
    assert found(endless, "safe") == []
