"""Planted bugs are found by generated scenarios alone, without the one that was made to show it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from harness.core.ports import Agent, Env
from harness.runner.agents import Subject
from harness.runner.run import run
from harness.runner.scenario import Scenario
from tests.bugs.planted import PLANTED
from tests.bugs.planting import Planted
from tests.testing.pool import SIZE, drawn

LEAST = 0.8
"""How many of the bugs that need no exotic fault must be found, at least."""


def found_after(bug: Planted) -> int | None:
    """The number of scenarios until the bug's invariant reports it, and not its mended agent."""
    for number, scenario in enumerate(islice(drawn(*bug.loops), SIZE), 1):
        buggy, mended = bug.under(scenario), bug.mended_under(scenario)
        if breaks(bug, buggy, scenario) and not breaks(bug, mended, scenario):
            return number
    return None


def breaks(bug: Planted, build: Callable[[Env], Agent], scenario: Scenario) -> bool:
    """Whether an agent breaks the bug's invariant; what it may spend is the agent's affair."""
    verdict = run(scenario, Subject("planted", build, budget=bug.scenario.budget)).verdict
    return any(violation.invariant == bug.caught_by for violation in verdict.violations)


def test_most_planted_bugs_are_found_by_generation_alone() -> None:
    print(f"\n{'bug':36} {'invariant':16} found after, of {SIZE} generated scenarios")
    tried: dict[str, list[int | None]] = {}
    for bug in PLANTED:
        named = f"{bug.build.__name__:36} {bug.caught_by:16}"
        if bug.exotic:
            print(f"{named} not tried, it needs {bug.exotic}")
            continue
        number = found_after(bug)
        tried.setdefault(" ".join(bug.loops) or "any loop", []).append(number)
        print(f"{named} {number or 'NOT FOUND'}")
    for loops, numbers in tried.items():
        found = [number for number in numbers if number]
        print(f"{len(found)} of {len(numbers)} found with the settings of {loops}")
        assert len(found) >= LEAST * len(numbers)
