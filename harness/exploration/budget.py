"""What a sweep or a search may take, how far it is, and whether it has to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from harness.core.errors import UsageError
from harness.exploration.attempts import Many

Clock: TypeAlias = Callable[[], float]
"""Seconds since an arbitrary point, for budgets in seconds."""


class Budget(Struct, frozen=True):
    """How many runs there may be, and how many seconds they may take (None: as many as they take).

    Seconds count only where `Means` has a clock.
    """

    runs: int = 10_000
    seconds: float | None = 30.0

    def __post_init__(self) -> None:
        if self.runs < 1 or (self.seconds is not None and not self.seconds > 0):
            raise UsageError(
                f"a budget of {self.runs} runs and {self.seconds} seconds leaves no room to run; "
                "give at least one run, and more than 0 seconds or None"
            )


BUDGET = Budget()
"""What a search may take if not told otherwise."""


class Progress(Struct, frozen=True):
    """How far it is: what is being tried, runs so far, runs as far as they are planned, findings
    of different kinds.
    """

    doing: str
    runs: int
    planned: int | None
    found: int


class Means(Struct, frozen=True):
    """How runs are made (None: one after the other), what measures the budget's seconds, and who
    is told after every run.
    """

    many: Many | None = None
    clock: Clock | None = None
    on_progress: Callable[[Progress], None] | None = None


MEANS = Means()
"""One run after the other, no clock, nobody to tell."""


class Meter:
    """Counts runs, tells of progress, and says when the budget is spent."""

    def __init__(self, budget: Budget, means: Means) -> None:
        self.runs = 0
        self.doing = "baseline"
        self.planned: int | None = None
        self.found = 0
        self._budget = budget
        self._clock = means.clock
        self._on_progress = means.on_progress
        self._start = 0.0 if means.clock is None else means.clock()

    def note_run(self) -> None:
        """Count a run."""
        self.runs += 1
        if self._on_progress is not None:
            self._on_progress(Progress(self.doing, self.runs, self.planned, self.found))

    def spent(self) -> str | None:
        """What of the budget is spent, None while there is some of everything."""
        budget = self._budget
        if self.runs >= budget.runs:
            return f"the budget of {budget.runs:,} runs is spent"
        if budget.seconds is None or self._clock is None:
            return None
        if self._clock() - self._start < budget.seconds:
            return None
        return f"the budget of {budget.seconds:g} s is spent, after {self.runs:,} runs"
