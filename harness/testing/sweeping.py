"""Sweeps scenarios inside tests of pytest; what a sweep finds is the test's failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.errors import HarnessError
from harness.core.ports import Build
from harness.exploration.probe import Role, Whom
from harness.exploration.sweep import SWEEP_BUDGET
from harness.report.sweep import Sweep
from harness.runner.agents import Subject
from harness.runner.exploring import USUAL_MODES, Modes, sweep
from harness.runner.functions.subject import Factory
from harness.runner.scenario import Scenario
from harness.testing.replaying import Replaying, headline


class HarnessSweep(Replaying):
    """Sweeps scenarios for one test; the value of the fixture `harness_sweep`."""

    def __call__(
        self,
        scenario: str | Path | Scenario | Factory,
        agent: Build | Subject | str | None = None,
        *,
        allow: Sequence[str] = (),
        modes: Modes = USUAL_MODES,
        roles: Sequence[Role] | Role | None = None,
        whom: Sequence[Whom] | Whom | None = None,
        budget: int | None = None,
        level: str | None = None,
    ) -> Sweep:
        """Cancel `scenario` on `agent` at every point there is, and give what came of it.

        `scenario`, `agent` and `level` are as for `harness_run`, or a function and None, the
        rest as for `harness.sweep`; `budget`
        None is what the setting `harness_sweep_budget` says. The test fails where the sweep does
        not pass, and the last line of what it says replays the failure in this test.
        """
        problem: HarnessError | None = None
        try:
            what, subject = self._target(scenario, agent, level)
            self._replay(what, subject, allow)
            if budget is None:
                budget = self._setting(
                    "harness_sweep_budget",
                    int,
                    SWEEP_BUDGET.runs,
                    "a number of runs, such as 2000",
                )
            swept = sweep(
                what, subject, allow=allow, modes=modes, roles=roles, whom=whom, budget=budget
            )
        except HarnessError as error:
            problem = error
        if problem is not None:  # not while it is handled: it would be shown as the cause
            pytest.fail(str(problem), pytrace=False)
        if not swept.ok:
            pytest.fail(self._failure(swept), pytrace=False)
        return swept

    def _failure(self, swept: Sweep) -> str:
        """What was found, in a line that pytest's summary shows; then all of it, and last the line
        that replays the last failure in this test.
        """
        keys = [group.key for group in swept.report.failed]
        why = headline(swept.status, keys, next(iter(swept.report.incomplete), ""))
        failed = [replace(each, rerun=self._rerun(each.token)) for each in swept.failed]
        return f"{why}\n{replace(swept, failed=tuple(failed))}"
