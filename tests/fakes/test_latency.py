"""The five ways to take time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.choices import Choices, Draw, choices_from
from harness.fakes.latency import LATENCIES, latency, reversed_rank

spans = st.lists(st.integers(0, 100), min_size=1, max_size=8)


def chosen(way, takes, index):
    return latency(choices_from({("latency", "t x"): (way, LATENCIES)}), "t x", takes, index)


@pytest.mark.parametrize(("way", "expected"), list(enumerate([20, 0, 30, 20, 200])))
def test_each_way(way, expected):
    assert chosen(way, (30, 20, 10), 1) == expected


def test_ten_times_nothing_is_ten_milliseconds():
    assert chosen(4, (0,), 0) == 10_000_000


@given(spans)
def test_the_reverse_gives_the_same_spans_in_the_opposite_order(takes):
    turned = [reversed_rank(takes, index) for index in range(len(takes))]
    assert sorted(turned) == sorted(takes)
    for first in range(len(takes)):
        for second in range(len(takes)):
            if takes[first] < takes[second]:
                assert turned[first] >= turned[second]


def test_a_deviation_is_on_the_tape():
    choices = Choices(picker=lambda source, label, bound: bound - 1)
    latency(choices, "weather call_1_1_1", (5,), 0)
    assert choices.tape() == (Draw("latency", "weather call_1_1_1", 4, 5),)
