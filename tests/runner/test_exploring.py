"""Sweeping and replaying from Python: what is accepted, what comes back, what is refused."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.core.choices import Draw
from harness.core.errors import NoPoints, NotDeterministic, ReplayMismatch, UsageError
from harness.core.messages import user
from harness.explore.budget import Means, Progress
from harness.explore.probe import Shot
from harness.loops import LOOPS
from harness.runner.agents import Subject, loop_subject
from harness.runner.exploring import replay, subject_for, sweep
from harness.runner.load import load_text
from harness.runner.token import Token, digest
from tests.subjects.hand_loop import HandLoop, MendedHandLoop

CASE = """\
about: Two tools, one of them slow.
loops: [turn]
tools:
  quick: {returns: "1", takes: 10ms}
  slow: {returns: "2", takes: 50ms}
turns:
  - user: Go.
    model:
      - calls: [quick, slow]
      - say: Gone.
"""
SCENARIO = load_text(CASE, "case.yaml")
EARLY = Shot("1.1", 1, "early", "turn")


class Stoppable(MendedHandLoop):
    """Has a stop of its own, which stops the turn."""

    async def turn(self, text: str | None) -> None:
        self.task = asyncio.current_task()
        await super().turn(text)

    def cancel(self) -> None:
        assert self.task is not None
        self.task.cancel()


def counting() -> object:
    """Builds agents of which each says something else than the one before."""
    numbers = itertools.count()

    class Counting(HandLoop):
        def request(self) -> object:
            return replace(super().request(), system=f"You are number {self.number}.")

    def build(env: object) -> Counting:
        agent = Counting(env)  # type: ignore[arg-type]
        agent.number = next(numbers)
        return agent

    return build


def token(*shots: Shot, tape: tuple[Draw, ...] = ()) -> str:
    return str(Token.of(digest(SCENARIO), tape, shots))


# --- sweep


def test_a_scenario_is_a_text_a_file_or_itself(tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(CASE, encoding="utf-8")
    reports = [
        sweep(given, MendedHandLoop, whom=["turn"]).report
        for given in (CASE, SCENARIO, file, str(file))
    ]
    assert {report.status for report in reports} == {"PASS"}
    assert len({report.points for report in reports}) == 1


def test_an_agent_is_a_function_a_subject_or_a_name() -> None:
    kind = LOOPS[0]
    assert subject_for(HandLoop, SCENARIO).name == "HandLoop"
    subject = Subject("mine", HandLoop)
    assert subject_for(subject, SCENARIO) is subject
    safe = loop_subject(kind, SCENARIO)
    for given in (None, "turn"):
        assert replace(subject_for(given, SCENARIO), build=safe.build) == safe
    named = subject_for("tests.subjects.hand_loop:HandLoop", SCENARIO)
    assert (named.build, named.options[0]) == (HandLoop, "--agent")


@pytest.mark.parametrize(
    ("loops", "says"), [((), "no loops"), (("turn", "other"), "the loops turn, other")]
)
def test_without_an_agent_the_scenario_names_one_loop(loops: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=f"case.yaml names {says}; say which agent to run it on"):
        sweep(replace(SCENARIO, loops=loops))
    with pytest.raises(UsageError, match=f"the scenario names {says}"):
        sweep(replace(SCENARIO, loops=loops, source=""))


def test_a_clean_loop_passes_in_every_mode() -> None:
    modes = ("start", "early", "late", "mid", "double")
    found = sweep(SCENARIO, modes=modes)
    assert found.check() is found
    assert [tally.name for tally in found.report.by_mode] == list(modes)
    assert all(tally.points for tally in found.report.by_mode)


def test_a_failure_comes_with_the_nearest_run_that_passes() -> None:
    found = sweep(SCENARIO, HandLoop, whom=["turn"])
    assert found.status == "FAIL"
    first = found.failed[0]
    assert [group.key.partition(":")[0] for group in first.groups] == ["RESUME"]
    assert first.run.lines
    assert first.beside is not None
    assert first.beside.run.findings == ()
    assert first.rerun == f"replay({first.token!r}, case, HandLoop)"
    with pytest.raises(AssertionError, match="FAIL case on HandLoop"):
        found.check()


def test_findings_of_one_run_stand_together() -> None:
    found = sweep(SCENARIO, MendedHandLoop, whom=["task"])
    assert len(found.failed) < len(found.report.failed)
    assert [group for each in found.failed for group in each.groups] == list(found.report.failed)


def test_where_every_other_run_fails_there_is_none_beside() -> None:
    cut = load_text(CASE + "    cancel: {after: tool_started slow}\n", "case.yaml")
    found = sweep(cut, HandLoop, modes=["late"], whom=["turn"])
    assert found.failed[0].groups[0].shots == ()
    assert found.failed[0].beside is None
    assert "FAIL without a cancel" in str(found)


def test_a_double_cancel_is_compared_with_each_of_its_cancels() -> None:
    class Hasty(MendedHandLoop):
        async def run_tools(self, calls):
            try:
                return await super().run_tools(calls)
            except asyncio.CancelledError:
                answers, self.messages[-2:] = self.messages[-2:], []
                await asyncio.sleep(0.01)
                self.messages += answers
                raise

    found = sweep(SCENARIO, Hasty, modes=["double"], whom=["turn"])
    first = found.failed[0]
    assert len(first.groups[0].shots) == 2
    assert first.beside is not None
    assert first.beside.changed == f"without the cancel {first.groups[0].shots[1]}"


def test_a_sweep_goes_to_other_processes_and_back() -> None:
    found = sweep(SCENARIO, HandLoop)
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


def test_progress_is_told_after_each_run() -> None:
    told: list[Progress] = []
    found = sweep(SCENARIO, HandLoop, means=Means(on_progress=told.append))
    assert [each.runs for each in told] == list(range(1, found.report.runs + 1))


def test_a_budget_that_is_spent_leaves_the_sweep_open() -> None:
    found = sweep(SCENARIO, budget=9)
    assert (found.status, found.report.runs) == ("INCOMPLETE", 9)
    with pytest.raises(UsageError, match="a budget of 0 runs"):
        sweep(SCENARIO, budget=0)


def test_what_a_scenario_allows_is_tolerated() -> None:
    allowed = load_text(CASE + "allow: [{invariant: RESUME, why: It is known.}]\n", "case.yaml")
    found = sweep(allowed, HandLoop, modes=["late"], whom=["turn"]).check()
    assert [tally.tolerated for tally in found.report.by_mode] == [len(found.report.points)]
    assert f"\ntolerated: RESUME, It is known. ({len(found.report.points)} points)" in str(found)


def test_a_cancel_that_is_never_over_is_a_failure_that_says_what_keeps_busy() -> None:
    class Spins(HandLoop):
        async def run_tools(self, calls):
            try:
                return await super().run_tools(calls)
            except asyncio.CancelledError:
                for _ in itertools.repeat(None):
                    await asyncio.sleep(0)

    found = sweep(SCENARIO, Spins, modes=["late"], whom=["turn"], roles=["turn"])
    assert [point.came for point in found.report.points] == ["failed"]
    assert found.report.points[0].landings == ("never ended",)
    assert "most of the last by 1" in str(found)


def test_what_cannot_be_swept_is_an_error() -> None:
    with pytest.raises(NoPoints, match=r"no point to cancel at .* the roles model"):
        sweep(SCENARIO, HandLoop, roles=["model"])
    with pytest.raises(UsageError, match=r"unknown mode 'lat' \(did you mean 'late'"):
        sweep(SCENARIO, modes=["lat"])  # type: ignore[list-item]
    with pytest.raises(NotDeterministic, match=r"line 2 is the first that differs\n.* number 2\."):
        sweep(SCENARIO, counting())  # type: ignore[arg-type]


def test_a_run_that_differs_only_when_it_is_cancelled_is_not_deterministic_either() -> None:
    numbers = itertools.count()

    class Moody(HandLoop):
        async def run_tools(self, calls):
            try:
                return await super().run_tools(calls)
            except asyncio.CancelledError:
                self.messages.append(user(f"Cancelled {next(numbers)} times."))
                raise

    with pytest.raises(NotDeterministic, match=r"cancelled at 1#\d/\w+:turn went different"):
        sweep(SCENARIO, Moody, whom=["turn"])


# --- replay


def test_a_failure_shows_again() -> None:
    found = sweep(SCENARIO, HandLoop, whom=["turn"])
    for failed in found.failed:
        again = replay(failed.token, SCENARIO, HandLoop)
        assert again.run == failed.run
        assert again.status == "FAIL"
        assert str(again).splitlines()[-1] == failed.rerun


def test_a_mended_agent_does_not_fail_again() -> None:
    assert replay(token(EARLY), SCENARIO, MendedHandLoop).check().run.landings[0].came_to == (
        "cancelled"
    )


def test_choices_are_replayed_too() -> None:
    drawn = (Draw("latency", "quick call_1_1_1", 4, 5),)
    replayed = replay(token(EARLY, tape=drawn), SCENARIO, HandLoop)
    assert "\nlatency of quick call_1_1_1: ten times (4 of 5)\n" in str(replayed)
    with pytest.raises(ReplayMismatch, match="was never asked for: latency 'slow call_9'"):
        replay(token(tape=(Draw("latency", "slow call_9", 1, 5),)), SCENARIO, HandLoop)


def test_a_cancel_that_is_not_reached_shows_nothing() -> None:
    replayed = replay(token(Shot("1.9", 1, "early", "turn")), SCENARIO, MendedHandLoop)
    assert replayed.status == "INCOMPLETE"


def test_a_replay_without_a_cancel_is_the_plain_run() -> None:
    assert replay(token(), SCENARIO, HandLoop).ok


def test_the_line_of_a_subject_that_a_command_can_name_is_the_command() -> None:
    subject = subject_for("tests.subjects.hand_loop:HandLoop", SCENARIO)
    case = replace(SCENARIO, source="a b.yaml")
    line = str(replay(token(EARLY), case, subject)).splitlines()[-1]
    assert shlex.split(line) == [
        *("harness", "replay", token(EARLY), "a b.yaml"),
        *("--agent", "tests.subjects.hand_loop:HandLoop"),
    ]


def test_a_token_for_an_agent_with_a_stop_needs_one() -> None:
    own = token(replace(EARLY, whom="agent"))
    assert replay(own, SCENARIO, Stoppable).ok
    with pytest.raises(UsageError, match="calls the agent's own stop, but HandLoop has no cancel"):
        replay(own, SCENARIO, HandLoop)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="was made of another scenario"):
        replay(token(EARLY), CASE.replace("Go.", "Gone?"))
    with pytest.raises(NotDeterministic):
        replay(token(EARLY), SCENARIO, counting())  # type: ignore[arg-type]
