"""Sub-results: of a folder's scenarios and of several failures, with and without pytest's own."""

from __future__ import annotations

import pytest

from tests.testing.conftest import HELLO, last, told, write

FOLDER = """
def test_folder({fixture}):
    results = {fixture}.each("scenarios"{more})
    print("given", [each.status if hasattr(each, "status") else each.ok for each in results])
"""
SEVERAL = """
import asyncio

from harness import choose


async def leaves():
    tasks = [asyncio.create_task(asyncio.sleep(seconds)) for seconds in (1, 2)]
    try:
        await asyncio.sleep(0.5)
    except asyncio.CancelledError:
        pass
    for task in tasks:
        await task


async def fails():
    drawn = choose("which", 3)
    if drawn:
        raise (ValueError, KeyError)[drawn - 1]("so")


def test_sweep(harness_sweep):
    harness_sweep(leaves)


def test_search(harness_explore):
    harness_explore(fails, keep_going=True)
"""


@pytest.fixture
def folder(project: pytest.Pytester) -> pytest.Pytester:
    """A folder of three scenarios, one of which fails."""
    (project.path / "scenarios/weather.yaml").unlink()
    write(project.path / "scenarios/bad.yaml", HELLO.replace("completed", "error"))
    write(project.path / "scenarios/good.yaml", HELLO)
    write(project.path / "scenarios/two.yaml", HELLO.replace("[turn]", "[turn, fsm]"))
    return project


def choose(project: pytest.Pytester, fixture: str, more: str = "") -> None:
    write(project.path / "test_folder.py", FOLDER.format(fixture=fixture, more=more))


def test_each_scenario_of_a_folder_is_a_sub_result(folder: pytest.Pytester) -> None:
    choose(folder, "harness_run")
    result = folder.runpytest("-v", "-s")
    result.stdout.fnmatch_lines(
        [
            "*SUBFAILED[[]scenarios/bad[]]*",
            "*SUBPASSED[[]scenarios/good[]]*",
            "*SUBPASSED[[]scenarios/two on turn[]]*",
            "*SUBPASSED[[]scenarios/two on fsm[]]*given [[]True, True, True[]]",
            "*FAILED*",
            "scenarios/bad.yaml:6: turn 1: expected outcome error, found completed",
        ]
    )
    choose(folder, "harness_run", ", 'turn', check=False")
    folder.runpytest("-s").stdout.fnmatch_lines(["*given [[]False, True, True[]]"])


def test_without_sub_results_the_test_fails_when_all_are_done(folder: pytest.Pytester) -> None:
    choose(folder, "harness_run")
    result = folder.runpytest("-p", "no:subtests", "-s")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["scenarios/bad: expectation; outcomes: completed", "FAIL scenarios/bad on turn (safe)"]
    )
    assert last(result)[-1] == "test_folder.py::test_folder"
    (folder.path / "scenarios/bad.yaml").unlink()
    choose(folder, "harness_run")
    folder.runpytest("-p", "no:subtests").assert_outcomes(passed=1)


def test_sweeps_pass_over_what_has_no_point(folder: pytest.Pytester) -> None:
    (folder.path / "scenarios/bad.yaml").unlink()
    choose(folder, "harness_sweep", ", modes=['mid'], roles=['tool']")
    result = folder.runpytest("-v", "-s")
    result.stdout.fnmatch_lines(["*SUBSKIPPED[[]scenarios/good[]]*", "*given [[][]]"])
    result = folder.runpytest("-p", "no:subtests", "-s")
    result.assert_outcomes(passed=1)
    choose(folder, "harness_explore", ", runs=3")
    folder.runpytest("-s").stdout.fnmatch_lines(["*given [[]'PASS', 'PASS', 'PASS'[]]"])


def test_a_folder_without_scenarios_fails_the_test(folder: pytest.Pytester) -> None:
    choose(folder, "harness_run")
    write(folder.path / "test_folder.py", "def test_it(harness_run): harness_run.each('none')")
    result = folder.runpytest("-rN")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["there is no none; expected a scenario file or a folder of them"])


def test_several_failures_are_a_sub_result_each(project: pytest.Pytester) -> None:
    write(project.path / "test_several.py", SEVERAL)
    result = project.runpytest()
    lines = told(result)
    heads = [line.strip("_ ") for line in lines if line.startswith("__")]
    assert [head.partition(" in run")[0] for head in heads] == [
        "test_sweep [swallowed cancelled at 1#1/early:task]",
        "test_sweep [orphan child cancelled at 1.1#0/start:task]",
        "test_sweep",
        "test_search [error:ValueError",
        "test_search [error:KeyError",
        "test_search",
    ]
    again = [line for line in lines if line.startswith("pytest test_several.py::test_sweep ")]
    assert len(set(again)) == 2
    assert again[-1] == again[-2]


def test_without_sub_results_the_test_tells_of_all(project: pytest.Pytester) -> None:
    write(project.path / "test_several.py", SEVERAL)
    result = project.runpytest("-p", "no:subtests", "-k", "sweep")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["FAIL cancelled at 1#1/early:task", "FAIL cancelled at 1.1#0/start:task"]
    )
    assert last(result)[-2] == "--harness-replay"
