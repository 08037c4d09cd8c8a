"""What shows why a run fails: a run beside it that does not, who ran when, where it was busy."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from harness.core.choices import Tape
from harness.explore.attempts import lenient
from harness.explore.points import moment_of
from harness.explore.probe import NOT_REACHED, Asked, Landing, Probe, Role, Run, Shot
from harness.explore.same import agreed

Sign: TypeAlias = Literal[" ", "-", "+"]
"""A line of both runs, of the passing one only, of the failing one only."""


class Difference(Struct, frozen=True):
    """A passing run that is like the failing one except for `changed`, and how their lines part.

    The first `agreed` lines are the same and are not in `lines`.
    """

    changed: str
    passing: Run
    agreed: int
    lines: tuple[tuple[Sign, str], ...]


class Move(Struct, frozen=True):
    """One step of a task, a row of the interleaving: where the task waits then (None: it has
    ended), the choices other than 0 made by then, and the cancels that came about that time.
    """

    step: int
    path: str
    role: Role
    where: str | None
    decisions: tuple[Asked, ...] = ()
    landings: tuple[Landing, ...] = ()


class Busy(Struct, frozen=True):
    """A line of code and how often tasks of a role waited there."""

    where: str
    role: Role
    count: int


def difference(
    probe: Probe, run: Run, tape: Tape = (), shots: tuple[Shot, ...] = ()
) -> Difference | None:
    """The passing run that is most like the failing `run`, among those that lack one of its
    cancels or one of its decisions; None where none passes.

    Makes a run for each of them. The most alike has the longest beginning in common.
    """
    best: tuple[int, str, Run] | None = None
    for changed, fewer, left in _without_one(tape, shots):
        other = probe.run((), left, lenient(fewer))
        if other.findings or other.unresolved is not None:
            continue
        both = agreed(run.lines, other.lines)
        if best is None or both > best[0]:
            best = (both, changed, other)
    if best is None:
        return None
    both, changed, passing = best
    return Difference(changed, passing, both, _compared(passing.lines[both:], run.lines[both:]))


def _without_one(
    tape: Tape, shots: tuple[Shot, ...]
) -> Iterator[tuple[str, Tape, tuple[Shot, ...]]]:
    for at, shot in enumerate(shots):
        yield f"without the cancel {shot}", tape, shots[:at] + shots[at + 1 :]
    for at, draw in enumerate(tape):
        changed = f"{draw.source} {draw.label!r} is 0 and not {draw.value}"
        yield changed, tape[:at] + tape[at + 1 :], shots


def _compared(passing: tuple[str, ...], failing: tuple[str, ...]) -> tuple[tuple[Sign, str], ...]:
    rows: list[tuple[Sign, str]] = []
    matcher = SequenceMatcher(None, passing, failing, autojunk=False)
    for kind, from_passing, to_passing, from_failing, to_failing in matcher.get_opcodes():
        if kind == "equal":
            rows += [(" ", line) for line in passing[from_passing:to_passing]]
        else:
            rows += [("-", line) for line in passing[from_passing:to_passing]]
            rows += [("+", line) for line in failing[from_failing:to_failing]]
    return tuple(rows)


def interleaving(run: Run) -> tuple[Move, ...]:
    """The steps of all tasks in their order."""
    waits = {(site.path, site.k): site for site in run.sites}
    moves = {}
    for site in run.sites:
        if site.last is not None:
            then = waits.get((site.path, site.k + 1))
            where = None if then is None else then.where
            moves[site.last] = Move(site.last, site.path, site.role, where)
    steps = sorted(moves)
    decisions: dict[int, list[Asked]] = {}
    landings: dict[int, list[Landing]] = {}
    for asked in run.asked:
        if asked.value and steps:
            decisions.setdefault(_row(steps, asked.step), []).append(asked)
    for landing in run.landings:
        shot = landing.shot
        at = waits.get((shot.path, shot.k))
        if at is not None and steps and landing.came_to != NOT_REACHED:
            step = moment_of(at, shot.mode, shot.step) // 2
            landings.setdefault(_row(steps, step), []).append(landing)
    return tuple(
        [
            replace(
                moves[step],
                decisions=tuple(decisions.get(step, ())),
                landings=tuple(landings.get(step, ())),
            )
            for step in steps
        ]
    )


def _row(steps: Sequence[int], step: int) -> int:
    """The first step of a task from `step` on, or the last there is."""
    return steps[min(bisect_left(steps, step), len(steps) - 1)]


def hottest(run: Run, most: int = 5) -> tuple[Busy, ...]:
    """The lines of code at which tasks waited most often, the most frequent first."""
    counts = Counter([(site.where, site.role) for site in run.sites if site.k])
    return tuple([Busy(where, role, n) for (where, role), n in counts.most_common(most)])
