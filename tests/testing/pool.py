"""Generated scenarios of a loop, two thousand at most, the same ones every time."""

from __future__ import annotations

from functools import cache
from itertools import count

from hypothesis import HealthCheck, Phase, given, seed, settings

from harness.runner.scenario import Scenario
from harness.testing.strategies import scenarios

SIZE = 2_000
AT_ONCE = 10
"""How many are drawn by one seed: beyond these, Hypothesis turns to variations of what it has."""


@cache
def pool(*loops: str, size: int = SIZE) -> tuple[Scenario, ...]:
    """Scenarios of these loops that differ; without any, of the turn loop."""
    found: dict[str, Scenario] = {}

    def collect(scenario: Scenario) -> None:
        found[repr(scenario)] = scenario

    few = settings(
        max_examples=AT_ONCE,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for number in count():
        seed(number)(few(given(scenarios(loops=loops or ("turn",)))(collect)))()
        if len(found) >= size:
            return tuple(found.values())[:size]
    raise AssertionError("counting has no end")
