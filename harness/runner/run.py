"""Runs one scenario on one agent and judges it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.core.choices import Choices
from harness.core.events import RunStopped
from harness.core.ports import Build
from harness.core.trace import Trace
from harness.core.verdict import Accepted, Verdict, Violation
from harness.invariants import INVARIANTS
from harness.invariants.invariant import Facts, Invariant
from harness.invariants.judge import judge
from harness.invariants.relations import RELATIONS
from harness.runner.agents import Subject, at_level, subject_for
from harness.runner.apart import warn_unless_apart
from harness.runner.consequences import without_consequences
from harness.runner.drive import Play, Played
from harness.runner.expect import check, mismatches
from harness.runner.files.load import read
from harness.runner.result import Failure, Result
from harness.runner.scenario import Allow, Scenario
from harness.transport.cassettes.form import Cassette

OF_TOOLS = (
    "EFFECT-ONCE",
    "EFFECT-KEPT",
    "COMPLETE-ONLY",
    "ORDER",
    "SLOT",
    "CALL-TRUTH",
    "UNKNOWN-TOOL",
    "BAD-ARGS",
    "RESULT-TOTAL",
    "FAIL-VISIBLE",
    "COUNT",
    "CAP",
    "SERIAL",
    "OUTCOME-TRUTH",
    "SIBLING",
)
"""The invariants that judge what tools did."""

BETWEEN_RUNS = tuple([relation.id for relation in RELATIONS])
"""What one run cannot show; harness/runner/relate.py judges it."""


def run(
    scenario: Scenario | str | Path,
    agent: Build | Subject | str | None = None,
    choices: Choices | None = None,
    *,
    level: str = "model",
    cassette: Cassette | str | Path | None = None,
) -> Result:
    """Run `scenario` on `agent`: the same inputs give the same trace, in any process.

    `scenario` may be a file's path, or a text of several lines that is one; `agent` the function
    that builds it, its name as `package.module:build`, the name of a reference loop, None for the
    one loop that the scenario names, or a subject. `choices` decide what the scenario leaves open
    (None: the ordinary case of everything). `level` is where the agent meets its model: ``model``,
    ``http`` or ``server``, the last two also with a protocol, as in ``http:anthropic``
    (harness/runner/levels.py). With a `cassette`, or its file, the replies are those that were
    recorded, at the recorded times, over HTTP in its protocol unless `level` says otherwise; the
    scenario says what the user does and what tools do. UsageError where `agent` does not give an
    agent, or there is no such level; a damaged cassette is told of with file and line.
    """
    case = read(scenario)
    subject = subject_for(agent, case)
    if cassette is None:
        subject = at_level(subject, level)
    else:
        from harness.runner.cassettes.subject import on_cassette

        subject = on_cassette(subject, cassette, level)
    drawn = choices or Choices()
    played = _play(case, subject, drawn)
    drawn.check_used()
    warn_unless_apart(subject, played.trace)
    found = judge_trace(case, subject, played.trace)
    return without_consequences(judge_run(case, subject, played, found))


def _play(case: Scenario, subject: Subject, drawn: Choices) -> Played:
    if subject.process is None:
        return Play(case, subject.build, drawn, cassette=subject.cassette).play()
    from harness.runner.process import ProcessPlay

    return ProcessPlay(case, subject.process).play()


def judge_trace(scenario: Scenario, subject: Subject, trace: Trace) -> Verdict:
    """What the invariants find in a trace of `scenario` on `subject`."""
    return judge(trace, _invariants(subject), facts_of(scenario, subject))


def facts_of(scenario: Scenario, subject: Subject) -> Facts:
    """What is known of each run of `scenario` on `subject`."""
    return Facts(
        scenario.budget.over(subject.budget),
        frozenset([spec.name for spec in scenario.tools]),
        recorded=subject.cassette is not None,
    )


def _invariants(subject: Subject) -> Sequence[Invariant]:
    """Those that can judge `subject`; nobody sees what tools of a program's own do."""
    if subject.process is None:
        return INVARIANTS
    return [each for each in INVARIANTS if each.id not in OF_TOOLS]


def judge_run(
    scenario: Scenario, subject: Subject, played: Played, found: Verdict, *, expect: bool = True
) -> Result:
    """The result of a scenario that was played on `subject`, where the invariants found `found`.

    What the scenario itself expects counts only where `expect` says so.
    """
    allow = tuple([each for each in scenario.allow if each.invariant not in BETWEEN_RUNS])
    broken, accepted, missed = sort_out(found.violations, allow, subject.policies)
    hidden = () if subject.process is None else ("tools",)
    trace, policies = played.trace, subject.policies
    unexpected, unseen = check(scenario, trace, policies, hidden) if expect else ([], [])
    return Result(
        scenario,
        subject,
        played.outcomes,
        played.trace,
        Verdict(broken, (*found.not_judged, *_unjudged(subject), *unseen), accepted),
        (
            *stops(played.trace, found.violations),
            *mismatches(played.trace),
            *played.failures,
            *unexpected,
            *missed,
        ),
    )


def _unjudged(subject: Subject) -> tuple[str, ...]:
    """What no single run of `subject` can show."""
    return BETWEEN_RUNS if subject.process is None else (*OF_TOOLS, *BETWEEN_RUNS)


def stops(trace: Trace, violations: tuple[Violation, ...]) -> Iterator[Failure]:
    """A run that stopped before its scenario did, unless an invariant has said so."""
    told = {violation.entry for violation in violations}
    for index, entry in enumerate(trace.entries):
        event = entry.event
        if isinstance(event, RunStopped) and index not in told:
            yield Failure("run stopped", f"the run stopped: {event.why}", entry=index)


def sort_out(
    violations: tuple[Violation, ...], allow: tuple[Allow, ...], policies: Sequence[str]
) -> tuple[tuple[Violation, ...], tuple[Accepted, ...], list[Failure]]:
    """What is broken, what of it is accepted, and each acceptance that nothing came of.

    `policies` is what an acceptance may call the policy that was played.
    """
    known = {each.invariant: each for each in allow if each.policy in (None, *policies)}
    broken = tuple([each for each in violations if each.invariant not in known])
    accepted = tuple(
        [
            Accepted(each, known[each.invariant].why)
            for each in violations
            if each.invariant in known
        ]
    )
    found = {each.violation.invariant for each in accepted}
    missed = [
        Failure(
            "unused allow",
            f"{name} is allowed ({each.why}), but was not found; remove the entry of `allow`",
            line=each.line,
        )
        for name, each in known.items()
        if name not in found
    ]
    return broken, accepted, missed
