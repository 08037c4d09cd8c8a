"""Explores scenarios: cancels them at every point, and replays one run of all that were made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from harness.core.errors import NotDeterministic, UsageError
from harness.core.ports import Build
from harness.explore.budget import MEANS, Budget, Means
from harness.explore.probe import Role, Whom
from harness.explore.same import confirm, steady
from harness.explore.sweep import SWEEP_BUDGET
from harness.explore.sweep import sweep as sweep_probe
from harness.explore.sweep_report import SweepMode
from harness.report.replay import Replay
from harness.report.sweep import Sweep
from harness.runner.agents import Subject, agent_subject, find_loop, loop_subject
from harness.runner.evidence import evidence, replay_line
from harness.runner.load import read
from harness.runner.probe import AgentProbe
from harness.runner.run import subject_of
from harness.runner.scenario import Scenario
from harness.runner.token import Token

USUAL_MODES: tuple[SweepMode, ...] = ("start", "early", "late")
"""One cancel at each of its own moments of every task: the modes that grow with the run only."""


def sweep(
    scenario: Scenario | str | Path,
    agent: Build | Subject | str | None = None,
    *,
    modes: Sequence[SweepMode] = USUAL_MODES,
    roles: Sequence[Role] | None = None,
    whom: Sequence[Whom] | None = None,
    budget: int = SWEEP_BUDGET.runs,
    means: Means = MEANS,
) -> Sweep:
    """Run `scenario` on `agent`, cancelled at every point there is, and judge each run.

    `scenario` may be a file's path, or a text of several lines that is one; `agent` the function
    that builds it, its name as `package.module:build`, the name of a reference loop, or None for
    the one loop that the scenario names. `budget` is a number of runs. See docs/cancel-sweeps.md
    for the rest. NoPoints where there is nothing to cancel, NotDeterministic where the same run
    twice goes two ways, UsageError for names that are not known.
    """
    case = read(scenario)
    subject = subject_for(agent, case)
    runs = Budget(runs=budget, seconds=None)
    try:
        report = sweep_probe(AgentProbe(case, subject), modes, roles, whom, runs, means=means)
    except NotDeterministic:
        steady(AgentProbe(case, subject, keep_lines=True))  # says more: which line differs
        raise
    return Sweep(case.name, subject.name, report, evidence(report, case, subject))


def replay(
    token: str, scenario: Scenario | str | Path, agent: Build | Subject | str | None = None
) -> Replay:
    """Run `scenario` on `agent` exactly as `token` says, and judge the run as the sweep did.

    UsageError where the token is none, or was made of another scenario, under another Python, or
    on an agent that can be stopped in other ways; ReplayMismatch where its choices do not fit;
    NotDeterministic where the same run twice goes two ways.
    """
    said = Token.parse(token)
    case = read(scenario)
    said.check(case)
    subject = subject_for(agent, case)
    probe = AgentProbe(case, subject, keep_lines=True)
    for shot in said.shots:
        if shot.whom not in probe.whom:
            raise UsageError(
                f"the token's cancel {shot} calls the agent's own stop, but {subject.name} has no "
                "cancel(); run it on the agent that it was made on, or sweep again"
            )
    result, run = probe.play(said.tape, said.shots)
    confirm(probe, run, said.shots)
    shown = replace(result.report(), rerun=replay_line(str(said), case, subject))
    return Replay(shown, run)


def subject_for(agent: Build | Subject | str | None, scenario: Scenario) -> Subject:
    """What to run `scenario` on: a subject, the function that builds an agent, its name as
    `package.module:build`, a loop's name; None is the one loop that the scenario names.
    """
    if isinstance(agent, Subject):
        return agent
    if agent is None:
        if len(scenario.loops) != 1:
            named = f"the loops {', '.join(scenario.loops)}" if scenario.loops else "no loops"
            raise UsageError(
                f"{scenario.source or 'the scenario'} names {named}; say which agent to run it on: "
                "the function that builds one, its name as package.module:build, or a loop's name"
            )
        agent = scenario.loops[0]
    if not isinstance(agent, str):
        return subject_of(agent)
    return agent_subject(agent) if ":" in agent else loop_subject(find_loop(agent), scenario)
