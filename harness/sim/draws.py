"""Choices that code under test draws itself: what it leaves open is decided as an order is."""

from __future__ import annotations

from collections import Counter
from weakref import WeakKeyDictionary

from harness.core.errors import UsageError
from harness.sim.boundary import Boundary, simulation

SOURCE = "user"

_MOST = 10**17
"""What a token has room for."""

_asked: WeakKeyDictionary[Boundary, Counter[str]] = WeakKeyDictionary()
"""How often each run was asked for each label."""


def choose(label: str, bound: int) -> int:
    """A number from 0 to `bound` - 1 that a search decides, so that it tries each.

    For what differs between real runs: whether a server refuses, which replica answers. 0 is the
    ordinary case; it is what every run gets that nobody explores, and all code outside of the
    simulation. `label` says what is decided; drawn again, it is numbered. UsageError where there
    is nothing to choose from.
    """
    _check(label, bound)
    loop = simulation()
    if loop is None or loop.choices is None or bound == 1:
        return 0
    counts = _asked.setdefault(loop, Counter())
    counts[label] += 1
    return loop.choices.choose(SOURCE, f"{label}#{counts[label]}", bound)


def _check(label: object, bound: object) -> None:
    given = f"choose({label!r}, {bound!r})"
    if not isinstance(label, str):
        raise UsageError(f"{given}: the label is a text that says what is decided")
    if not isinstance(bound, int) or not 1 <= bound <= _MOST:
        raise UsageError(
            f"{given}: the bound is how many values there are, at least 1 and at most {_MOST:,}"
        )
