"""Each mistake of an agent with threads is found as others are, and its twin is not blamed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.runner.exploring import explore, replay, sweep
from harness.runner.files.load import load_text
from harness.runner.scenario import Scenario
from tests.known_bugs import threaded

ROOT = Path(__file__).parents[2]
SCENARIOS: dict[type[threaded.Agent], str] = {
    threaded.ClearsItsStop: threaded.STUBBORN,
    threaded.HasAStopATurn: threaded.STUBBORN,
    threaded.LosesItsConsumer: threaded.FAILING,
    threaded.KeepsItsConsumer: threaded.FAILING,
    threaded.ReleasesTwice: threaded.FAILING_ONE_BY_ONE,
    threaded.ReleasesOnce: threaded.FAILING_ONE_BY_ONE,
}
HERE = "tests/known_bugs/threaded.py:"

BY_SWEEP: list[tuple[type[threaded.Agent], str, str]] = [
    (
        threaded.RunsOnAfterInterrupt,
        "QUIESCE: clock took effect after turn 1 had ended",
        "in RunsOnAfterInterrupt.use_tools, the turn's task is cancelled; it came to: cancelled",
    ),
    (
        threaded.ClearsItsStop,
        "QUIESCE: weather started after turn 1 had ended",
        "though told to stop",
    ),
    (
        threaded.LeavesItsTimer,
        f"QUIESCE: thread 1.1, started at {HERE}",
        "in LeavesItsTimer.use_tools, is still alive and waits at ",
    ),
]
BY_SEARCH: list[tuple[type[threaded.Agent], str, int, list[str]]] = [
    (
        threaded.LosesWakeUp,
        "ONE-TERMINAL: turn 1 never ended: deadlock, 1 task will never be woken: 1: waits at ",
        60,
        [
            "thread 1 lets others go first at ",
            " in LosesWakeUp.meanwhile, for no task that is known",
        ],
    ),
    (
        threaded.ChecksThenActs,
        "EFFECT-ONCE: clock took effect 2 times for call call_1_1_1",
        30,
        ["thread 1.1 lets others go first at ", " in ChecksThenActs.takes (where it could: "],
    ),
    (
        threaded.LocksCrosswise,
        "ONE-TERMINAL: turn 1 never ended: deadlock, 3 tasks will never be woken: ",
        50,
        [
            " in LocksCrosswise.tell for 1.2\n",
            " in LocksCrosswise.keep for 1.1\n",
            "in a circle: 1.1 waits for 1.2 waits for 1.1\n",
        ],
    ),
    (
        threaded.ForgetsJob,
        f"QUIESCE: thread 1.job3, started at {HERE}",
        60,
        ["latency of mail call_1_1_3: ten times (4 of 5)", "1.job3 of the agent: "],
    ),
]
BY_ANY_RUN: list[tuple[type[threaded.Agent], str]] = [
    (
        threaded.LosesItsConsumer,
        "ONE-TERMINAL: turn 1 never ended: deadlock, 1 task will never be woken: 1: waits at ",
    ),
    (threaded.ReleasesTwice, "SERIAL: mail started while weather was running"),
]
RIGHT = [
    threaded.Agent,
    threaded.KeepsWakeUp,
    threaded.StopsAtInterrupt,
    threaded.ChecksUnderLock,
    threaded.LocksInOneOrder,
    threaded.AwaitsJobs,
    threaded.HasAStopATurn,
    threaded.KeepsItsConsumer,
    threaded.EndsItsTimer,
    threaded.ReleasesOnce,
]


def scenario_of(agent: type[threaded.Agent]) -> Scenario:
    return load_text(SCENARIOS.get(agent, threaded.SCENARIO), "threaded.yaml")


def name_of(value: object) -> Any:
    return getattr(value, "__name__", "")


@pytest.mark.parametrize(("agent", "says", "shown"), BY_SWEEP, ids=name_of)
def test_a_usual_sweep_finds_it(agent: type[threaded.Agent], says: str, shown: str) -> None:
    swept = sweep(scenario_of(agent), agent)
    found = [group for group in swept.report.failed if group.message.startswith(says)]
    assert [len(group.shots) for group in found] == [1]
    assert shown in str(swept)
    failed = next(each for each in swept.failed if found[0] in each.groups)
    assert_always_the_same(failed.token, agent, says)


@pytest.mark.parametrize(("agent", "says", "runs", "shown"), BY_SEARCH, ids=name_of)
def test_a_usual_search_finds_it_by_one_decision(
    agent: type[threaded.Agent], says: str, runs: int, shown: list[str]
) -> None:
    explored = explore(scenario_of(agent), agent, seconds=None, runs=runs)
    found = explored.report.found[0]
    assert found.message.startswith(says)
    assert len(found.shrunk.tape) == 1
    told = str(explored)
    assert [text for text in shown if text not in told] == []
    assert_always_the_same(explored.failed[0].token, agent, says)


@pytest.mark.parametrize(("agent", "says"), BY_ANY_RUN, ids=name_of)
def test_the_first_run_finds_it(agent: type[threaded.Agent], says: str) -> None:
    explored = explore(scenario_of(agent), agent, seconds=None, runs=1)
    assert explored.report.found[0].message.startswith(says)
    assert_always_the_same(explored.failed[0].token, agent, says)


def assert_always_the_same(token: str, agent: type[threaded.Agent], says: str) -> None:
    """Replayed twenty times, and in other processes, it goes one way."""
    scenario = scenario_of(agent)
    again = [replay(token, scenario, agent) for _ in range(20)]
    assert {one.status for one in again} == {"FAIL"}
    assert any(finding.message.startswith(says) for finding in again[0].run.findings)
    digests = {one.run.digest for one in again}
    program = (
        "from harness.runner.exploring import replay\n"
        "from tests.known_bugs import test_threaded as here, threaded\n"
        f"agent = threaded.{agent.__name__}\n"
        f"print(replay({token!r}, here.scenario_of(agent), agent).run.digest)"
    )
    for seed in ("0", "7"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1


@pytest.mark.parametrize("agent", RIGHT, ids=name_of)
def test_what_is_right_passes(agent: type[threaded.Agent]) -> None:
    sweep(scenario_of(agent), agent).check()
    explore(scenario_of(agent), agent, seconds=None, runs=100).check()


def test_a_thread_that_had_looked_whether_to_stop_is_not_blamed() -> None:
    """Between Ctrl-C and the stop that it leads to, others may go first."""
    agent = threaded.StopsAtInterrupt
    explore(scenario_of(agent), agent, seconds=None, runs=300, cancels=1).check()
