"""Pinning runs: which files there are, what a difference looks like, what syrupy makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.location import PyTestLocation

from harness.testing.snapshot import NAME_MAX, SHOWN_MAX, TextFiles, file_name
from tests.testing.conftest import HELLO, ini, told, write

TEST = """\
def test_hello(harness_run, harness_snapshot):
    harness_snapshot(harness_run("hello.yaml"))
"""
FOLDER = Path("__snapshots__/test_one")
VIEWS = ("log", "notifications", "terminals", "requests", "trace")
"""The views that have something to show in `hello.yaml`."""


@pytest.fixture
def pinned(project: pytest.Pytester) -> pytest.Pytester:
    """A project with a scenario, and a test that pins it."""
    write(project.path / "hello.yaml", HELLO)
    project.makepyfile(test_one=TEST)
    project.runpytest("--snapshot-update").assert_outcomes(passed=1)
    return project


def said(result: pytest.RunResult) -> list[str]:
    """What the one failing test says."""
    lines = told(result)
    start = next(n for n, line in enumerate(lines) if re.match("_+ test_", line))
    return lines[start + 1 :]


def test_each_view_has_a_file_of_its_own(pinned: pytest.Pytester) -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"test_hello[{view}].txt" for view in VIEWS}
    assert (FOLDER / "test_hello[terminals].txt").read_bytes() == (
        b"turn 1: completed; row completed\n"
    )
    result = pinned.runpytest()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["5 snapshots passed."])


def test_what_is_not_pinned_yet_is_named_without_its_text(pinned: pytest.Pytester) -> None:
    for view in ("log", "trace"):
        (FOLDER / f"test_hello[{view}].txt").unlink()
    result = pinned.runpytest()
    result.assert_outcomes(failed=1)
    assert said(result) == [
        "not as pinned: log, trace",
        "--- log: the rows written and the events told, in order",
        "--- __snapshots__/test_one/test_hello[log].txt",
        "not pinned yet",
        "--- trace: everything, with times and task paths",
        "--- __snapshots__/test_one/test_hello[trace].txt",
        "not pinned yet",
        "to accept what is new, run pytest with --snapshot-update",
    ]


def test_every_view_that_differs_is_shown_with_its_difference(pinned: pytest.Pytester) -> None:
    write(pinned.path / "hello.yaml", HELLO.replace("Hi.", "Hello."))
    result = pinned.runpytest()
    result.assert_outcomes(failed=1)
    lines = said(result)
    assert lines[:10] == [
        "not as pinned: log, notifications, trace",
        "--- log: the rows written and the events told, in order",
        "--- __snapshots__/test_one/test_hello[log].txt",
        "@@ -2,7 +2,7 @@",
        "   row   turn_start turn#1",
        '   row   user_message "Hello"',
        '-  told  text {"delta":"Hi."}',
        '-  told  done {"text":"Hi.","tool_calls":[]}',
        '-  row   assistant_message "Hi."',
        '+  told  text {"delta":"Hello."}',
    ]
    result.stdout.fnmatch_lines(
        [
            "3 snapshots failed. 2 snapshots passed.",
            "FAILED test_one.py::test_hello - Failed: not as pinned: log, notifications, t*",
        ]
    )
    pinned.runpytest("--snapshot-update").assert_outcomes(passed=1)
    pinned.runpytest().assert_outcomes(passed=1)


def test_a_long_difference_is_cut(pinned: pytest.Pytester) -> None:
    write(
        pinned.path / "hello.yaml",
        HELLO.replace("{say: Hi.}", "{say: " + "Hello. " * 30 + ", chunk: 2}"),
    )
    lines = said(pinned.runpytest())
    assert any(re.fullmatch(r"\.\.\. and \d+ more lines", line) for line in lines)
    assert len(lines) == 1 + 3 * (2 + SHOWN_MAX + 1) + 1


def test_a_view_with_nothing_left_to_show_is_told(pinned: pytest.Pytester) -> None:
    write(FOLDER / "test_hello[trims].txt", "turn 1: removed 1 messages\n")
    result = pinned.runpytest()
    result.assert_outcomes(failed=1)
    assert said(result)[1:5] == [
        "--- trims: what each cut took away, and how the next request begins",
        "--- __snapshots__/test_one/test_hello[trims].txt",
        "@@ -1 +0,0 @@",
        "-turn 1: removed 1 messages",
    ]
    pinned.runpytest("--snapshot-update").assert_outcomes(passed=1)
    assert not (FOLDER / "test_hello[trims].txt").exists()


def test_a_file_that_no_test_asks_for_is_named_by_syrupy(pinned: pytest.Pytester) -> None:
    write(FOLDER / "test_gone[log].txt", "old\n")
    result = pinned.runpytest("--snapshot-details")
    result.stdout.fnmatch_lines(
        [
            "5 snapshots passed. 1 snapshot unused.",
            "Unused test_gone?log? (__snapshots__/test_one/test_gone?log?.txt)",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    pinned.runpytest("--snapshot-update")
    assert {path.name for path in FOLDER.iterdir()} == {f"test_hello[{view}].txt" for view in VIEWS}


def test_views_can_be_chosen_and_runs_told_apart(project: pytest.Pytester) -> None:
    write(project.path / "hello.yaml", HELLO)
    project.makepyfile(
        test_one="""
        def test_two(harness_run, harness_snapshot):
            harness_snapshot(harness_run("hello.yaml"), "terminals", "log")
            harness_snapshot(harness_run("hello.yaml").trace, "log", name="again")
        """
    )
    project.runpytest("--snapshot-update").assert_outcomes(passed=1)
    assert {path.name for path in FOLDER.iterdir()} == {
        "test_two[log].txt",
        "test_two[terminals].txt",
        "test_two[again.log].txt",
    }
    project.runpytest().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "harness_snapshot(result, 'trace', 'logs')",
            "*Failed: unknown view 'logs' (did you mean 'log'?); known: log, notifications, *",
        ),
        (
            "harness_snapshot(result); harness_snapshot(result)",
            "*Failed: log is pinned in this test already; give another name=...",
        ),
        (
            "harness_snapshot(None)",
            "*Failed: None is not a run; expected what harness_run gives, *",
        ),
    ],
)
def test_a_mistake_is_shown_at_the_line_of_the_test(
    project: pytest.Pytester, line: str, message: str
) -> None:
    project.makepyfile(
        test_one=f"""
        def test_one(harness_run, harness_snapshot):
            result = harness_run({HELLO!r})
            {line}
        """
    )
    result = project.runpytest("--snapshot-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"> *{line}", message])
    assert "snapshot.py" not in result.stdout.str()


@pytest.mark.parametrize("option", ["--snapshot-update", "-rf"])
def test_a_view_that_was_asked_for_must_have_something_to_show(
    project: pytest.Pytester, option: str
) -> None:
    project.makepyfile(
        test_one=f"""
        def test_one(harness_run, harness_snapshot):
            harness_snapshot(harness_run({HELLO!r}), "terminals", "trims")
        """
    )
    result = project.runpytest(option)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["--- trims: *", "--- *test_one?trims?.txt", "this run has nothing to show here"]
    )


def test_names_of_files_are_safe_on_any_system(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_one=f"""
        import pytest

        IDS = ["a/b", "a:b", "ab", "x" * 300, "x" * 299 + "y", "a?*<>|"]

        @pytest.mark.parametrize("number", range(6), ids=IDS)
        def test_one(number, harness_run, harness_snapshot):
            harness_snapshot(harness_run({HELLO!r}), "terminals")

        class TestClass:
            def test_one(self, harness_run, harness_snapshot):
                harness_snapshot(harness_run({HELLO!r}), "terminals")
        """
    )
    # A process of its own: before its version 7, syrupy warns when it writes names like these.
    project.runpytest_subprocess("--snapshot-update").assert_outcomes(passed=7)
    names = sorted(path.name for path in FOLDER.iterdir())
    assert names == [
        "TestClass.test_one[terminals].txt",
        "test_one[a%2fb][terminals].txt",
        "test_one[a%3ab][terminals].txt",
        "test_one[a%3f%2a%3c%3e%7c][terminals].txt",
        "test_one[ab][terminals].txt",
        *[name for name in names if "xxx" in name],
    ]
    assert len(names) == 7
    assert all(len(name) <= NAME_MAX + len("[terminals].txt") for name in names)
    project.runpytest("-W", "error").assert_outcomes(passed=7)
    result = project.runpytest("-k", "TestClass")
    result.stdout.fnmatch_lines(["1 snapshot passed."])
    result = project.runpytest("test_one.py::test_one[a/b]", "--snapshot-update")
    assert sorted(path.name for path in FOLDER.iterdir()) == names


def test_a_file_is_a_test_s_own_by_its_whole_name(request: pytest.FixtureRequest) -> None:
    location = PyTestLocation(request.node)
    folder = Path(__file__).parent / "__snapshots__" / "test_snapshot"
    name = "test_a_file_is_a_test_s_own_by_its_whole_name"

    def owned(path: Path) -> bool:
        return TextFiles.matches_test_location(test_location=location, snapshot_location=str(path))

    for own in (f"{name}.txt", f"{name}.2.txt", f"{name}[log].txt", f"{name}[two.log].txt"):
        assert owned(folder / own)
    for other in (f"{name}_more[log].txt", f"{name}[one][log].txt", f"a_{name}.txt"):
        assert not owned(folder / other)
    assert not owned(folder.parent / "test_other" / f"{name}.txt")


def test_two_names_never_become_one() -> None:
    tests = ["a/b", "a%2fb", "a\\b", "ab", "x" * 300, "x" * 301, "é" * 130, "\ud800" * 130]
    assert len({file_name(test) for test in tests}) == len(tests)
    assert file_name("test_plain[one-two.three]") == "test_plain[one-two.three]"


def test_scenario_files_are_pinned_beside_themselves(project: pytest.Pytester) -> None:
    mended = "harness_agent=mended_agent:MendedAgent"
    ini(project, "harness_scenarios = scenarios", mended, "harness_pin = true")
    project.runpytest("--snapshot-update", "-W", "error").assert_outcomes(passed=1)
    folder = project.path / "scenarios/__snapshots__/weather.yaml"
    assert {path.name for path in folder.iterdir()} == {
        f"agent[{view}].txt" for view in ("terminals", "synthesis", "requests", "trace")
    }
    assert (folder / "agent[terminals].txt").read_text() == (
        "turn 1: cancelled\nturn 2: completed\n"
    )
    project.runpytest().assert_outcomes(passed=1)
    file = project.path / "scenarios/weather.yaml"
    write(file, file.read_text().replace("Still sunny", "Rain now"))
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["not as pinned: trace", '-*2.1 text "Still sunny."'])
    file.rename(project.path / "scenarios/other.yaml")
    result = project.runpytest()
    result.stdout.fnmatch_lines(["4 snapshots failed. 4 snapshots unused."])
    project.runpytest("-o", "harness_pin=false").assert_outcomes(passed=1)


def test_files_that_differ_in_their_ending_only_are_pinned_apart(
    project: pytest.Pytester,
) -> None:
    ini(project, "harness_pin = true")
    for name, text in {"x.yaml": "Hi", "x.yml": "Hello"}.items():
        write(project.path / name, HELLO.replace("Hi", text))
    project.runpytest("x.yaml", "x.yml", "--snapshot-update").assert_outcomes(passed=2)
    project.runpytest("x.yaml", "x.yml").assert_outcomes(passed=2)
    assert {path.name for path in (project.path / "__snapshots__").iterdir()} == {"x.yaml", "x.yml"}


def test_without_syrupy_it_is_said_what_to_install(pinned: pytest.Pytester) -> None:
    result = pinned.runpytest("-p", "no:syrupy")
    result.assert_outcomes(errors=1)
    assert (
        "harness_snapshot builds on syrupy, which is not installed or switched off: "
        "pip install 'agent-loop-harness[test]'"
    ) in result.outlines


def test_another_fixture_of_syrupy_s_name_is_told(pinned: pytest.Pytester) -> None:
    pinned.makeconftest("import pytest\nsnapshot = pytest.fixture(lambda: 3, name='snapshot')")
    result = pinned.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*UsageError: the fixture snapshot is 3, not syrupy's, on which*"])
