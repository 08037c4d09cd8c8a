"""Numbers drawn by lot, the same in every Python and for ever.

The generator is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
2014). Every use has a stream of its own, found by names, so that one more draw in one place shifts
nothing in another.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Generic, TypeVar

_T = TypeVar("_T")

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FNV_START = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


class Stream:
    """A sequence of numbers that `state`, a 64-bit number, decides."""

    __slots__ = ("_state",)

    def __init__(self, state: int) -> None:
        self._state = state & _MASK

    @classmethod
    def named(cls, *names: int | str) -> Stream:
        """The stream of these names: a seed, the number of a run, a source, and so on."""
        state = 0
        for name in names:
            state = _mix(state + _GAMMA ^ (name if isinstance(name, int) else _number(name)))
        return cls(state)

    def next(self) -> int:
        """The next number, 64 bits."""
        self._state = state = (self._state + _GAMMA) & _MASK
        return _mix(state)

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1; each is equally likely to within bound / 2^64."""
        self._state = z = (self._state + _GAMMA) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return ((z ^ (z >> 31)) * bound) >> 64


class Sample(Generic[_T]):
    """At most `most` of the items it is shown, each as likely as any other; all, where they fit.

    Needs room for `most` items only, however many are shown (reservoir sampling).
    """

    def __init__(self, most: int, stream: Stream) -> None:
        self.shown = 0
        self._most = most
        self._stream = stream
        self._kept: list[tuple[int, _T]] = []

    def show(self, item: _T) -> None:
        """Take `item` into account."""
        self.shown += 1
        if len(self._kept) < self._most:
            self._kept.append((self.shown, item))
            return
        place = self._stream.below(self.shown)
        if place < self._most:
            self._kept[place] = (self.shown, item)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[_T]:
        """The items that were taken, in the order in which they were shown."""
        for _, item in sorted(self._kept, key=lambda kept: kept[0]):
            yield item


def _mix(z: int) -> int:
    z &= _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


@lru_cache(maxsize=1_024)
def _number(name: str) -> int:
    """A name as a number (FNV-1a, 64 bits); `hash` differs from process to process."""
    number = _FNV_START
    for byte in name.encode("utf-8", "surrogatepass"):
        number = ((number ^ byte) * _FNV_PRIME) & _MASK
    return number
