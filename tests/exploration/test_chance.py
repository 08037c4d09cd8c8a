"""Choices are drawn the same way every time, source by source, and priorities hold."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.exploration.chance import Chance, Priorities
from harness.exploration.prng import Stream

KINDS = [Chance("random", 1, 2), Chance("random", 1, 2, uneven=True), Chance("pct", 1, 2, 3, 40)]


@pytest.mark.parametrize("chance", KINDS)
def test_a_draw_of_one_source_shifts_no_other(chance: Chance) -> None:
    alone, mixed = chance.picker(), chance.picker()
    expected = [alone("latency", str(n), 5) for n in range(50)]
    found = []
    for n in range(50):
        mixed("ready", str(n), 3)
        found.append(mixed("latency", str(n), 5))
        mixed("chunking", str(n), 4)
    assert found == expected


@pytest.mark.parametrize("chance", KINDS)
@given(st.lists(st.tuples(st.sampled_from(["ready", "tie", "fault"]), st.integers(1, 9))))
def test_every_value_is_below_its_bound(chance: Chance, asked: list[tuple[str, int]]) -> None:
    pick = chance.picker()
    assert all(0 <= pick(source, "", bound) < bound for source, bound in asked)


def test_every_run_is_drawn_anew() -> None:
    runs = set()
    for index in range(50):
        pick = Chance("random", 0, index).picker()
        runs.add(tuple(pick("ready", "", 10) for _ in range(5)))
    assert len(runs) == 50


def test_an_uneven_run_deviates_in_some_sources_often_and_in_some_never() -> None:
    rates = set()
    for index in range(100):
        pick = Chance("random", 0, index, uneven=True).picker()
        deviations = sum(pick("fault", "", 2) for _ in range(64))
        rates.add(min(deviations // 12, 2))
    never = [
        index
        for index in range(100)
        if not any(
            map(
                Chance("random", 0, index, uneven=True).picker(), [*"f" * 64], [*"l" * 64], [9] * 64
            )
        )
    ]
    assert rates == {0, 1, 2}
    assert 15 < len(never) < 35


def chains(depth: int, seed: int, horizon: int = 30, decisions: int = 30) -> list[str]:
    """Who goes first in a queue of three that always come back."""
    priorities = Priorities(Stream(seed), depth, horizon)
    queue = ["a", "b", "c"]
    went = []
    for _ in range(decisions):
        one = queue.pop(priorities.first(len(queue)))
        went.append(one)
        queue.append(one)
    return went


def test_the_first_in_priority_goes_on_until_it_falls() -> None:
    for depth in (1, 2, 3):
        blocks = [len([*groupby(chains(depth, seed))]) for seed in range(50)]
        assert max(blocks) == depth
        assert blocks.count(depth) >= 40  # a fall may come at the very first, or two at one place


def test_all_orders_of_priority_come_up() -> None:
    firsts = {tuple(one for one, _ in groupby(chains(3, seed))) for seed in range(200)}
    assert {("a", "b", "c"), ("a", "c", "b"), ("b", "a", "c"), ("c", "b", "a")} <= firsts


def test_those_that_leave_are_forgotten() -> None:
    priorities = Priorities(Stream(3), 1, 10)
    assert 0 <= priorities.first(5) < 5
    assert [priorities.first(1), priorities.first(1)] == [0, 0]


def test_nobody_starves_for_ever() -> None:
    assert set(chains(1, 0, horizon=10, decisions=145)) == {chains(1, 0)[0]}
    assert set(chains(1, 0, horizon=10, decisions=160)) == {"a", "b", "c"}
