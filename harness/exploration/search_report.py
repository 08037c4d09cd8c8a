"""What a search found, as plain data."""

from __future__ import annotations

from msgspec import Struct

from harness.core.choices import Tape
from harness.core.verdict import Status
from harness.core.wording import counted
from harness.exploration.probe import Run, Shot
from harness.exploration.shrink import Shrunk


class Found(Struct, frozen=True):
    """A finding: the run as it was found, what was made of it, and how many runs showed it."""

    message: str
    strategy: str
    at_run: int
    """The number of the run that showed it first, from 1."""
    deviations: int
    """How many choices were not 0 in that run."""
    shrunk: Shrunk
    count: int = 1

    @property
    def key(self) -> str:
        """What the finding is."""
        return self.shrunk.key


class Tolerated(Struct, frozen=True):
    """Something that is wrong and lets a run pass, as it was found first, and how often."""

    key: str
    message: str
    count: int


class Undecided(Struct, frozen=True):
    """A run of which nothing can be said: why, its number, from 1, and what makes it again."""

    why: str
    at_run: int
    tape: Tape
    shots: tuple[Shot, ...]


class Tried(Struct, frozen=True):
    """A strategy, its runs, and how many of them went a way that no run had gone before."""

    strategy: str
    runs: int
    new: int


class SearchReport(Struct, frozen=True):
    """A finished search.

    `distinct` counts schedules that differ. `undecided` is how many runs nothing can be said of:
    a limit ended them, and nothing was wrong by then.
    `deviations` is how many deviations from the ordinary run were tried in every combination, and
    `exhausted` says that there is no other schedule; where there are cancels, some always are left.
    `goals` are how many runs reached each goal, those that were asked for first, and `ended` says
    why there are no more runs.
    """

    name: str
    strategy: str
    seed: int
    cancels: int
    baseline: Run
    runs: int
    distinct: int
    tried: tuple[Tried, ...]
    found: tuple[Found, ...]
    tolerated: tuple[Tolerated, ...]
    undecided: int
    undecided_first: Undecided | None
    deviations: int
    exhausted: bool
    goals: tuple[tuple[str, int], ...]
    ended: str

    @property
    def status(self) -> Status:
        """FAIL where something was found, INCOMPLETE where a run or a goal was not to be had."""
        if self.found:
            return "FAIL"
        return "INCOMPLETE" if self.incomplete else "PASS"

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Why the search says less than it was meant to, a sentence each."""
        why = []
        first = self.undecided_first
        if first is not None:
            runs = counted(self.undecided, "run")
            why.append(f"{runs} not resolved; the first is run {first.at_run:,}: {first.why}")
        never = [goal for goal, count in self.goals if not count]
        if never:
            why.append(f"no run of {self.runs:,} came to: {', '.join(never)}")
        return tuple(why)
