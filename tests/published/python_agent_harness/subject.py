"""The published agent as a subject, set up as a scenario says."""

from __future__ import annotations

from collections.abc import Mapping

from harness.core.ports import Agent, Env
from harness.loops.fsm.agent import KIND
from harness.runner.agents import Subject, loop_config
from harness.runner.scenario import Scenario
from tests.subjects import published_agent

KNOWN: Mapping[str, str] = {
    "CANCEL": "1.5.3: what was being prepared is still done: a request, a title, a tool.",
    "EFFECT-KEPT": "1.5.3: a round that is cancelled is dropped with all that its tools did.",
    "RESUME": "1.5.3: a round whose calls have one id counts as answered when one of them is.",
}
"""What cancels are found to break in it, with the version and the reason."""


def published(scenario: Scenario) -> Subject:
    """The package for one scenario; what is expected of our recorded policy is expected of it."""
    settings = loop_config(KIND, scenario.config)

    def build(env: Env) -> Agent:
        return published_agent.build(env, settings)

    return Subject(
        "python-agent-harness 1.5.3",
        build,
        policy="reference",
        budget=KIND.budget(settings),
        known=KNOWN,
        loop=KIND.name,
    )
