"""What was recorded and what is asked for are the same."""

from __future__ import annotations

from harness.core.events import InteractionUnused, RequestMissed, RunStopped, TurnStarted
from harness.core.trace import Entry, Trace
from harness.core.verdict import Verdict
from harness.invariants.invariant import Facts
from harness.invariants.judge import judge
from harness.invariants.recordings import Miss

LEFT = InteractionUnused(2, "POST /v1/messages (line 40)")


def verdict(
    *events: RequestMissed | InteractionUnused | RunStopped, recorded: bool = True
) -> Verdict:
    entries = [Entry(0, "", event) for event in (TurnStarted(1, "Go."), *events)]
    return judge(Trace(entries), [Miss], Facts(recorded=recorded))


def test_it_is_judged_on_cassettes_only() -> None:
    assert verdict() == Verdict((), ())
    assert verdict(recorded=False).not_judged == ("MISS",)


def test_the_first_request_that_was_not_recorded_is_told() -> None:
    [found] = verdict(RequestMissed("no such"), RequestMissed("another"), LEFT).violations
    assert (found.message, found.entry, found.turn, found.severity) == ("no such", 1, 1, "hard")


def test_what_was_never_asked_for_is_told_once() -> None:
    [found] = verdict(LEFT).violations
    assert found.message == (
        "the cassette's POST /v1/messages (line 40), interaction 2, was never asked for; see what "
        "the agent does otherwise than when it was recorded, or record all anew (harness record: "
        "--mode all)"
    )
    [found] = verdict(LEFT, InteractionUnused(3, "POST /v1/messages"), LEFT).violations
    assert ", was never asked for, nor were 2 more behind it; see" in found.message


def test_a_run_that_stopped_could_not_ask_for_more() -> None:
    assert verdict(RunStopped("deadlock", "nothing can go on"), LEFT).violations == ()
