"""Generated scenarios of the state-machine loop are played clean, and show what matters of it.

A provider that wants its roles to alternate would not take all of them: this loop sends what the
user said beside what it says in the user's place, and drops replies that were cut. That is a soft
finding, and the only one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from harness.core.events import (
    CancelDelivered,
    Compacted,
    FaultInjected,
    RequestSent,
    ResultSynthesized,
    Salvaged,
    StateEntered,
    ToolEnded,
    ToolStarted,
)
from harness.core.outcome import outcome_name
from harness.core.trace import Trace
from harness.loops.fsm.agent import KIND
from harness.loops.fsm.loop import SUPERVISE, WAIT
from harness.loops.fsm.prompts import REMINDER_TAG
from harness.runner.agents import find_loop, loop_subject
from harness.runner.result import Result
from harness.runner.run import run
from harness.testing.generated import check_generated
from tests.runner.scenarios import bare
from tests.testing.pool import SIZE, pool
from tests.testing.test_generated_scenarios import reread

LEAST = {
    **dict.fromkeys(("completed", "cancelled", "error"), 0.01),
    **dict.fromkeys(
        ("cancel", "fault", "parallel calls", "synthesized result", "nudge", "compaction"), 0.03
    ),
    **dict.fromkeys(("sub-agent", "plan mode"), 0.03),
}
"""In how many scenarios, at least, each of these must happen."""
SOME = 400
"""How many are read from their files too, and played under the recorded policy."""
KNOWN = {
    **KIND.known["reference"],
    "BAD-ARGS": "Arguments that are no object count as an empty one.",
    "COMPACT-HONEST": "A summary of white space is taken for one.",
    "COMPACT-PROGRESS": "A context that stays too full is compacted again, without limit.",
    "DURABLE": "A round that is cut off is dropped, and all behind it.",
    "FAIL-VISIBLE": "Calls with one id share the last result.",
    "ONE-TERMINAL": "A cancel ends no wait for a tool.",
    "RESULT-TOTAL": "An empty result goes back empty.",
    "ROUNDTRIP": "Signed reasoning does not go back.",
    "SHAPE": "A reply that says nothing goes back.",
    "SLOT": "Calls with one id share the last result.",
    "TERMINAL-TRUTH": "SUPERVISE sees no cancel, and a torn reply counts as whole.",
    "UNKNOWN-TOOL": "Calls with one id share the last result.",
}
"""What generated scenarios may break under the recorded policy, each with the reason."""


@cache
def results() -> tuple[Result, ...]:
    """Each scenario, run under the safe policy."""
    return tuple([check_generated(scenario) for scenario in pool("fsm")])


@cache
def recorded() -> tuple[Result, ...]:
    """The first of them under the recorded policy."""
    some = pool("fsm")[:SOME]
    return tuple([run(each, loop_subject(KIND, each, "reference")) for each in some])


def seen(result: Result) -> set[str]:
    """What happened in a run that a tester wants to have happened, the runner's own turn aside."""
    own = result.outcomes[: len(result.scenario.turns)]
    return {*map(outcome_name, own), *happened(result.trace)}


def happened(trace: Trace) -> Iterator[str]:
    running, state = 0, ""
    for entry in trace:
        match entry.event:
            case CancelDelivered():
                yield "cancel"
            case FaultInjected():
                yield "fault"
            case ResultSynthesized():
                yield "synthesized result"
            case Compacted(failed=None):
                yield "compaction"
            case Salvaged():
                yield "salvage"
            case RequestSent(conversation="helper"):
                yield "sub-agent"
            case RequestSent(added=added):
                if any(message.text.startswith(REMINDER_TAG) for message in added):
                    yield "plan mode"
            case StateEntered(state=entered):
                if (state, entered) == (SUPERVISE, WAIT):
                    yield "nudge"
                state = entered
            case ToolStarted():
                running += 1
                if running > 1:
                    yield "parallel calls"
            case ToolEnded():
                running -= 1


def shares(results: tuple[Result, ...]) -> dict[str, float]:
    counts = Counter(what for result in results for what in seen(result))
    return {what: count / len(results) for what, count in sorted(counts.items())}


def test_they_are_read_from_their_files_as_they_were() -> None:
    for scenario in pool("fsm")[:SOME]:
        assert bare(reread(scenario)) == bare(scenario)


def test_they_break_no_invariant_but_that_roles_do_not_alternate() -> None:
    broken = [one for r in results() for one in r.verdict.violations]
    assert {(one.invariant, one.severity) for one in broken} == {("SHAPE", "soft")}
    assert all("in a row" in one.message for one in broken)


def test_nobody_is_told_to_wait_who_asks_again_at_once() -> None:
    beside = [reply for each in pool("fsm") for aside in each.also for reply in aside.replies]
    assert any(reply.fault is not None for reply in beside)
    assert not any(getattr(reply.fault, "retry_after", None) for reply in beside)


def test_each_thing_that_this_loop_does_is_among_them() -> None:
    found = shares(results())
    print(f"\nof {SIZE} generated scenarios of the state-machine loop")
    for what, share in found.items():
        print(f"  {what:20} {share:6.1%}  (at least {LEAST.get(what, 0):.0%})")
    short = {what: found.get(what, 0) for what in LEAST if found.get(what, 0) < LEAST[what]}
    assert not short


def test_under_the_recorded_policy_they_break_what_is_known_and_rounds_are_left_out() -> None:
    broken = Counter(
        name for r in recorded() for name in {v.invariant for v in r.verdict.violations}
    )
    salvaged = shares(recorded())["salvage"]
    print(f"\nof {SOME} under the recorded policy, {salvaged:.1%} leave a round out; broken:")
    for name, count in sorted(broken.items()):
        print(f"  {name:20} {count / SOME:6.1%}")
    assert not broken.keys() - KNOWN.keys()
    assert salvaged >= 0.03


@pytest.mark.parametrize("loop", ["turn", "fsm"])
def test_those_for_both_loops_are_played_clean_on_both(loop: str) -> None:
    for scenario in pool("turn", "fsm", size=200):
        check_generated(scenario, loop_subject(find_loop(loop), scenario))
