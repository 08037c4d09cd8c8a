"""The one source of nondeterminism: every decision that a scenario leaves open is a draw here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from harness.core.errors import ReplayMismatch
from harness.core.wording import counted

Picker: TypeAlias = Callable[[str, str, int], int]
"""(source, label, bound) -> a value below bound: how to decide what the tape leaves open."""


class Draw(Struct, frozen=True):
    """One decision that was not 0, with the number of values it was taken from."""

    source: str
    label: str
    value: int
    bound: int


Tape: TypeAlias = tuple[Draw, ...]


class Choices:
    """The decisions of one run: what `tape` says, then what `picker` says, then 0.

    0 is always the ordinary case, so a tape holds only the deviations. A label is unique within
    its source and run. Use a fresh object for every run.
    """

    __slots__ = ("_draws", "_misfit", "_picker", "_tape")

    def __init__(self, tape: Tape = (), picker: Picker | None = None) -> None:
        self._tape: dict[tuple[str, str], Draw] = {(d.source, d.label): d for d in tape}
        self._picker = picker
        self._draws: list[Draw] = []
        self._misfit: ReplayMismatch | None = None
        """What did not fit, since the code that asked may have swallowed the error."""

    def choose(self, source: str, label: str, bound: int) -> int:
        """Decide `label` of `source`: a value from 0 to `bound` - 1.

        ReplayMismatch where the tape's value was taken from another number of values.
        """
        assert bound > 0, f"a choice needs a value to choose: {source} {label}"
        if self._tape:
            draw = self._tape.pop((source, label), None)
            if draw is not None:
                if draw.bound != bound or not 0 <= draw.value < bound:
                    self._misfit = ReplayMismatch(
                        f"the tape decides {source} {label!r} as {draw.value} of {draw.bound}, "
                        f"but this run asks for one of {bound}; the scenario or the agent has "
                        "changed since the tape was made, so search again"
                    )
                    raise self._misfit
                self._draws.append(draw)
                return draw.value
        if self._picker is None:
            return 0
        value = self._picker(source, label, bound)
        assert 0 <= value < bound, f"the picker chose {value} of {bound} for {source} {label}"
        if value:
            self._draws.append(Draw(source, label, value, bound))
        return value

    @property
    def plain(self) -> bool:
        """True where every decision from here on is 0, so that a caller need not ask."""
        return self._picker is None and not self._tape

    def tape(self) -> Tape:
        """The deviations of the run so far, in a canonical order."""
        return tuple(sorted(self._draws, key=lambda d: (d.source, d.label)))

    def unused(self) -> Tape:
        """The deviations on the given tape that the run never asked for."""
        return tuple(sorted(self._tape.values(), key=lambda d: (d.source, d.label)))

    def check_used(self) -> None:
        """ReplayMismatch where the given tape did not fit, or decides what the run never asked."""
        if self._misfit is not None:
            raise self._misfit
        left = self.unused()
        if left:
            names = ", ".join(f"{d.source} {d.label!r}" for d in left[:5])
            was = "was" if len(left) == 1 else "were"
            raise ReplayMismatch(
                f"{counted(len(left), 'decision')} of the tape {was} never asked for: {names}; the "
                "scenario or the agent has changed since the tape was made, so search again"
            )


def choices_from(deviations: Mapping[tuple[str, str], tuple[int, int]]) -> Choices:
    """Choices that follow {(source, label): (value, bound)} and are 0 elsewhere."""
    return Choices(tuple(Draw(s, n, v, b) for (s, n), (v, b) in deviations.items()))
