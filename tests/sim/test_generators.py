"""Async generators are remembered weakly, in order, and only while they are not finished."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress

from harness.sim.generators import Generators


async def stream() -> AsyncGenerator[int, None]:
    yield 1


def test_generators_are_gone_through_in_the_order_they_were_added() -> None:
    generators = Generators()
    held = [stream() for _ in range(9)]
    for one in reversed(held):
        generators.add(one)
    assert list(generators) == held[::-1]
    generators.discard(held[4])
    generators.discard(stream())
    assert list(generators) == [*held[:4:-1], *held[3::-1]]
    assert len(generators) == 8
    generators.clear()
    assert list(generators) == []


def test_generators_are_not_kept_alive() -> None:
    generators = Generators()
    one = stream()
    generators.add(one)
    assert len(generators) == 1
    del one
    assert len(generators) == 0


def test_finished_generators_do_not_count() -> None:
    generators = Generators()
    one = stream()
    generators.add(one)
    with suppress(StopIteration):
        one.aclose().send(None)
    assert list(generators) == []


def test_a_generator_at_a_dead_ones_address_is_the_newest() -> None:
    generators = Generators()
    first, second = stream(), stream()
    generators.add(first)
    generators.add(second)
    address = id(first)
    del first
    third = stream()
    assert id(third) == address
    generators.add(third)
    assert list(generators) == [second, third]
