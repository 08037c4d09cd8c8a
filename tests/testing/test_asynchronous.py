"""Async tests without another plugin: in virtual time or in real, and what they leave behind."""

from __future__ import annotations

import pytest

from tests.testing.conftest import GO_ON

HEAD = """
import asyncio
import time
import pytest

"""
MARK = "@pytest.mark.harness\n"


def run(project: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    project.makepyfile(test_it=HEAD + body)
    return project.runpytest("-p", "no:cacheprovider", "-p", "no:syrupy", *arguments)


def test_an_async_test_of_ours_is_run_in_virtual_time(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.harness
async def test_marked():
    began = time.monotonic()
    await asyncio.sleep(3600)
    assert time.monotonic() - began == 3600

class TestIt:
    async def test_with_a_fixture(self, harness_run, tmp_path):
        await asyncio.sleep(3600)
        result = harness_run("about: x\\nturns: [{user: a, model: [{say: b}]}]\\n", "turn")
        assert result.ok and tmp_path.exists()

@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.harness
async def test_with_parameters(number):
    assert await asyncio.to_thread(lambda: number) == number
""",
    )
    result.assert_outcomes(passed=4)


def test_what_is_given_by_others_than_pytest_is_left_to_them(project: pytest.Pytester) -> None:
    run(
        project,
        """
from unittest import mock

@pytest.mark.harness
async def test_with_a_default(number=1):
    assert number == 1

@pytest.mark.harness
@mock.patch("os.path.relpath")
async def test_patched(relpath, tmp_path):
    assert relpath("x") is relpath.return_value and tmp_path.exists()
""",
    ).assert_outcomes(passed=2)


def test_others_are_left_to_others(project: pytest.Pytester) -> None:
    named_like_ours = """
@pytest.fixture
def harness_sweep(): return 1

async def test_it(harness_sweep): pass
"""
    run(project, named_like_ours).assert_outcomes(failed=1)
    result = run(project, "async def test_it(): pass")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])


def test_what_it_raises_is_shown_as_in_any_test(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.harness
async def test_it():
    number = 1
    await asyncio.sleep(1)
    assert number == 2
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([">       assert number == 2", "E       assert 1 == 2"])
    assert "asynchronous.py" not in result.stdout.str()


def test_it_may_skip_fail_and_use_what_pytest_has(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.harness
async def test_skips():
    await asyncio.sleep(1)
    pytest.skip("not today")

@pytest.mark.harness
async def test_raises():
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await asyncio.Event().wait()

@pytest.mark.xfail(strict=True)
@pytest.mark.harness
async def test_fails():
    pytest.fail("as it should")
""",
    )
    result.assert_outcomes(passed=1, skipped=1, xfailed=1)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("await asyncio.Event().wait()", "deadlock: 1 waits at test_it.py:7 in test_it"),
        (
            "asyncio.create_task(asyncio.Event().wait())",
            "leaked task: task 1.1, created at test_it.py:7 in test_it, never ends; *",
        ),
        (
            "await asyncio.open_connection('example.com', 80)",
            "test_it.py:7 in test_it used loop.create_connection(), which the simulation does not*",
        ),
        (
            "asyncio.current_task().cancel(); await asyncio.sleep(1)",
            "error:CancelledError: the main task was cancelled, though nobody outside*",
        ),
    ],
)
def test_what_it_leaves_behind_fails_it(project: pytest.Pytester, body: str, says: str) -> None:
    result = run(project, f"{MARK}async def test_it():\n    {body}\n", "-rN")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([says])


def test_what_is_swallowed_of_a_way_out_fails_it_too(project: pytest.Pytester) -> None:
    body = "    try: await asyncio.open_connection('example.com', 80)\n    except Exception: pass\n"
    result = run(project, f"{MARK}async def test_it():\n{body}", "-rN")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["mark the test with @pytest.mark.harness(time='real') to have it run in real time"]
    )


def test_what_it_may_leave_behind_is_said_by_its_marker(project: pytest.Pytester) -> None:
    leaks = "async def test_it():\n    asyncio.create_task(asyncio.Event().wait())\n"
    run(project, f"@pytest.mark.harness(allow='leaked task')\n{leaks}").assert_outcomes(passed=1)
    run(project, f"@pytest.mark.harness(allow=['leaked task'])\n{leaks}").assert_outcomes(passed=1)
    idle = "@pytest.mark.harness(allow='leaked task')\nasync def test_it(): pass"
    result = run(project, idle)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["allow names leaked task, and no run has shown it; *"])


def test_a_test_may_ask_for_real_time(project: pytest.Pytester) -> None:
    result = run(
        project,
        """
@pytest.mark.harness(time="real")
async def test_marked():
    assert type(asyncio.get_running_loop()).__module__.startswith("asyncio.")

async def test_served(harness_server):
    assert type(asyncio.get_running_loop()).__module__.startswith("asyncio.")
    harness_server("- say: One.\\n", check=False)
""",
    )
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("time='reel'", "the marker harness: unknown time 'reel' (did you mean 'real'?)*"),
        ("time='real', allow='error'", "the marker harness: allow is for tests in virtual time*"),
        ("time=5", "the marker harness: unknown time '5'; known: virtual, real"),
        ("allow='lost'", "the marker harness: unknown class of findings 'lost'*"),
        ("allow=5", "the marker harness: allow is 5; expected names of classes of findings, *"),
    ],
)
def test_a_mistake_of_the_marker_is_told_before_anything_is_run(
    project: pytest.Pytester, marker: str, says: str
) -> None:
    body = f"@pytest.mark.harness({marker})\nasync def test_it(): pass"
    result = run(project, body, "-rN", GO_ON)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([says])


def test_it_cannot_reach_another_machine_in_real_time_either(
    project: pytest.Pytester, refused: list[str]
) -> None:
    body = "async def test_it():\n    await asyncio.open_connection('example.com', 80)\n"
    result = run(project, f"@pytest.mark.harness(time='real')\n{body}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*NetworkUsed*example.com*"])
    refused.clear()
