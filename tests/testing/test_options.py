"""The options of the plugin: jobs, budget, seed; and which goes before which."""

from __future__ import annotations

import pytest

from harness.runner.agents import agent_subject, at_level, find_loop, loop_subject, subject_of
from harness.runner.explored import OnAgent
from harness.runner.files.load import read
from harness.testing.jobs import _probe, in_processes
from tests.testing.conftest import HELLO, ini, told, write

TEST = """
import asyncio

from harness import choose


async def swept():
    for _ in range(9):
        await asyncio.sleep(1)


async def searched():
    for number in range(20):
        choose(f"late {number}", 3)


def test_sweep(harness_sweep):
    harness_sweep(swept)


def test_search(harness_explore):
    explored = harness_explore(searched, strategy="random", runs=RUNS)
    report, budget = explored.report, explored.budget
    print("search", report.seed, report.runs, budget.seconds)
"""


def choose(project: pytest.Pytester, runs: str = "None") -> None:
    write(project.path / "test_it.py", TEST.replace("RUNS", runs))


def searched(project: pytest.Pytester, *options: str) -> str:
    result = project.runpytest("-s", "-k", "search", "-p", "no:cacheprovider", *options)
    return next(line.partition("search ")[2] for line in result.outlines if "search " in line)


def test_an_option_goes_before_the_setting_and_a_test_before_both(
    project: pytest.Pytester,
) -> None:
    choose(project)
    ini(project, "harness_explore_runs = 40", "harness_explore_seed = 3")
    assert searched(project) == "3 40 30.0"
    assert searched(project, "--harness-budget=2_0", "--harness-seed=7") == "7 20 None"
    ini(project, "harness_explore_runs = 40", "harness_explore_seconds = 9")
    assert searched(project, "--harness-budget=20") == "0 20 9.0"
    choose(project, "10")
    assert searched(project, "--harness-budget=20") == "0 10 9.0"


def test_a_budget_is_for_sweeps_too(project: pytest.Pytester) -> None:
    choose(project)
    result = project.runpytest("-k", "sweep", "--harness-budget", "5")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["INCOMPLETE: the budget of 5 runs is spent"])


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--harness-jobs=none", "--harness-jobs is 'none'; expected a whole number, 1 or more"),
        ("--harness-jobs=0", "--harness-jobs is '0'; expected a whole number, 1 or more"),
        ("--harness-budget=-1", "--harness-budget is '-1'; expected a whole number, 1 or more"),
        ("--harness-seed=x", "--harness-seed is 'x'; expected a whole number, 0 or more"),
    ],
)
def test_an_option_that_is_no_number_is_told_at_once(
    project: pytest.Pytester, option: str, says: str
) -> None:
    result = project.runpytest(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines[0] == f"ERROR: {says}"


JOBS = f"""
def test_sweep(harness_sweep):
    print("swept", harness_sweep({HELLO!r}, "turn", modes=["early"]).report.runs)


def test_search(harness_explore):
    print("explored", harness_explore({HELLO!r}, "my_agent:MyAgent", runs=9).report.runs)


def test_here(harness_sweep):
    from my_agent import MyAgent
    print("here", harness_sweep({HELLO!r}, MyAgent, modes=["early"]).report.runs)
"""


@pytest.mark.nightly  # it starts processes
def test_jobs_change_nothing_but_the_time(project: pytest.Pytester) -> None:
    write(project.path / "test_it.py", JOBS)
    alone = project.runpytest("-s", "-q")
    several = project.runpytest_subprocess("-s", "-q", "--harness-jobs", "2")
    found = [
        [line.lstrip(".") for line in told(each) if line.lstrip(".").startswith(("s", "e", "h"))]
        for each in (alone, several)
    ]
    assert len(found[0]) == 3
    assert found[0] == found[1]


def test_what_another_process_finds_by_its_name_is_the_same_there() -> None:
    case = read(HELLO)
    turn = loop_subject(find_loop("turn"), case, "reference")
    for subject in (
        at_level(turn, "http:anthropic"),
        agent_subject("tests.subjects.hand_loop:HandLoop"),
    ):
        with in_processes(1, case, subject) as many:
            assert many is None
        there = _probe(case, subject.options, "fifo", (), False, True)
        assert there.run().digest == OnAgent(case, subject).probe().run().digest
    nameless = subject_of(agent_subject("tests.subjects.hand_loop:HandLoop").build)
    with in_processes(2, case, nameless) as many:
        assert many is None
