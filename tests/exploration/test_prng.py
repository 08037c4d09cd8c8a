"""The numbers are those of the published generator, and streams do not disturb each other."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.exploration.prng import Sample, Stream


def test_the_numbers_are_those_of_the_published_generator() -> None:
    stream = Stream(1234567)
    assert [stream.next() for _ in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_the_streams_of_names_never_change() -> None:
    assert [Stream.named(7, 3, "latency").below(1_000) for _ in range(2)] == [722, 722]
    assert Stream.named("straße\udc80", -1).below(1_000) == 26


def test_every_name_gives_another_stream() -> None:
    names = [(seed, run, source) for seed in range(10) for run in range(10) for source in "ab"]
    assert len({Stream.named(*each).next() for each in names}) == len(names)
    assert Stream.named("ab").next() != Stream.named("a", "b").next()


@given(st.integers(0, 2**64 - 1), st.integers(1, 50))
def test_numbers_below_a_bound_are_below_it(state: int, bound: int) -> None:
    stream = Stream(state)
    assert all(0 <= stream.below(bound) < bound for _ in range(20))


def test_numbers_below_a_bound_are_even() -> None:
    stream = Stream(1)
    counts = Counter(stream.below(7) for _ in range(7_000))
    assert set(counts) == set(range(7))
    assert all(850 < count < 1_150 for count in counts.values())


@given(st.integers(0, 60), st.integers(0, 20), st.integers(0, 99))
def test_a_sample_is_as_large_as_it_may_be_and_in_order(items: int, most: int, seed: int) -> None:
    sample: Sample[int] = Sample(most, Stream(seed))
    for item in range(items):
        sample.show(item)
    kept = list(sample)
    assert sample.shown == items
    assert len(sample) == len(kept) == min(items, most)
    assert kept == sorted(set(kept))
    if items <= most:
        assert kept == list(range(items))


def test_every_item_is_as_likely_to_be_in_a_sample() -> None:
    counts: Counter[int] = Counter()
    for seed in range(2_000):
        sample: Sample[int] = Sample(5, Stream.named(seed))
        for item in range(20):
            sample.show(item)
        counts.update(sample)
    assert all(400 < counts[item] < 600 for item in range(20))


@pytest.mark.parametrize("drawn", [0, 1, 100])
def test_a_draw_in_one_stream_shifts_no_other(drawn: int) -> None:
    one, other = Stream.named(1, "one"), Stream.named(1, "other")
    for _ in range(drawn):
        one.next()
    assert other.next() == Stream.named(1, "other").next()
