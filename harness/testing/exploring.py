"""Explores scenarios inside tests of pytest; what a search finds is the test's failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from harness.core.errors import HarnessError
from harness.core.ports import Build
from harness.exploration.budget import BUDGET
from harness.report.search import Discovery, Exploration, discovery_text
from harness.report.sweep import SHOWN_MAX
from harness.runner.agents import Subject
from harness.runner.exploring import TIMED, explore
from harness.runner.functions.subject import Factory
from harness.runner.scenario import Scenario
from harness.sim.orders import Order
from harness.testing.replaying import Part, Replaying, headline
from harness.testing.results import note


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
            with self._many(what, subject, order, goals=goals, faults=faults, places=False) as many:
                explored = explore(
                    what,
                    subject,
                    allow=allow,
                    order=order,
                    strategy=strategy,
                    seed=self._seed() if seed is None else seed,
                    runs=self._most("harness_explore_runs", BUDGET.runs) if runs is None else runs,
                    seconds=self._seconds() if seconds is None else seconds,
                    cancels=cancels,
                    goals=goals,
                    faults=faults,
                    keep_going=keep_going,
                    means=replace(TIMED, many=many),
                )
        except HarnessError as error:
            problem = error
        if problem is not None:  # not while it is handled: it would be shown as the cause
            self._refuse("search", problem, scenario)
        explored = self._with_reruns(explored)
        note(self._node, explored)
        if not explored.ok:
            keys = [one.key for one in explored.report.found]
            why = headline(explored.status, keys, next(iter(explored.report.incomplete), ""))
            parts = [
                Part(_name(each), discovery_text(each), each.rerun)
                for each in explored.failed[:SHOWN_MAX]
            ]
            self._fail(why, str(explored), parts, str(replace(explored, failed=())))
        return explored

    def each(
        self, folder: str | Path, agent: Build | Subject | str | None = None, **options: Any
    ) -> tuple[Exploration, ...]:
        """Explore each scenario below a folder, a sub-result each; the options are those of one."""
        return self._each(folder, agent, lambda each, on: self(each, on, **options))

    def _seed(self) -> int:
        given = self._given("seed")
        expected = "a whole number, such as 2000"
        return self._setting("harness_explore_seed", int, 0, expected) if given is None else given

    def _seconds(self) -> float | None:
        """As many as the setting says; with a budget of pytest's own, runs alone count."""
        budgeted = self._given("budget") is not None
        most = float("inf") if budgeted else BUDGET.seconds or 0.0
        expected = "a number of seconds"
        seconds = self._setting("harness_explore_seconds", float, most, expected)
        return None if seconds == float("inf") else seconds

    def _with_reruns(self, explored: Exploration) -> Exploration:
        """With the lines that replay its runs in this test."""
        failed = [replace(each, rerun=self._rerun(each.token)) for each in explored.failed]
        left = explored.open
        if left is not None and left.rerun:
            left = replace(left, rerun=self._rerun(left.token))
        return replace(explored, failed=tuple(failed), open=left)


def _name(failed: Discovery) -> str:
    """What a failure is called among the parts of a test."""
    kinds = dict.fromkeys([found.key.partition(": ")[0] for found in failed.found])
    return f"{', '.join(kinds)} in run {failed.found[0].at_run:,}"
