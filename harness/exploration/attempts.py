"""What is tried in one run, as data, so that other processes can try it too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from harness.core.choices import Draw, Picker, Tape
from harness.exploration.chance import Chance
from harness.exploration.probe import Probe, Run, Shot


class Attempt(Struct, frozen=True):
    """The choices of a run, drawn by lot or as a tape says where it fits, and its cancels.

    A tape that was made without the cancels does not fit after them.
    """

    choices: Tape | Chance = ()
    shots: tuple[Shot, ...] = ()

    def run(self, probe: Probe) -> Run:
        """Try it."""
        if not self.choices:
            return probe.run((), self.shots)
        if isinstance(self.choices, Chance):
            return probe.run((), self.shots, self.choices.picker())
        return probe.run((), self.shots, lenient(self.choices))


Many: TypeAlias = Callable[[Iterable[Attempt]], Iterator[Run]]
"""Gives the run of each attempt, in the order of the attempts.

This is the place to use more than one process, or to fork one where attempts part. It may be given
attempts without end, and be left before it has given all runs.
"""


def one_by_one(probe: Probe) -> Many:
    """Try one attempt after the other, each when its run is asked for."""

    def many(attempts: Iterable[Attempt]) -> Iterator[Run]:
        for attempt in attempts:
            yield attempt.run(probe)

    return many


def lenient(tape: Tape) -> Picker:
    """Decide as `tape` does where it fits, and 0 elsewhere: one change makes others not fit."""
    values = {(draw.source, draw.label): draw.value for draw in tape}

    def pick(source: str, label: str, bound: int) -> int:
        value = values.get((source, label), 0)
        return value if value < bound else 0

    return pick


def decisions(run: Run) -> Tape:
    """What the run decided other than 0, in the order in which it was asked."""
    return tuple([Draw(a.source, a.label, a.value, a.bound) for a in run.asked if a.value])


def tape_of(run: Run) -> Tape:
    """The tape that gives this run again."""
    return tuple(sorted(decisions(run), key=lambda draw: (draw.source, draw.label)))
