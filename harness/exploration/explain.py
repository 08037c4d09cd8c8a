"""What shows why a run went as it did: who ran when, where it was busy, who waits for whom."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from harness.exploration.points import moment_of
from harness.exploration.probe import NOT_REACHED, Asked, Landing, Role, Run, Waiting


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


def circle(left: Sequence[Waiting]) -> tuple[str, ...]:
    """The paths of tasks that wait for one another in a circle; none where nobody does so."""
    awaits = {each.path: each.awaits for each in left}
    done: set[str] = set()
    for start, others in awaits.items():
        trail, todo = [start], [iter(others)]
        while todo:
            path = next(todo[-1], None)
            if path is None:
                todo.pop()
                done.add(trail.pop())
            elif path in trail:
                return tuple(trail[trail.index(path) :])
            elif path not in done:
                trail.append(path)
                todo.append(iter(awaits.get(path, ())))
    return ()
