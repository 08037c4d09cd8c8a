"""How the choices of one run are drawn by lot: evenly, or by priorities (PCT)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.choices import Picker
from harness.exploration.prng import Stream
from harness.exploration.probe import ORDERING

_Draw: TypeAlias = Callable[[int], int]

_RATES = (8, 4, 1, 0)
"""Of eight choices of a source, how many are drawn at all in a run that does not treat its sources
alike. So some runs have only slow tools, some only faults, and some many of one and few of other.
"""

_FAIR_AFTER = 8
"""After this many times the expected number of decisions, priorities end: they may starve a task
for ever, and a loop that waits for it would never end.
"""


class Chance(Struct, frozen=True):
    """The draw of one run: the same values give the same run.

    ``random``: every value is as likely as any other. ``pct``: of those that wait, the one of the
    highest priority goes first; `depth` - 1 times within `horizon` decisions, the first falls
    behind all others. `uneven` draws for each source how often it deviates at all.
    """

    kind: Literal["random", "pct"]
    seed: int
    index: int
    depth: int = 0
    horizon: int = 0
    uneven: bool = False

    def picker(self) -> Picker:
        """A fresh picker, for one run."""
        draws: dict[str, _Draw] = {}

        def pick(source: str, _label: str, bound: int) -> int:
            draw = draws.get(source)
            if draw is None:
                draw = draws[source] = self._source(source)
            return draw(bound)

        return pick

    def _source(self, source: str) -> _Draw:
        stream = Stream.named(self.seed, self.index, source)
        if self.kind == "pct" and source in ORDERING:
            return Priorities(stream, self.depth, self.horizon).first
        rate = _RATES[stream.below(len(_RATES))] if self.uneven else 8
        if rate == 8:
            return stream.below
        return lambda bound: stream.below(bound) if stream.below(8) < rate else 0


class Priorities:
    """Probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010) over a queue.

    Nobody says who waits; it is known from the numbers: those that were passed over keep their
    order, and the first to come after a decision is taken to be caused by it and inherits its
    priority, so that priorities belong to chains of events (Ozkan et al., OOPSLA 2018).
    """

    __slots__ = (
        "_asked",
        "_falls",
        "_inherited",
        "_limit",
        "_made",
        "_priorities",
        "_stream",
        "_waiting",
    )

    def __init__(self, stream: Stream, depth: int, horizon: int) -> None:
        self._stream = stream
        self._falls = {stream.below(max(horizon, 1)): -low for low in range(1, depth)}
        self._limit = _FAIR_AFTER * horizon + 64
        self._waiting: list[int] = []
        """The numbers of those that wait, in their order."""
        self._priorities: list[tuple[int, int]] = []
        """A heap, the highest first: the priority, negated, and whose it is. Who waits no more is
        taken out late.
        """
        self._made = 0
        self._inherited: int | None = None
        self._asked = 0

    def first(self, bound: int) -> int:
        """Which of `bound` that wait goes first."""
        if self._asked > self._limit:
            return 0
        waiting = self._waiting
        del waiting[bound:]
        if len(waiting) < bound and self._inherited is not None:
            self._add(self._inherited)
        while len(waiting) < bound:
            self._add(self._stream.next())
        best = self._highest()
        if self._asked in self._falls:
            heapreplace(self._priorities, (-self._falls[self._asked], waiting[best]))
            best = self._highest()
        self._asked += 1
        self._inherited = -heappop(self._priorities)[0]
        del waiting[best]
        return best

    def _add(self, priority: int) -> None:
        self._waiting.append(self._made)
        heappush(self._priorities, (-priority, self._made))
        self._made += 1

    def _highest(self) -> int:
        """The place of the one that has the highest priority, the first of the heap from then."""
        while True:
            number = self._priorities[0][1]
            place = bisect_left(self._waiting, number)
            if place < len(self._waiting) and self._waiting[place] == number:
                return place
            heappop(self._priorities)
