"""Generated scenarios of a loop, a thousand at most, the same ones every time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count, islice

from hypothesis import HealthCheck, Phase, given, seed, settings

from harness.runner.scenario import Scenario
from harness.testing.strategies import scenarios

SIZE = 1_000
"""How many are played in every run of the tests: the first of those ten thousand that are played
nightly, by the same laws.
"""
AT_ONCE = 10
"""How many are drawn by one seed: beyond these, Hypothesis turns to variations of what it has."""


def pool(*loops: str, size: int = SIZE, level: str = "model") -> tuple[Scenario, ...]:
    """Scenarios of these loops, for a level, that differ; without any, of the turn loop."""
    return tuple(islice(drawn(*loops, level=level), size))


def drawn(*loops: str, level: str = "model") -> Iterator[Scenario]:
    """The same without an end, each of them drawn when it is first asked for."""
    found, draws = _drawing(loops or ("turn",), level)
    for number in count():
        while number >= len(found):
            next(draws)
        yield found[number]


@cache
def _drawing(loops: tuple[str, ...], level: str) -> tuple[list[Scenario], Iterator[None]]:
    """The scenarios that are drawn so far, and what draws some more."""
    found: list[Scenario] = []
    return found, _draws(loops, level, found)


def _draws(loops: tuple[str, ...], level: str, found: list[Scenario]) -> Iterator[None]:
    known = set()

    def collect(scenario: Scenario) -> None:
        if (shown := repr(scenario)) not in known:
            known.add(shown)
            found.append(scenario)

    few = settings(
        max_examples=AT_ONCE,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for number in count():
        yield seed(number)(few(given(scenarios(loops=loops, level=level))(collect)))()
