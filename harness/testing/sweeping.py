"""Sweeps scenarios inside tests of pytest; what a sweep finds is the test's failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.errors import HarnessError, UsageError
from harness.core.ports import Build
from harness.explore.probe import Role, Whom
from harness.explore.sweep import SWEEP_BUDGET
from harness.explore.sweep_report import SweepMode
from harness.report.sweep import Sweep
from harness.runner.agents import Subject
from harness.runner.exploring import USUAL_MODES, replay, sweep
from harness.runner.scenario import Scenario
from harness.runner.token import Token, digest
from harness.testing.running import OnScenarios, rerun_line


class HarnessSweep(OnScenarios):
    """Sweeps scenarios for one test; the value of the fixture `harness_sweep`."""

    def __init__(self, node: pytest.Item, build: Build | str | None) -> None:
        super().__init__(node, build)
        self._token: str | None = node.config.getoption("harness_replay")
        self._replayed = False

    def __call__(
        self,
        scenario: str | Path | Scenario,
        agent: Build | Subject | str | None = None,
        *,
        modes: Sequence[SweepMode] = USUAL_MODES,
        roles: Sequence[Role] | None = None,
        whom: Sequence[Whom] | None = None,
        budget: int | None = None,
    ) -> Sweep:
        """Cancel `scenario` on `agent` at every point there is, and give what came of it.

        `scenario` and `agent` are as for `harness_run`, the rest as for `harness.sweep`; `budget`
        None is what the setting `harness_sweep_budget` says. The test fails where the sweep does
        not pass, and the last line of what it says replays the failure in this test.
        """
        problem: HarnessError | None = None
        try:
            read = self._read(scenario)
            subject = self._subject(agent, read)
            self._replay(read, subject)
            most = self._budget() if budget is None else budget
            swept = sweep(read, subject, modes=modes, roles=roles, whom=whom, budget=most)
        except HarnessError as error:
            problem = error
        if problem is not None:  # not while it is handled: it would be shown as the cause
            pytest.fail(str(problem), pytrace=False)
        if not swept.ok:
            pytest.fail(self._failure(swept), pytrace=False)
        return swept

    def finish(self) -> None:
        """Fail where a token was given that this test has no scenario for."""
        if self._token is not None and not self._replayed:
            pytest.fail(
                "--harness-replay: the token was made of another scenario than this test sweeps; "
                "choose the test that gave it, or the file as it was then",
                pytrace=False,
            )

    def _replay(self, scenario: Scenario, subject: Subject) -> None:
        """Replay the token that pytest was given, if it is this scenario's, before the sweep."""
        if self._token is None or Token.parse(self._token).scenario != digest(scenario):
            return
        self._replayed = True
        replayed = replay(self._token, scenario, subject)
        if not replayed.ok:
            report = replace(replayed.report, rerun=self._rerun(self._token))
            pytest.fail(str(replace(replayed, report=report)), pytrace=False)

    def _budget(self) -> int:
        setting: str = self._node.config.getini("harness_sweep_budget")
        try:
            return int(setting.replace("_", "")) if setting else SWEEP_BUDGET.runs
        except ValueError:
            raise UsageError(
                f"harness_sweep_budget is {setting!r}; expected a number of runs, such as 2000"
            ) from None

    def _failure(self, swept: Sweep) -> str:
        """What was found, in a line that pytest's summary shows; then all of it, and last the line
        that replays the last failure in this test.
        """
        found = [group.key.partition(":")[0] for group in swept.report.failed]
        why = ", ".join(dict.fromkeys(found)) or swept.report.incomplete[0]
        failed = [replace(each, rerun=self._rerun(each.token)) for each in swept.failed]
        return f"{swept.status}: {why}\n{replace(swept, failed=tuple(failed))}"

    def _rerun(self, token: str) -> str:
        return f"{rerun_line(self._node)} --harness-replay {token}"
