"""What is explored: how reports call it, what runs it, what replays one of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.core.errors import UsageError
from harness.exploration.probe import ROLES, Probe
from harness.exploration.sweep_report import SweepReport
from harness.runner import token
from harness.runner.agents import Subject
from harness.runner.goals import Goals
from harness.runner.probe import AgentProbe
from harness.runner.scenario import Scenario
from harness.sim.orders import Order


class Explored(Protocol):
    """Something that can be run again and again, and be named in a token."""

    @property
    def name(self) -> str:
        """What is run."""
        ...

    @property
    def on(self) -> str:
        """What it is run on."""
        ...

    @property
    def digest(self) -> str:
        """Ten hexadecimal digits for what it means, as in a token."""
        ...

    def probe(
        self,
        order: Order = "fifo",
        *,
        goals: Sequence[str] = (),
        places: bool = True,
        keep_lines: bool = False,
    ) -> Probe:
        """What makes its runs; the options are those of `AgentProbe`."""
        ...

    def replay_line(self, token: str) -> str:
        """The command that replays `token`; where no command can, the call that does."""
        ...


class OnAgent:
    """A scenario on an agent."""

    def __init__(self, scenario: Scenario, subject: Subject) -> None:
        self.scenario = scenario
        self.subject = subject
        self.name = scenario.name
        self.on = subject.name
        self.digest = token.digest(scenario)

    def probe(
        self,
        order: Order = "fifo",
        *,
        goals: Sequence[str] = (),
        places: bool = True,
        keep_lines: bool = False,
    ) -> AgentProbe:
        """What makes its runs. UsageError for a goal that no run of the scenario can reach."""
        Goals(goals, [spec.name for spec in self.scenario.tools])
        return AgentProbe(
            self.scenario, self.subject, order, goals=goals, places=places, keep_lines=keep_lines
        )

    def replay_line(self, token: str) -> str:
        """The command that replays `token`; where no command can, the call that does."""
        scenario, subject = self.scenario, self.subject
        command = subject.command(scenario.source, "replay", token)
        return command or f"replay({token!r}, {scenario.name or 'the scenario'}, {subject.name})"

    def sweep_line(self, report: SweepReport) -> str:
        """The command that makes the sweep again; where no command can, the call that does."""
        scenario, subject = self.scenario, self.subject
        asked: dict[str, tuple[str, ...]] = {"modes": report.modes, "whom": report.whom}
        if set(report.roles) != set(ROLES):
            asked["roles"] = report.roles
        flags = [word for name, names in asked.items() for word in (f"--{name}", ",".join(names))]
        options = "".join([f", {name}={list(names)}" for name, names in asked.items()])
        command = subject.command(scenario.source, "sweep", flags=flags)
        return command or f"sweep({scenario.name or 'the scenario'}, {subject.name}{options})"

    def check_whom(self, whom: Sequence[str], probe: Probe) -> None:
        """UsageError where `whom` names the agent, and `probe` knows of no stop that it has."""
        if "agent" in whom and "agent" not in probe.whom:
            raise UsageError(
                f"{self.on} has no cancel(), so nobody can be told as 'agent'; give it one, or "
                f"choose of {', '.join(probe.whom)}"
            )

    def excuse(self, invariant: str) -> str | None:
        """Why it is tolerated that `invariant` is broken, None where it is not."""
        allowed = {
            each.invariant: each.why
            for each in self.scenario.allow
            if each.policy in (None, *self.subject.policies)
        }
        return {**self.subject.known, **allowed}.get(invariant)
