"""Explores scenarios inside tests of pytest; what a search finds is the test's failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.errors import HarnessError
from harness.core.ports import Build
from harness.exploration.budget import BUDGET
from harness.report.search import Exploration
from harness.runner.agents import Subject
from harness.runner.exploring import explore
from harness.runner.functions.subject import Factory
from harness.runner.scenario import Scenario
from harness.sim.orders import Order
from harness.testing.replaying import Replaying, headline


class HarnessExplore(Replaying):
    """Explores scenarios for one test; the value of the fixture `harness_explore`."""

    def __call__(  # noqa: PLR0913 - an argument for each thing that can be asked of a search
        self,
        scenario: str | Path | Scenario | Factory,
        agent: Build | Subject | str | None = None,
        *,
        allow: Sequence[str] = (),
        order: Order = "completions",
        strategy: str = "auto",
        seed: int | None = None,
        runs: int | None = None,
        seconds: float | None = None,
        cancels: int = 0,
        goals: Sequence[str] = (),
        faults: bool = False,
        keep_going: bool = False,
        level: str | None = None,
    ) -> Exploration:
        """Run `scenario` on `agent` in as many ways as the budget allows, and give what was found.

        `scenario`, `agent` and `level` are as for `harness_run`, or a function and None, the
        rest as for `harness.runner.exploring.explore`; `seed`,
        `runs` and `seconds` None are what the settings `harness_explore_seed`,
        `harness_explore_runs` and `harness_explore_seconds` say. The test fails where the search
        does not pass, and the last line of what it says replays the failure in this test.
        """
        problem: HarnessError | None = None
        try:
            what, subject = self._target(scenario, agent, level)
            self._replay(what, subject, allow)
            explored = explore(
                what,
                subject,
                allow=allow,
                order=order,
                strategy=strategy,
                seed=self._number("seed", 0) if seed is None else seed,
                runs=self._number("runs", BUDGET.runs) if runs is None else runs,
                seconds=self._seconds() if seconds is None else seconds,
                cancels=cancels,
                goals=goals,
                faults=faults,
                keep_going=keep_going,
            )
        except HarnessError as error:
            problem = error
        if problem is not None:  # not while it is handled: it would be shown as the cause
            pytest.fail(str(problem), pytrace=False)
        if not explored.ok:
            pytest.fail(self._failure(explored), pytrace=False)
        return explored

    def _number(self, name: str, default: int) -> int:
        return self._setting(
            f"harness_explore_{name}", int, default, "a whole number, such as 2000"
        )

    def _seconds(self) -> float:
        most = BUDGET.seconds or 0.0
        return self._setting("harness_explore_seconds", float, most, "a number of seconds")

    def _failure(self, explored: Exploration) -> str:
        """What was found, in a line that pytest's summary shows; then all of it, and last the line
        that replays the last failure in this test.
        """
        keys = [one.key for one in explored.report.found]
        why = headline(explored.status, keys, next(iter(explored.report.incomplete), ""))
        failed = [replace(each, rerun=self._rerun(each.token)) for each in explored.failed]
        left = explored.open
        if left is not None and left.rerun:
            left = replace(left, rerun=self._rerun(left.token))
        return f"{why}\n{replace(explored, failed=tuple(failed), open=left)}"
