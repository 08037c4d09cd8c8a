"""Runs one scenario on one agent and judges it."""

from __future__ import annotations

from harness.core.choices import Choices
from harness.core.errors import UsageError
from harness.core.ports import Build
from harness.core.verdict import Verdict
from harness.invariants import INVARIANTS
from harness.invariants.invariant import Facts
from harness.invariants.judge import judge
from harness.runner.drive import CANCEL_DEADLINE, Play
from harness.runner.expect import check, mismatches
from harness.runner.result import Result
from harness.runner.scenario import Scenario

LEVELS = ("model",)

_FACTS = Facts(cancel_deadline=CANCEL_DEADLINE)


def run(
    scenario: Scenario,
    build: Build,
    choices: Choices | None = None,
    *,
    level: str = "model",
    loop: str = "",
) -> Result:
    """Run `scenario` on the agent that `build` makes: the same inputs give the same trace.

    `choices` decide what the scenario leaves open (None: the ordinary case of everything); `loop`
    is the name that reports give the agent. UsageError where `build` does not give an agent, or
    `level` is not one of `LEVELS`.
    """
    if level not in LEVELS:
        raise UsageError(f"level {level!r} is not known; known: {', '.join(LEVELS)}")
    drawn = choices or Choices()
    played = Play(scenario, build, drawn).play()
    drawn.check_used()
    verdict = judge(played.trace, INVARIANTS, _FACTS)
    unexpected, unseen = check(scenario, played.trace)
    return Result(
        scenario,
        loop or getattr(build, "__qualname__", repr(build)),
        played.outcomes,
        played.trace,
        Verdict(verdict.violations, (*verdict.not_judged, *unseen)),
        (*mismatches(played.trace), *played.failures, *unexpected),
    )
