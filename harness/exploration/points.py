"""Where a run can be cancelled, by rule.

- ``start`` is before a task's first step (k 0), where it takes one.
- ``early`` is right after each suspension.
- ``late`` is before a task resumes, where it waited for something: a bare yield loses nothing.
- ``mid`` is after every other step between a suspension and its end (the run's end without one).
- An agent, or a turn, can be told only while the turn is played, and it is told at a moment: sites
  that share the moment are one point. A task is told at its own sites, and the turn's task is told
  once where both ``turn`` and ``task`` would tell it. A thread itself cannot be told anything.
- A second cancel goes to whom the first went to, within the same turn, at each later moment of its
  sites in the run that the first has changed; ``mid`` moments are not tried a second time.

What a mode lacks at a site is told with the reason, and does not count as a point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from harness.exploration.probe import Mode, Role, Run, Shot, Site, Whom

AGAIN: tuple[Mode, ...] = ("start", "early", "late")
"""The modes of a second cancel."""


class Point(Struct, frozen=True):
    """A shot that a run can take, the role of its site's task, and when and where it is.

    Moments are in order: 2s is before the step s, 2s + 1 after it.
    """

    shot: Shot
    role: Role
    turn: int
    where: str
    moment: int


class Absent(Struct, frozen=True):
    """A mode that a site lacks, and why."""

    site: Site
    mode: Mode
    whom: Whom
    why: str


def lacks(site: Site, mode: Mode, steps: int) -> str | None:
    """Why `mode` does not exist at `site` in a run of `steps` steps; None where it does."""
    if mode == "start":
        if site.k:
            return "the task has begun"
        return "the task never begins" if site.last is None else None
    if site.k == 0:
        return "the task has not begun"
    if mode == "late":
        if site.last is None:
            return "the task never resumes"
        return None if site.waits else "the task only yields, and waits for nothing"
    if mode == "mid" and not mid_steps(site, steps):
        return "no other step comes while the task waits"
    return None


def mid_steps(site: Site, steps: int) -> range:
    """The other steps that come while the task waits at `site`, in a run of `steps` steps."""
    return range(site.first + 1, steps + 1 if site.last is None else site.last)


def moment_of(site: Site, mode: Mode, step: int | None = None) -> int:
    """When a shot at `site` comes; see `Point.moment`."""
    if mode == "early":
        return 2 * site.first + 1
    if mode == "mid":
        assert step is not None, "a mid shot comes after a step"
        return 2 * step + 1
    assert site.last is not None, f"{site.path}#{site.k} has no {mode}"
    return 2 * site.last


class Survey:
    """The points of one run, for shots at tasks of some roles, told to some."""

    def __init__(self, run: Run, whom: Sequence[Whom], roles: Sequence[Role]) -> None:
        self.absent: list[Absent] = []
        """What was lacking among all that `points` was asked for."""
        self._steps = run.steps
        self._sites = [site for site in run.sites if site.role in roles]
        self._whom = whom
        self._turns = _turns(run.sites)
        self._taken: set[tuple[str, int]] = set()
        """Who is told when, by the points given so far."""

    def points(self, modes: Iterable[Mode]) -> Iterator[Point]:
        """The points that exist, mode by mode, in the order in which the run comes to the sites.

        A point that was given under another name is not given again.
        """
        for mode in modes:
            for site in self._sites:
                for whom in self._whom:
                    why = self._lacks(site, mode, whom)
                    if why is None:
                        yield from self._at(site, mode, whom)
                    else:
                        self.absent.append(Absent(site, mode, whom, why))

    def again(self, first: Point) -> Iterator[Point]:
        """The points for a second cancel, where the first was `first` and made this run."""
        whom, path = first.shot.whom, first.shot.path
        own = [
            site
            for site in self._sites
            if (site.path == path if whom == "task" else site.turn == first.turn)
        ]
        for mode in AGAIN:
            for site in own:
                if self._lacks(site, mode, whom) is None:
                    for point in self._at(site, mode, whom):
                        if point.moment > first.moment:
                            yield point

    def _lacks(self, site: Site, mode: Mode, whom: Whom) -> str | None:
        why = lacks(site, mode, self._steps)
        if why is None and whom == "task" and site.thread:
            why = "it is a thread"
        if why is not None or whom == "task":
            return why
        if not site.turn:
            return "no turn is played"
        step = site.first + 1 if mode == "mid" else None
        if moment_of(site, mode, step) > self._turn(site).end:
            return "the turn has ended"
        return None

    def _at(self, site: Site, mode: Mode, whom: Whom) -> Iterator[Point]:
        whose, end = site.path, math.inf
        if whom != "task":
            turn = self._turn(site)
            whose, end = turn.path if whom == "turn" else "the agent", turn.end
        for step in mid_steps(site, self._steps) if mode == "mid" else (None,):
            moment = moment_of(site, mode, step)
            if moment > end:
                return
            if (whose, moment) not in self._taken:
                self._taken.add((whose, moment))
                shot = Shot(site.path, site.k, mode, whom, step)
                yield Point(shot, site.role, site.turn, site.where, moment)

    def _turn(self, site: Site) -> _Turn:
        return self._turns.get(site.turn) or _Turn(f"turn {site.turn}", math.inf)


class _Turn(Struct):
    """The task that plays a turn, and the last moment at which it can be told."""

    path: str
    end: float


def _turns(sites: Sequence[Site]) -> dict[int, _Turn]:
    """The turns of a run, by number."""
    turns: dict[int, _Turn] = {}
    for site in sites:
        if site.role == "turn" and site.turn:
            end = math.inf if site.last is None else 2 * site.last
            turn = turns.setdefault(site.turn, _Turn(site.path, end))
            turn.end = max(turn.end, end)
    return turns
