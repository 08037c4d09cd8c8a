"""UUIDs of a run are proper ones, and those with a time come in order."""

from __future__ import annotations

import uuid
from random import Random
from uuid import UUID

import pytest

from harness.sim.uuids import Uuids

NOW = 1_735_689_600_123_456_700


@pytest.fixture
def uuids() -> Uuids:
    return Uuids(Random(1))


def test_each_says_its_version_and_variant(uuids: Uuids) -> None:
    made = [uuids.uuid1(NOW), uuids.uuid4(), uuids.uuid6(NOW), uuids.uuid7(NOW)]
    assert [each.version for each in made] == [1, 4, 6, 7]
    assert {each.variant for each in made} == {uuid.RFC_4122}


def test_version_1_is_laid_out_as_the_librarys_own(uuids: Uuids) -> None:
    made = uuids.uuid1(NOW, node=0x1234_5678_9ABC, clock_seq=0x2345)
    assert (made.time - 0x01B2_1DD2_1381_4000) * 100 == NOW
    assert (made.node, made.clock_seq) == (0x1234_5678_9ABC, 0x2345)
    assert made == UUID(fields=made.fields, version=1)


def test_version_6_is_version_1_with_its_time_in_order(uuids: Uuids) -> None:
    """The example of RFC 9562, of the same instant in both versions."""
    now = (UUID("C232AB00-9414-11EC-B3C8-9F6BDECED846").time - 0x01B2_1DD2_1381_4000) * 100
    given = {"node": 0x9F6B_DECE_D846, "clock_seq": 0x33C8}
    assert uuids.uuid6(now, **given) == UUID("1EC9414C-232A-6B00-B3C8-9F6BDECED846")


def test_version_7_begins_with_its_millisecond(uuids: Uuids) -> None:
    assert uuids.uuid7(NOW).int >> 80 == NOW // 1_000_000


def test_those_of_one_instant_are_in_order_and_the_node_stays(uuids: Uuids) -> None:
    for make in (uuids.uuid6, uuids.uuid7):
        made = [make(NOW) for _ in range(50)] + [make(NOW + 10_000_000) for _ in range(50)]
        assert made == sorted(set(made), key=lambda each: each.int)
    made = [uuids.uuid1(NOW) for _ in range(50)]
    assert [each.time - made[0].time for each in made] == list(range(50))
    (node,) = {each.node for each in made}
    assert node >> 40 & 1, "it is no machine's address"
