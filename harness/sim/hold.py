"""What a run holds still in its process: the collector, clocks and chance, calls that leave it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from harness.sim import anyio_backend, guards, inner_loops, jobs, thread_calls, virtual
from harness.sim.aliases import Aliases
from harness.sim.swaps import Spot, Swaps

_ALWAYS = (
    *guards.ALWAYS,
    *inner_loops.ALWAYS,
    *jobs.ALWAYS,
    *thread_calls.ALWAYS,
    *virtual.ALWAYS,
)

_elsewhere: list[Callable[[], Sequence[Swaps]]] = []
"""What gives the stand-ins of other folders, whenever they are placed."""

_OLDEST = 500
"""How many collections of the middle generation go by before one of all; that takes as long as a
hundred runs, and is due after several thousand."""


class _Held:
    """What is held now: by how many runs, what is swapped and until how many `kept` are over, by
    what to see that it still is, and whether the collector was on before.
    """

    __slots__ = ("collected", "kept", "runs", "spots", "swaps")

    def __init__(self) -> None:
        self.runs = 0
        self.kept = 0
        self.swaps: list[Swaps] = []
        self.spots: list[Spot] = []
        self.collected = False

    def place(self) -> None:
        """Put all stand-ins in their places; none where one of them cannot be."""
        self.swaps.extend(
            [
                *_ALWAYS,
                *guards.where_loaded(),
                *anyio_backend.swaps(),
                *[each for swaps in _elsewhere for each in swaps()],
                *_aliases.swaps(),
            ]
        )
        try:
            for swaps in self.swaps:
                swaps.place()
        except BaseException:
            self.lift()
            raise

    def in_place(self) -> bool:
        """Whether all stand-ins are in their places; the end of a patch may take one away."""
        if not self.spots:
            self.spots = [swaps.spot for swaps in self.swaps]
        try:
            for names, read, placed in self.spots:
                if read(names) != placed:
                    return False
        except KeyError:
            return False
        return True

    def lift(self) -> None:
        """Put back what was there."""
        for swaps in self.swaps:
            swaps.lift()
        self.swaps.clear()
        self.spots = []


_held = _Held()
_aliases = Aliases()


def swap_also(swaps: Callable[[], Sequence[Swaps]]) -> None:
    """Have runs from now on place what `swaps` gives too, each time it is placed."""
    if swaps not in _elsewhere:
        _elsewhere.append(swaps)


def hold() -> None:
    """Hold the process still, until as many calls of `release`.

    When the collector runs depends on everything the process has ever allocated, and it closes
    the async generators it finds: it would put steps into a run that another run does not have.
    """
    if _held.runs == 0:
        if _held.swaps and not (_aliases.up_to_date and _held.in_place()):
            _held.lift()
        if not _held.swaps:
            _held.place()
        _held.collected = gc.isenabled()
        gc.disable()
    _held.runs += 1


def release() -> None:
    """Undo one `hold`; the last one collects what the runs left behind.

    The youngest generation holds all that was allocated meanwhile. The older two hold little, and
    are collected less often, as the collector does it when it is on.
    """
    _held.runs -= 1
    if _held.runs:
        return
    if not _held.kept:
        _held.lift()
    if _held.collected:
        _, middle, oldest = gc.get_count()
        if oldest > _OLDEST:
            gc.collect(2)
        else:
            gc.collect(1 if middle > gc.get_threshold()[1] else 0)
        gc.enable()


@contextmanager
def kept() -> Iterator[None]:
    """Leave in its place between runs what stands in during runs, for many that follow each other.

    Between runs it does what it stands in for. Where modules were loaded meanwhile, it is placed
    anew for the names that they hold.
    """
    _held.kept += 1
    try:
        yield
    finally:
        _held.kept -= 1
        if not _held.kept and not _held.runs:
            _held.lift()
