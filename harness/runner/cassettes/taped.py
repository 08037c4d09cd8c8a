"""A run of a scenario that is recorded while it goes on."""

from __future__ import annotations

from harness.core.choices import Choices
from harness.core.ports import Build
from harness.core.trace import Trace
from harness.runner.drive import Play
from harness.runner.scenario import Scenario
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.recording import recorded


def taped(scenario: Scenario, build: Build) -> tuple[Trace, Cassette]:
    """Run a scenario, and keep all that goes over HTTP, at its virtual times."""
    play = Play(scenario, build, Choices())
    taken: list[Interaction] = []
    play.env.answer = recorded(play.env.answer, taken.append, play.kernel.now)
    trace = play.play().trace
    taken.sort(key=lambda each: each.begun)
    return trace, Cassette(interactions=tuple(taken), source="a scenario")
