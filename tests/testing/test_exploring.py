"""The fixture `harness_explore`: what fails a test, what replays it, settings, mistakes."""

from __future__ import annotations

import pytest

from tests.testing.conftest import HELLO, ini, last, write

AGENT = """
import asyncio

from harness import user
from my_agent import MyAgent


class Hasty(MyAgent):
    async def turn(self, text):
        if text is not None:
            self.messages.append(user(text))
        while True:
            reply = await self.ask()
            self.messages.append(reply)
            if not reply.calls:
                return
            await asyncio.gather(*map(self.answer, reply.calls))

    async def answer(self, call):
        self.messages.append(await self.use_tool(call))
"""
TWO = """\
about: Two tools that take equally long.
tools:
  clock: {returns: "14:05", takes: 10ms}
  weather: {returns: sunny, takes: 10ms}
turns:
  - user: Time and weather?
    model:
      - calls: [clock, weather]
      - say: Five past two and sunny.
"""
TEST = """
from hasty_agent import Hasty
from mended_agent import MendedAgent


def test_two(harness_explore):
    explored = harness_explore("scenarios/two.yaml", {agent}, {options})
    print("explored", explored.status, explored.report.runs, explored.report.seed)
"""


@pytest.fixture
def exploring(project: pytest.Pytester) -> pytest.Pytester:
    """README's first example, with an agent that is hasty, and a test that explores it."""
    project.syspathinsert()
    write(project.path / "hasty_agent.py", AGENT)
    write(project.path / "scenarios/two.yaml", TWO)
    choose(project, "Hasty")
    return project


def choose(project: pytest.Pytester, agent: str, options: str = "runs=60") -> None:
    write(project.path / "test_two.py", TEST.format(agent=agent, options=options))


def test_a_search_that_passes_is_given_back(exploring: pytest.Pytester) -> None:
    choose(exploring, "MendedAgent")
    result = exploring.runpytest("-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*explored PASS 60 0"])


def test_a_search_that_finds_something_fails_the_test_with_the_whole_report(
    exploring: pytest.Pytester,
) -> None:
    result = exploring.runpytest("--tb=short")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "FAIL: ORDER",
            "FAIL scenarios/two on Hasty",
            "strategy * runs  new",
            "FAIL ORDER",
            "who ran when, and where it waits then:",
            "run it again:",
            "pytest test_two.py::test_two --harness-replay h1.*.completions,*",
            "FAILED test_two.py::test_two - Failed: FAIL: ORDER",
        ]
    )
    assert not any("exploring.py" in line for line in result.outlines)


def test_the_last_line_replays_the_failure_in_the_test(exploring: pytest.Pytester) -> None:
    command = last(exploring.runpytest())
    again = exploring.runpytest(*command[1:])
    again.assert_outcomes(failed=1)
    assert last(again) == command
    again.stdout.fnmatch_lines(["FAIL: something is wrong with this run"])
    again.stdout.no_fnmatch_line("strategy  *")
    choose(exploring, "MendedAgent")
    mended = exploring.runpytest(*command[1:], "-s")
    mended.assert_outcomes(passed=1)
    mended.stdout.fnmatch_lines(["*explored PASS *"])


def test_a_token_is_for_one_of_the_searches_and_sweeps_of_a_test(
    exploring: pytest.Pytester,
) -> None:
    command = last(exploring.runpytest())
    write(exploring.path / "scenarios/hello.yaml", HELLO)
    write(
        exploring.path / "test_two.py",
        "from hasty_agent import Hasty\n\n\n"
        "def test_two(harness_sweep, harness_explore):\n"
        "    harness_sweep('scenarios/hello.yaml', 'turn')\n"
        "    harness_explore('scenarios/hello.yaml', 'turn', runs=5)\n"
        "    harness_explore('scenarios/two.yaml', Hasty)\n",
    )
    again = exploring.runpytest(*command[1:])
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["FAIL: something is wrong with this run"])
    write(exploring.path / "scenarios/two.yaml", TWO.replace("10ms", "20ms"))
    other = exploring.runpytest(*command[1:])
    other.assert_outcomes(skipped=1)
    assert other.ret == pytest.ExitCode.TESTS_FAILED
    other.stdout.fnmatch_lines(
        ["ERROR: --harness-replay: no test that was run is of the scenario or function that *"]
    )


def test_a_goal_that_is_never_reached_fails_the_test(exploring: pytest.Pytester) -> None:
    choose(exploring, "MendedAgent", "runs=5, goals=['reached pay']")
    result = exploring.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["INCOMPLETE: no run of 5 came to: reached pay"])


def test_a_run_that_is_not_resolved_is_replayed_by_the_last_line(
    exploring: pytest.Pytester,
) -> None:
    later = "asyncio.get_running_loop().call_later(1, lambda: asyncio.ensure_future(spin()))"
    spin = "async def spin():\n    while True:\n        await asyncio.sleep(0)\n"
    agent = AGENT.replace("        if text is", f"        {later}\n        if text is")
    write(exploring.path / "hasty_agent.py", f"{agent}\n\n{spin}")
    choose(exploring, "Hasty", "runs=1, strategy='random'")
    result = exploring.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["INCOMPLETE: 2 runs not resolved; the first is run 1: *"])
    assert last(result)[:3] == ["pytest", "test_two.py::test_two", "--harness-replay"]


def test_budgets_and_the_seed_are_settings(exploring: pytest.Pytester) -> None:
    choose(exploring, "MendedAgent", "")
    ini(exploring, "harness_explore_runs = 1_0", "harness_explore_seed = 7")
    exploring.runpytest("-s").stdout.fnmatch_lines(["*explored PASS 10 7"])
    ini(exploring, "harness_explore_seconds = 1e-9")
    exploring.runpytest("-s").stdout.fnmatch_lines(["*explored PASS 2 0"])
    choose(exploring, "MendedAgent", "runs=4, seed=3, seconds=60")
    exploring.runpytest("-s").stdout.fnmatch_lines(["*explored PASS 4 3"])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("runs = few", "harness_explore_runs is 'few'; expected a whole number, such as 2000"),
        ("seconds = long", "harness_explore_seconds is 'long'; expected a number of seconds"),
        ("seed = x", "harness_explore_seed is 'x'; expected a whole number, such as 2000"),
    ],
)
def test_a_setting_that_is_no_number_is_told(
    exploring: pytest.Pytester, setting: str, says: str
) -> None:
    choose(exploring, "MendedAgent", "")
    ini(exploring, f"harness_explore_{setting}")
    result = exploring.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([says])


def test_the_fixture_is_explained(exploring: pytest.Pytester) -> None:
    exploring.runpytest("--fixtures").stdout.fnmatch_lines(
        ["harness_explore *", "    Runs a scenario in other orders, with other latencies; *"]
    )
