"""UUIDs made of virtual time and of chance that is given, laid out as RFC 9562 says."""

from __future__ import annotations

from random import Random
from typing import Final
from uuid import UUID

_GREGORIAN: Final = 0x01B2_1DD2_1381_4000
"""Ticks of 100 ns from the calendar's beginning in 1582 to 1970."""
_MULTICAST: Final = 1 << 40
"""The bit of a node that says that it is no machine's address."""
_VARIANT: Final = 0b10 << 62


class Uuids:
    """Makes UUIDs; those of one kind that hold a time come in order, also within one instant.

    Times are nanoseconds since 1970.
    """

    __slots__ = ("_chance", "_counter", "_millisecond", "_node", "_tick")

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._node = chance.getrandbits(48) | _MULTICAST
        self._tick = 0
        self._millisecond = 0
        self._counter = 0

    def uuid1(self, now: int, node: int | None = None, clock_seq: int | None = None) -> UUID:
        """One of version 1."""
        tick = self._next_tick(now)
        time = (tick & 0xFFFF_FFFF) << 96 | (tick >> 32 & 0xFFFF) << 80 | 1 << 76 | tick >> 48 << 64
        return UUID(int=time | self._end(node, clock_seq))

    def uuid4(self) -> UUID:
        """One of version 4."""
        return UUID(int=self._chance.getrandbits(128), version=4)

    def uuid6(self, now: int, node: int | None = None, clock_seq: int | None = None) -> UUID:
        """One of version 6."""
        tick = self._next_tick(now)
        time = tick >> 12 << 80 | 6 << 76 | (tick & 0xFFF) << 64
        return UUID(int=time | self._end(node, clock_seq))

    def uuid7(self, now: int) -> UUID:
        """One of version 7: its millisecond, a counter of 42 bits, and 32 bits of chance."""
        millisecond = now // 1_000_000
        if millisecond > self._millisecond:
            self._millisecond = millisecond
            self._counter = self._chance.getrandbits(41)
        else:
            self._counter += 1
        counter = (self._counter >> 30) << 64 | (self._counter & 0x3FFF_FFFF) << 32
        time = self._millisecond << 80 | 7 << 76
        return UUID(int=time | counter | _VARIANT | self._chance.getrandbits(32))

    def _next_tick(self, now: int) -> int:
        self._tick = max(now // 100 + _GREGORIAN, self._tick + 1)
        return self._tick

    def _end(self, node: int | None, clock_seq: int | None) -> int:
        sequence = self._chance.getrandbits(14) if clock_seq is None else clock_seq & 0x3FFF
        return _VARIANT | sequence << 48 | (self._node if node is None else node)
