"""The fixture `harness_sweep`: what fails a test, what replays it, settings, mistakes."""

from __future__ import annotations

import pytest

from tests.testing.conftest import HELLO, ini, last, write

TEST = """
from mended_agent import MendedAgent
from my_agent import MyAgent


def test_weather(harness_sweep):
    swept = harness_sweep("scenarios/weather.yaml", {agent}, whom=["turn"], modes=["early"])
    print("swept", swept.status, swept.report.runs)
"""


@pytest.fixture
def sweeping(project: pytest.Pytester) -> pytest.Pytester:
    """README's first example, with a test that sweeps it."""
    project.syspathinsert()
    choose(project, "MyAgent")
    return project


def choose(project: pytest.Pytester, agent: str) -> None:
    write(project.path / "test_weather.py", TEST.format(agent=agent))


def test_a_sweep_that_passes_is_given_back(sweeping: pytest.Pytester) -> None:
    choose(sweeping, "MendedAgent")
    result = sweeping.runpytest("-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*swept PASS *"])


def test_a_sweep_that_fails_fails_the_test_with_the_whole_report(
    sweeping: pytest.Pytester,
) -> None:
    result = sweeping.runpytest("--tb=short")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "FAIL: RESUME",
            "FAIL scenarios/weather on MyAgent",
            "cancels     points  clean  tolerated  failed  unresolved  missed  n/a",
            "FAIL without a cancel",
            "run it again:",
            "pytest test_weather.py::test_weather --harness-replay h1.*",
            "FAILED test_weather.py::test_weather - Failed: FAIL: RESUME",
        ]
    )
    assert not any("sweeping.py" in line for line in result.outlines)


def test_the_last_line_replays_the_failure_in_the_test(sweeping: pytest.Pytester) -> None:
    command = last(sweeping.runpytest())
    again = sweeping.runpytest(*command[1:])
    again.assert_outcomes(failed=1)
    assert last(again) == command
    again.stdout.fnmatch_lines(["FAIL: something is wrong with this run"])
    again.stdout.no_fnmatch_line("cancels  *")


def test_what_is_mended_is_swept_again(sweeping: pytest.Pytester) -> None:
    command = last(sweeping.runpytest())
    choose(sweeping, "MendedAgent")
    again = sweeping.runpytest(*command[1:], "-s")
    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["*swept PASS *"])


def test_a_token_of_another_scenario_is_an_error(sweeping: pytest.Pytester) -> None:
    command = last(sweeping.runpytest())
    write(sweeping.path / "scenarios/weather.yaml", HELLO)
    again = sweeping.runpytest(*command[1:])
    again.assert_outcomes(skipped=1)
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    again.stdout.fnmatch_lines(
        ["ERROR: --harness-replay: no test that was run is of the scenario or function that *"]
    )


def test_a_token_is_taken_by_the_tests_of_its_scenario_only(sweeping: pytest.Pytester) -> None:
    command = last(sweeping.runpytest())
    write(sweeping.path / "scenarios/hello.yaml", HELLO)
    write(
        sweeping.path / "test_others.py",
        "def test_runs(harness_run):\n"
        "    harness_run('scenarios/hello.yaml', 'turn')\n\n\n"
        "def test_sweeps(harness_sweep):\n"
        "    harness_sweep('scenarios/hello.yaml', 'turn')\n\n\n"
        "def test_fails(harness_explore):\n"
        "    harness_explore('scenarios/hello.yaml', 'turn', runs=5, goals=['reached it'])\n\n\n"
        "def test_breaks(harness_sweep):\n"
        "    raise ValueError\n",
    )
    again = sweeping.runpytest(*command[-2:], "-rs", "test_others.py", *command[1:-2])
    again.assert_outcomes(failed=2, passed=1, skipped=2)
    again.stdout.fnmatch_lines(["SKIPPED [[]2[]] *: --harness-replay is of another scenario"])
    again.stdout.no_fnmatch_line("ERROR: *")
    nobody = sweeping.runpytest(*command[-2:], "test_others.py::test_runs")
    nobody.assert_outcomes(passed=1)
    assert nobody.ret == pytest.ExitCode.TESTS_FAILED
    nobody.stdout.fnmatch_lines(["ERROR: --harness-replay: no test that was run is of *"])
    interrupted = sweeping.runpytest(*command[-2:], "test_nowhere.py")
    assert interrupted.ret == pytest.ExitCode.USAGE_ERROR


def test_a_broken_token_is_an_error(sweeping: pytest.Pytester) -> None:
    result = sweeping.runpytest("--harness-replay", "h1.nonsense")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --harness-replay: the token 'h1.nonsense' is damaged: what it says and *"]
    )


def test_agents_come_from_the_settings_too(sweeping: pytest.Pytester) -> None:
    ini(sweeping, "harness_agent = mended_agent:MendedAgent")
    choose(sweeping, "None")
    sweeping.runpytest().assert_outcomes(passed=1)
    ini(sweeping, "")
    result = sweeping.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["scenarios/weather.yaml names no loops; say what to run it on: *"])


def test_the_budget_is_a_setting(sweeping: pytest.Pytester) -> None:
    choose(sweeping, "MendedAgent")
    ini(sweeping, "harness_sweep_budget = 5")
    result = sweeping.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["INCOMPLETE: the budget of 5 runs is spent"])
    ini(sweeping, "harness_sweep_budget = few")
    result = sweeping.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["harness_sweep_budget is 'few'; expected a whole number, such as 2000"]
    )


def test_the_fixture_is_explained(sweeping: pytest.Pytester) -> None:
    sweeping.runpytest("--fixtures").stdout.fnmatch_lines(
        ["harness_sweep *", "    Cancels a scenario at every point there is; *"]
    )
