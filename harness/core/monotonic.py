"""A turn that is cancelled later leaves no less: what later runs lack that earlier ones have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")

MONOTONIC = "MONOTONIC"
"""How verdicts call the rule."""


class Loss(Struct, Generic[T], frozen=True):
    """Something that the run `later` lacks, and the last run before it that has it."""

    item: str
    earlier: T
    later: T

    @property
    def sentence(self) -> str:
        """What is wrong, where runs are told by how they were cancelled.

        >>> Loss("the call c1", "at 1#1", "at 1#2").sentence
        'cancelled at 1#2 the next request lacks the call c1, which it has when cancelled at 1#1'
        """
        return (
            f"cancelled {self.later} the next request lacks {self.item}, "
            f"which it has when cancelled {self.earlier}"
        )


def losses(runs: Iterable[tuple[T, Collection[str] | None]]) -> Iterator[Loss[T]]:
    """What runs lack, each cancelled later than the one before it, with what each has; None of what
    is in a run is compared where that is not known.
    """
    last: dict[str, T] = {}
    for run, items in runs:
        if items is None:
            continue
        for item, earlier in last.items():
            if item not in items:
                yield Loss(item, earlier, run)
        for item in items:
            last[item] = run
