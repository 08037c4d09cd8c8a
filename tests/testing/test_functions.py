"""The fixtures `harness_sweep` and `harness_explore` on functions, and what replays a failure."""

from __future__ import annotations

import pytest

from tests.testing.conftest import last, write

TEST = """
import asyncio
import threading


async def page():
    await asyncio.sleep(1)


async def both():
    tasks = [asyncio.create_task(page()) for _ in range(2)]
    for task in tasks:
        await task


def in_threads():
    lock, counts = threading.Lock(), [0]

    def add():
        before = counts[0]
        with lock:
            counts[0] = before + 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [2], "an update was lost"


class Counter:
    def __init__(self):
        self.value = 0

    async def add(self):
        await asyncio.sleep(1)
        before = self.value
        await asyncio.sleep(0)
        self.value = before + 1

    async def run(self):
        await asyncio.gather(self.add(), self.add())

    def check(self):
        assert self.value == 1, "no update was lost"


def test_it({fixture}):
    {body}
"""


def choose(project: pytest.Pytester, body: str) -> None:
    fixture = body.partition("(")[0]
    write(project.path / "test_both.py", TEST.format(fixture=fixture, body=body))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("harness_sweep(both)", "orphan child"),
        ('harness_explore(Counter, order="completions")', "check"),
        ("harness_explore(in_threads)", "error"),
    ],
)
def test_the_last_line_replays_the_failure_in_the_test(
    project: pytest.Pytester, body: str, kind: str
) -> None:
    choose(project, body)
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"FAIL: {kind}*"])
    command = last(result)
    again = project.runpytest(*command[1:])
    again.assert_outcomes(failed=1)
    assert last(again) == command
    again.stdout.fnmatch_lines([f"FAIL: {kind}", "FAIL: something is wrong with this run"])


def test_what_is_allowed_passes(project: pytest.Pytester) -> None:
    body = 'harness_sweep(both, allow=["orphan child"])'
    choose(project, body)
    project.runpytest().assert_outcomes(passed=1)


def test_a_token_that_shows_nothing_any_more_is_followed_by_the_rest(
    project: pytest.Pytester,
) -> None:
    choose(project, "harness_sweep(both)")
    command = last(project.runpytest())
    allowed = 'harness_sweep(both, allow=["orphan child"])'
    choose(project, allowed)
    project.runpytest(*command[1:]).assert_outcomes(passed=1)


def test_a_function_takes_no_agent(project: pytest.Pytester) -> None:
    choose(project, "harness_sweep(both, both)")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["a function is run as it is; give an agent only to a scenario"])
