"""Holds the runs of one turn that is cancelled later and later against each other."""

from __future__ import annotations

import re

from msgspec import Struct

from harness.core.monotonic import MONOTONIC, Loss, losses
from harness.exploration.points import Point
from harness.exploration.probe import Kept, Run, Shot, Whom

_NUMBER = re.compile(r"\d+")


class Cancelled(Struct, frozen=True, eq=False):
    """A run that was cancelled once, as far as it is compared."""

    point: Point
    digest: str
    kept: Kept

    def __str__(self) -> str:
        return f"at {self.point.shot}"


class Lost(Struct, frozen=True):
    """What several runs lack: the first of them with the run before it that has it, and the shots
    of them all, in the order of their moments. Numbers do not matter to the key.
    """

    key: str
    loss: Loss[Cancelled]
    shots: tuple[Shot, ...]

    @property
    def message(self) -> str:
        """What is wrong, as findings say it."""
        return f"{MONOTONIC}: {self.loss.sentence}"


class Losses:
    """Collects the runs of a sweep that had one cancel each, and compares those of one turn that
    was told in one way, in the order of their moments.

    A run in which something is wrong is not compared: its finding may well be the reason.
    """

    def __init__(self) -> None:
        self._runs: dict[tuple[int, Whom], list[Cancelled]] = {}

    def note(self, point: Point, run: Run) -> None:
        """Note the run that was cancelled at `point`."""
        if run.kept is not None and not run.findings:
            runs = self._runs.setdefault((point.turn, point.shot.whom), [])
            runs.append(Cancelled(point, run.digest, run.kept))

    def found(self) -> list[Lost]:
        """What is lost, each kind once."""
        groups: dict[str, list[Loss[Cancelled]]] = {}
        for runs in self._runs.values():
            runs.sort(key=lambda run: run.point.moment)
            for loss in losses([(run, run.kept.items) for run in runs]):
                groups.setdefault(_NUMBER.sub("#", loss.item), []).append(loss)
        return [_lost(item, group) for item, group in groups.items()]


def _lost(item: str, group: list[Loss[Cancelled]]) -> Lost:
    group.sort(key=lambda loss: loss.later.point.moment)
    shots = dict.fromkeys([loss.later.point.shot for loss in group])
    return Lost(f"{MONOTONIC}: {item}", group[0], tuple(shots))
