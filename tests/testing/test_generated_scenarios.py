"""A thousand generated scenarios can be played, are played clean, and show what matters."""

from __future__ import annotations

from collections import Counter
from functools import cache

from harness.core.events import (
    CancelDelivered,
    FaultInjected,
    ResultSynthesized,
    ToolEnded,
    ToolStarted,
    Trimmed,
)
from harness.core.outcome import OUTCOME_NAMES, outcome_name
from harness.core.trace import Trace
from harness.runner.files.load import load_text
from harness.runner.files.spell import spell_text
from harness.runner.result import Result
from harness.runner.scenario import Scenario
from harness.testing.generated import check_generated
from tests.runner.scenarios import bare
from tests.testing.pool import SIZE, pool

LEAST = {
    **dict.fromkeys(OUTCOME_NAMES, 0.01),
    "cancel": 0.03,
    "fault": 0.03,
    "parallel calls": 0.03,
    "synthesized result": 0.03,
    "trim cut": 0.03,
}
"""In how many scenarios, at least, each of these must happen."""


@cache
def results() -> tuple[Result, ...]:
    """Each scenario, spelled as a file, read again and run on the turn loop; all of it clean."""
    return tuple([check_generated(reread(scenario)) for scenario in pool()])


def reread(scenario: Scenario) -> Scenario:
    return load_text(spell_text(scenario), "generated.yaml")


def seen(result: Result) -> set[str]:
    """What happened in a run that a tester wants to have happened, the runner's own turn aside."""
    own = result.outcomes[: len(result.scenario.turns)]
    return {*map(outcome_name, own), *happened(result.trace)}


def happened(trace: Trace) -> set[str]:
    found = set()
    running = 0
    for entry in trace:
        match entry.event:
            case CancelDelivered():
                found.add("cancel")
            case FaultInjected():
                found.add("fault")
            case ResultSynthesized():
                found.add("synthesized result")
            case Trimmed():
                found.add("trim cut")
            case ToolStarted():
                running += 1
                if running > 1:
                    found.add("parallel calls")
            case ToolEnded():
                running -= 1
    return found


def test_they_are_read_from_their_files_as_they_were() -> None:
    assert len(results()) == SIZE
    for result, scenario in zip(results(), pool(), strict=True):
        assert bare(result.scenario) == bare(scenario)


def test_they_break_no_invariant_not_even_a_soft_one() -> None:
    broken = Counter(one.invariant for r in results() for one in r.verdict.violations)
    assert not broken


def test_each_outcome_and_each_thing_that_goes_wrong_is_among_them() -> None:
    counts = Counter(what for result in results() for what in seen(result))
    shares = {what: counts[what] / SIZE for what in sorted({*counts, *LEAST})}
    print(f"\nof {SIZE} generated scenarios")
    for what, share in shares.items():
        print(f"  {what:20} {share:6.1%}  (at least {LEAST[what]:.0%})")
    assert not {what: share for what, share in shares.items() if share < LEAST[what]}
