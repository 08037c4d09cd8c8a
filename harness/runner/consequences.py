"""What is wrong with a run, without what only follows from something else that is told."""

from __future__ import annotations

from msgspec.structs import replace

from harness.core.events import RequestMissed, RunStopped, TurnEnded, TurnStarted
from harness.core.outcome import Error
from harness.core.trace import Trace
from harness.core.verdict import Violation
from harness.runner.result import Failure, Result

_WANTED = ("expectation", "unused reply", "cancel did not fire")
"""The failures that say that something did not happen."""


def without_consequences(result: Result) -> Result:
    """The result without what a turn did not do any more: since the run was stopped, or since the
    agent had asked for what the scenario does not have, and the turn ended in that error.

    A turn that left the simulation may have ended, in an error that is not its own. The cause
    always stays, as a failure or as what an invariant found; where a scenario allows that the run
    stops, all counts.
    """
    failed = {each.turn for each in result.failures if _ended_its_turn(each, result)}
    failed |= _turns_that_missed(result.trace)
    failures = [
        each for each in result.failures if not (each.kind == "expectation" and each.turn in failed)
    ]
    return _without_the_stops(replace(result, failures=tuple(failures)))


def _ended_its_turn(failure: Failure, result: Result) -> bool:
    """Whether the scenario lacks what was asked for, and that was the end of the turn."""
    if failure.kind != "mismatch" or failure.turn is None or failure.turn > len(result.outcomes):
        return False
    outcome = result.outcomes[failure.turn - 1]
    return isinstance(outcome, Error) and failure.message.startswith(f"{outcome.kind}: ")


def _turns_that_missed(trace: Trace) -> set[int | None]:
    """The turns in which a cassette had nothing for a request."""
    turn, found = None, set[int | None]()
    for entry in trace.entries:
        if isinstance(entry.event, TurnStarted):
            turn = entry.event.turn
        elif isinstance(entry.event, RequestMissed):
            found.add(turn)
    return found


def _without_the_stops(result: Result) -> Result:
    if result.trace.stop is None:
        return result
    at, stop = result.trace.stop
    shown = {each.entry for each in result.failures}
    shown.update(each.entry for each in result.verdict.violations)
    if at not in shown:
        return result
    cut, ended = _cut(result.trace, stop)
    failures = [each for each in result.failures if not _follows(each, cut)]
    violations = [each for each in result.verdict.violations if not _at_its_end(each, cut, ended)]
    verdict = replace(result.verdict, violations=tuple(violations))
    return replace(result, failures=tuple(failures), verdict=verdict)


def _cut(trace: Trace, stop: RunStopped) -> tuple[int, int | None]:
    """The first turn that the stop cut short, and the entry of its end, where it has one."""
    turn, ended = 0, None
    for index, entry in enumerate(trace.entries):
        match entry.event:
            case TurnStarted(turn=turn):
                ended = None
            case TurnEnded():
                ended = index
            case _:
                pass
    left = stop.reason == "out_of_simulation"
    return (turn, ended) if ended is None or left else (turn + 1, None)


def _follows(failure: Failure, cut: int) -> bool:
    """Whether a failure says no more than that something did not come about any more."""
    if failure.kind == "unused allow":
        return True
    return failure.kind in _WANTED and failure.turn is not None and failure.turn >= cut


def _at_its_end(violation: Violation, cut: int, ended: int | None) -> bool:
    """Whether a violation is of how a turn ended that had left the simulation."""
    return ended is not None and violation.turn == cut and violation.entry == ended
