"""Sweeps scenarios inside tests of pytest; what a sweep finds is the test's failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.errors import HarnessError, NoPoints
from harness.core.ports import Build
from harness.exploration.budget import Means
from harness.exploration.probe import Role, Whom
from harness.exploration.sweep import SWEEP_BUDGET
from harness.report.sweep import SHOWN_MAX, Failed, Sweep, failed_text
from harness.runner.agents import Subject
from harness.runner.exploring import USUAL_MODES, Modes, sweep
from harness.runner.functions.subject import Factory
from harness.runner.scenario import Scenario
from harness.testing.replaying import Part, Replaying, headline
from harness.testing.results import note


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
                budget = self._most("harness_sweep_budget", SWEEP_BUDGET.runs)
            with self._many(what, subject) as many:
                swept = sweep(
                    what,
                    subject,
                    allow=allow,
                    modes=modes,
                    roles=roles,
                    whom=whom,
                    budget=budget,
                    means=Means(many),
                )
        except HarnessError as error:
            problem = error
        if isinstance(problem, NoPoints) and self._subresults.within:
            without = self._lost("sweep", problem, scenario)
            note(self._node, replace(without, passed_over=True))
            pytest.skip(str(problem))  # one of many, of which others have points
        if problem is not None:  # not while it is handled: it would be shown as the cause
            self._refuse("sweep", problem, scenario)
        failed = [replace(each, rerun=self._rerun(each.token)) for each in swept.failed]
        swept = replace(swept, failed=tuple(failed))
        note(self._node, swept)
        if not swept.ok:
            keys = [group.key for group in swept.report.failed]
            why = headline(swept.status, keys, next(iter(swept.report.incomplete), ""))
            parts = [
                Part(_name(each), failed_text(swept, each), each.rerun)
                for each in swept.failed[:SHOWN_MAX]
            ]
            self._fail(why, str(swept), parts, str(replace(swept, failed=())))
        return swept

    def each(
        self, folder: str | Path, agent: Build | Subject | str | None = None, **options: Any
    ) -> tuple[Sweep, ...]:
        """Sweep each scenario below a folder, as a sub-result each; the options are those of one.

        What has no point that the options name is passed over.
        """
        return self._each(folder, agent, lambda each, on: self(each, on, **options))


def _name(failed: Failed) -> str:
    """What a failure is called among the parts of a test."""
    kinds = dict.fromkeys([group.key.partition(": ")[0] for group in failed.groups])
    shots = failed.groups[0].shots
    at = f"cancelled at {' and '.join(map(str, shots))}" if shots else "without a cancel"
    return f"{', '.join(kinds)} {at}"
