"""The random runs of a search: by turns even draws and priorities, with cancels where asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from harness.exploration.attempts import Attempt
from harness.exploration.campaign import Try
from harness.exploration.chance import Chance
from harness.exploration.points import Survey
from harness.exploration.prng import Stream
from harness.exploration.probe import ORDERING, ROLES, Mode, Probe, Run, Shot

_MODES: tuple[Mode, ...] = ("start", "early", "late", "mid")


class Portfolio:
    """Random attempts without end. What the n-th is depends on the seed and the baseline only."""

    def __init__(
        self, probe: Probe, baseline: Run, depths: Sequence[int], seed: int, cancels: int
    ) -> None:
        """`depths` are taken by turns: 0 draws evenly, others are those of priorities."""
        sources = {asked.source for asked in baseline.asked}
        self._depths = depths if sources & ORDERING else (0,)
        self._horizon = sum(asked.source in ORDERING for asked in baseline.asked)
        self._many_sources = len(sources) > 1
        self._seed = seed
        self._cancels = cancels
        self._shots = _shots(probe, baseline) if cancels else []

    def tries(self) -> Iterator[Try]:
        """The attempts in their order."""
        depths = self._depths
        for index in count():
            turn, at = divmod(index, len(depths))
            depth = depths[at]
            chance = Chance(
                "pct" if depth else "random",
                self._seed,
                index,
                depth,
                self._horizon,
                uneven=self._many_sources and (turn + at) % 2 == 1,
            )
            strategy = f"pct:{depth}" if depth else "random"
            yield Try(strategy, Attempt(chance, self._cancelled(index)))

    def _cancelled(self, index: int) -> tuple[Shot, ...]:
        """None to all of the cancels that a run may have."""
        if not self._shots:
            return ()
        stream = Stream.named(self._seed, index, "cancels")
        shots: dict[Shot, None] = {}
        for _ in range(stream.below(self._cancels + 1)):
            of_mode = self._shots[stream.below(len(self._shots))]
            shots[of_mode[stream.below(len(of_mode))]] = None
        return tuple(shots)


def _shots(probe: Probe, baseline: Run) -> list[list[Shot]]:
    """The shots that the baseline could take, for each mode: there are far more ``mid`` ones."""
    survey = Survey(baseline, probe.whom, ROLES)
    modes = [[point.shot for point in survey.points((mode,))] for mode in _MODES]
    return [shots for shots in modes if shots]
