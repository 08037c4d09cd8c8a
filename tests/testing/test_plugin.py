"""The pytest plugin: which files are tests, what they run on, what is said, what it costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.runner.agents import at_level, subject_for
from harness.runner.cassettes.taped import taped
from harness.runner.files.load import load
from harness.transport.cassettes.file import save
from tests.test_exports import loaded_by
from tests.testing.conftest import HELLO, ini, last, told, write

SCRIPTS = Path(sys.executable).parent
NAMED = "harness_scenarios = scenarios"
MINE = "harness_agent=my_agent:MyAgent"
JSON = '{"about": "It answers.", "turns": [{"user": "Hello", "model": [{"say": "Hi."}]}]}'
MENDED = "harness_agent=mended_agent:MendedAgent"


def collected(project: pytest.Pytester, *arguments: str) -> list[str]:
    """The ids of the tests that pytest finds."""
    result = project.runpytest("--collect-only", "-q", *arguments)
    return [line for line in result.outlines if "::" in line]


# --- which files


def test_without_a_setting_no_yaml_is_looked_at(project: pytest.Pytester) -> None:
    write(project.path / "scenarios/broken.yaml", "turns: [\n")
    project.makepyfile(test_one="def test_one(): pass")
    assert collected(project) == ["test_one.py::test_one"]
    assert collected(project, "scenarios") == []


def test_scenarios_below_the_named_folders_are_tests(project: pytest.Pytester) -> None:
    ini(project, "harness_scenarios = scenarios more/one.yml", MENDED)
    write(project.path / "scenarios/.hidden.yaml", "turns: [\n")
    write(project.path / "scenarios/notes.txt", "turns: [\n")
    write(project.path / "more/one.yml", HELLO)
    write(project.path / "more/two.yml", HELLO)
    write(project.path / "scenarios/deep/hello.json", JSON)
    assert collected(project) == [
        "more/one.yml::agent",
        "scenarios/deep/hello.json::agent",
        "scenarios/weather.yaml::agent",
    ]
    assert collected(project, "more") == ["more/one.yml::agent"]


def test_a_file_that_is_given_is_a_test_without_a_setting(project: pytest.Pytester) -> None:
    write(project.path / "hello.yaml", HELLO)
    write(project.path / "hello.json", JSON)
    assert collected(project, "hello.yaml") == ["hello.yaml::turn"]
    assert collected(project, "hello.yaml::turn") == ["hello.yaml::turn"]
    assert collected(project, "hello.json", "-o", MINE) == ["hello.json::agent"]


def test_a_given_file_of_others_is_left_to_others(project: pytest.Pytester) -> None:
    write(project.path / "test_api.tavern.yaml", "---\nname: !x one\n---\nstages: []\n")
    project.makeconftest(
        """
        import pytest

        class Theirs(pytest.File):
            def collect(self):
                yield TheirItem.from_parent(self, name="theirs")

        class TheirItem(pytest.Item):
            def runtest(self):
                pass

        def pytest_collect_file(file_path, parent):
            if file_path.name.endswith(".tavern.yaml"):
                return Theirs.from_parent(parent, path=file_path)
        """
    )
    project.runpytest("test_api.tavern.yaml").assert_outcomes(passed=1)


def test_a_file_of_others_among_scenarios_is_passed_over(project: pytest.Pytester) -> None:
    ini(project, NAMED, MENDED)
    write(project.path / "scenarios/settings.yaml", "colour: blue\n")
    assert collected(project) == ["scenarios/weather.yaml::agent"]


def test_a_plain_run_has_the_scenarios_beside_testpaths(project: pytest.Pytester) -> None:
    ini(project, NAMED, MENDED, "testpaths = tests")
    write(project.path / "tests/test_one.py", "def test_one(): pass\n")
    assert collected(project) == ["tests/test_one.py::test_one", "scenarios/weather.yaml::agent"]
    assert collected(project, "tests") == ["tests/test_one.py::test_one"]
    ini(project, NAMED, MENDED, "testpaths = scenarios")
    assert collected(project) == ["scenarios/weather.yaml::agent"]


def test_a_folder_that_is_not_there_is_told_at_once(project: pytest.Pytester) -> None:
    ini(project, "harness_scenarios = scenarois")
    result = project.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    folder = project.path / "scenarois"
    assert result.errlines[0] == (
        f"ERROR: harness_scenarios names {folder}, and there is nothing there"
    )


def test_broken_files_are_told_by_file_and_line_only(project: pytest.Pytester) -> None:
    ini(project, NAMED)
    (project.path / "scenarios/weather.yaml").unlink()
    write(project.path / "scenarios/bad.yaml", HELLO.replace("user", "usr").replace("say", "sya"))
    write(project.path / "scenarios/worse.yaml", "turns: [\n")
    result = project.runpytest("-rN", "--no-header")
    result.assert_outcomes(errors=2)
    start = next(n for n, line in enumerate(result.outlines) if "= ERRORS =" in line)
    said = [line for line in result.outlines[start + 1 :] if line[0] not in "_!="]
    assert [line.split(": ")[0] for line in said] == [
        "scenarios/bad.yaml:4:5",
        "scenarios/bad.yaml:5:14",
        "scenarios/worse.yaml:2:1",
        "could not be run",
    ]
    assert said[0].startswith(
        "scenarios/bad.yaml:4:5: a turn has no key 'usr' (did you mean 'user'"
    )


def test_a_file_that_nobody_runs_is_an_error(project: pytest.Pytester) -> None:
    ini(project, NAMED)
    result = project.runpytest("-rN")
    result.assert_outcomes(errors=1)
    assert (
        "scenarios/weather.yaml names no loops to run it on; add `loops: [turn]` to it, or say "
        "what agent to run it on: set harness_agent in pytest's settings, or define the fixture "
        "harness_build beside or above this file"
    ) in result.outlines


def refused(project: pytest.Pytester, *arguments: str) -> str:
    """What pytest says, where it does not even start."""
    result = project.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    return "\n".join([*result.outlines, *result.errlines])


@pytest.mark.parametrize("folder", ["build", ".cases", "build/cases"])
def test_a_folder_that_pytest_passes_over_is_told(project: pytest.Pytester, folder: str) -> None:
    ini(project, f"harness_scenarios = {folder}")
    write(project.path / folder / "hello.yaml", HELLO)
    said = refused(project)
    assert f"harness_scenarios names {project.path / folder}, which gave no test: pytest " in said
    assert "its setting norecursedirs has '" in said
    assert collected(project, folder) == [f"{folder}/hello.yaml::turn"]
    write(project.path / "tests/test_one.py", "def test_one(): pass\n")
    project.runpytest("tests").assert_outcomes(passed=1)
    project.runpytest(f"--ignore={folder}").assert_outcomes(passed=1)


def test_a_folder_without_scenarios_is_told_in_a_plain_run(project: pytest.Pytester) -> None:
    ini(project, NAMED)
    write(project.path / "scenarios/weather.yaml", "colour: blue\n")
    said = refused(project)
    assert "which gave no test: pytest finds no scenario there; expected files with the" in said
    write(project.path / "scenarios/weather.yaml", HELLO)
    project.runpytest("-k", "nothing").assert_outcomes(deselected=1)


def test_a_folder_outside_the_root_is_run(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project.mkdir("inner")
    write(root / "pytest.ini", "[pytest]\nharness_scenarios = ../cases\n")
    write(project.path / "cases/hello.yaml", HELLO)
    monkeypatch.chdir(root)
    project.runpytest().assert_outcomes(passed=1)


@pytest.mark.parametrize("name", ["scenarios/bad.yaml", "bad.yaml", "bad.json"])
def test_a_scenario_with_both_keys_mistyped_is_told(project: pytest.Pytester, name: str) -> None:
    ini(project, NAMED, MENDED)
    text = JSON if name.endswith("json") else HELLO
    write(project.path / name, text.replace("about", "abuot").replace("turns", "turn"))
    result = project.runpytest(*([] if "/" in name else [name]))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"{name}:*: a scenario has no key 'turn' (did you mean 'turns'*"])


def test_a_file_of_others_below_a_root_is_told_where_it_is_given(project: pytest.Pytester) -> None:
    ini(project, NAMED, MENDED)
    write(project.path / "scenarios/settings.yaml", "colour: blue\n")
    project.runpytest("scenarios/settings.yaml").assert_outcomes(errors=1)
    write(project.path / "scenarios/settings.json", "[1]")
    project.runpytest("scenarios/settings.json").assert_outcomes(errors=1)


def test_a_setting_that_is_mistyped_is_told(project: pytest.Pytester) -> None:
    ini(project, "harness_scenarois = scenarios")
    said = refused(project)
    assert "unknown setting 'harness_scenarois' (did you mean 'harness_scenarios'?); known" in said
    project.makeconftest("def pytest_addoption(parser): parser.addini('harness_scenarois', '')")
    assert project.runpytest().ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("name", ["harness_agent", "harness_scenarios", "harness_pin"])
def test_a_fixture_named_like_a_setting_is_told(project: pytest.Pytester, name: str) -> None:
    project.makepyfile(
        f"import pytest\n@pytest.fixture\ndef {name}(): return 3\ndef test_one(): pass"
    )
    assert f"there is a fixture {name}, but {name} is a setting of pytest's" in refused(project)


# --- what they run on


def test_a_build_fixture_that_gives_none_fails(project: pytest.Pytester) -> None:
    ini(project, NAMED)
    write(project.path / "scenarios/weather.yaml", HELLO)
    project.makeconftest("import pytest\n@pytest.fixture\ndef harness_build(): 'my_agent:MyAgent'")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the fixture harness_build gave None; has it no `return`? *"])


def test_the_loops_of_the_file_are_tests_each(project: pytest.Pytester) -> None:
    ini(project, NAMED)
    write(project.path / "scenarios/weather.yaml", HELLO)
    result = project.runpytest("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["scenarios/weather.yaml::turn PASSED *"])


def test_the_fixture_goes_before_the_setting(project: pytest.Pytester) -> None:
    ini(project, NAMED, MINE)
    project.runpytest().assert_outcomes(failed=1)
    project.makeconftest(
        """
        import pytest
        from mended_agent import MendedAgent

        @pytest.fixture
        def harness_build():
            return MendedAgent
        """
    )
    project.syspathinsert()
    project.runpytest().assert_outcomes(passed=1)


def test_fixtures_marks_and_parameters_work_as_in_any_test(project: pytest.Pytester) -> None:
    ini(project, NAMED)
    project.makeconftest(
        """
        import pytest

        @pytest.fixture(params=["my_agent:MyAgent", "mended_agent:MendedAgent", ""], ids=str)
        def harness_build(request):
            return request.param

        @pytest.fixture(autouse=True)
        def around(request):
            print("about", request.function.__doc__)
            yield
            print("after", request.node.name)

        def pytest_collection_modifyitems(items):
            for item in items:
                if "My" in item.name:
                    item.add_marker(pytest.mark.xfail(strict=True))
        """
    )
    result = project.runpytest("-rA", "--strict-markers", "-m", "harness")
    result.assert_outcomes(passed=1, xfailed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*names no loops; say what to run it on: *",
            "about A turn stopped while a tool runs leaves a conversation that can go on.",
            "after agent?mended_agent:MendedAgent?",
            "PASSED scenarios/weather.yaml::agent?mended_agent:MendedAgent?",
        ]
    )
    project.runpytest("-m", "not harness").assert_outcomes(deselected=3)


def test_the_setting_finds_a_module_at_the_root(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    ini(project, NAMED, MENDED)
    monkeypatch.chdir(project.path / "scenarios")
    project.runpytest().assert_outcomes(passed=1)


def test_a_setting_that_names_nothing_fails_the_test(project: pytest.Pytester) -> None:
    ini(project, NAMED, "harness_agent=my_agent:MyAgnet")
    result = project.runpytest("-rN", "--no-header")
    result.assert_outcomes(failed=1)
    assert (
        "my_agent: unknown name 'MyAgnet' (did you mean 'MyAgent'?); known: MyAgent"
        in result.outlines
    )
    assert "Traceback" not in result.stdout.str()


# --- what is said

FAILED = """\
expectation; outcomes: completed
FAIL scenarios/hello on turn (safe)
scenarios/hello.yaml:6: turn 1: expected outcome error, found completed
    0s       1      log_row             assistant_message "Hi."
    0s       1      log_row             turn_end turn-0 completed
    0s       1      loop_event          turn_end {"error":null,"outcome":"completed"}
  > 0s       -      turn_ended          turn 1 completed
run it again:
pytest -p no:syrupy scenarios/hello.yaml::turn
"""


def test_a_failure_is_the_report_and_nothing_else(project: pytest.Pytester) -> None:
    ini(project, NAMED)
    (project.path / "scenarios/weather.yaml").unlink()
    write(project.path / "scenarios/hello.yaml", HELLO.replace("completed", "error"))
    result = project.runpytest("--no-header", "-rN", "-p", "no:syrupy")
    lines = told(result)
    start = next(n for n, line in enumerate(lines) if line.startswith("____"))
    assert "\n".join(lines[start + 1 :]) + "\n" == FAILED


def test_the_summary_says_what_is_broken(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ini(project, NAMED, MINE)
    project.runpytest().stdout.fnmatch_lines(
        [
            "FAILED scenarios/weather.yaml::agent - Failed: RESUME, expectation; "
            "outcomes: cancelled, error, error"
        ]
    )


def test_what_a_good_run_leaves_open_is_shown_on_request(project: pytest.Pytester) -> None:
    allowed = "allow: [{invariant: RESUME, why: it will be mended}]\nturns:\n"
    ini(project, NAMED)
    write(project.path / "scenarios/weather.yaml", HELLO)
    result = project.runpytest("-rP")
    result.stdout.fnmatch_lines(["*Captured harness call*", "not judged: *EFFECT-ONCE*"])
    result = project.runpytest()
    assert "not judged: " not in result.stdout.str()
    write(
        project.path / "scenarios/weather.yaml",
        KNOWN.replace("turns:\n", allowed),
    )
    project.runpytest("-rP", "-o", MINE).stdout.fnmatch_lines(
        ["accepted: RESUME, it will be mended"]
    )


KNOWN = """\
about: The next question is refused.
tools: {slow: {returns: 1, takes: 1s}}
turns:
  - user: Go.
    model: [{calls: [{slow: {}}]}]
    cancel: {after: tool_started slow}
"""


def test_a_pinned_failure_of_a_foreign_agent_can_be_run_again(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five lines, a loop written by hand, its classic bug, and the line that shows it again."""
    monkeypatch.setattr(sys, "argv", ["/somewhere/pytest/__main__.py"])
    write(
        project.path / "tests/test_mine.py",
        """\
from my_agent import MyAgent


def test_it_goes_on_after_a_cancel(harness_run):
    harness_run("scenarios/weather.yaml", MyAgent)
""",
    )
    ini(project, "pythonpath = .")
    result = project.runpytest("-rN", "-p", "no:cacheprovider", "-p", "no:syrupy")
    result.assert_outcomes(failed=1)
    found = [line for line in result.outlines if line.startswith("scenarios/weather.yaml:12: ")]
    assert found[0].startswith(
        "scenarios/weather.yaml:12: RESUME in turn 2: the request after a cancelled turn is not "
        "valid: messages[1]: no result follows for the calls call_1_1_1, call_1_1_2"
    )
    again = told(result)[-1]
    assert again == (
        "python -m pytest -p no:cacheprovider -p no:syrupy "
        "tests/test_mine.py::test_it_goes_on_after_a_cancel"
    )
    code, text = in_shell(f"{again} -rN", project.path)
    assert code == 1
    assert found[0] in text


def in_shell(command: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_line_to_run_again_is_quoted_and_starts_where_pytest_did(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    ini(project, NAMED)
    write(project.path / "scenarios/two words.yaml", HELLO.replace("completed", "error"))
    monkeypatch.chdir(project.path / "scenarios")
    result = project.runpytest("-rN", "-p", "no:syrupy", "two words.yaml", "-o", "xfail_strict=1")
    result.assert_outcomes(failed=1)
    again = last(result)
    settings = ["-p", "no:syrupy", "-o", "xfail_strict=1"]
    assert again == ["pytest", *settings, "two words.yaml::turn"]
    project.runpytest(*again[1:]).assert_outcomes(failed=1)


def test_a_file_on_another_drive_is_named_whole(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_way(path: object, start: object) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr("harness.testing.running.relpath", no_way)
    file = project.path / "hello.yaml"
    write(file, HELLO.replace("completed", "error"))
    result = project.runpytest("-rN", "-p", "no:syrupy", "hello.yaml")
    assert told(result)[-1] == f"pytest -p no:syrupy {file}::turn"


def test_the_line_to_run_again_has_the_settings_file(project: pytest.Pytester) -> None:
    write(project.path / "other.ini", f"[pytest]\n{NAMED}\naddopts = -p no:syrupy\n")
    write(project.path / "scenarios/weather.yaml", HELLO.replace("completed", "error"))
    result = project.runpytest("-rN", "-c", "other.ini", "--rootdir", ".")
    assert told(result)[-1] == "pytest -c other.ini --rootdir . scenarios/weather.yaml::turn"


# --- the fixture


def run_test(project: pytest.Pytester, body: str, *arguments: str) -> pytest.RunResult:
    """Run one test whose body is given; `run` is the fixture."""
    lines = "\n".join([f"    {line}" for line in body.splitlines()])
    write(project.path / "tests/test_one.py", f"def test_one(harness_run):\n{lines}\n")
    return project.runpytest("tests", "-rN", *arguments)


def test_replies_may_come_from_a_cassette(project: pytest.Pytester) -> None:
    write(project.path / "hello.yaml", HELLO)
    write(project.path / "tests/conftest.py", "")
    case = load(project.path / "hello.yaml")
    _was, made = taped(case, at_level(subject_for("turn", case), "http").build)
    save(project.path / "kept.yaml", made)
    body = """\
from pathlib import Path
from harness.transport.cassettes.file import load
assert harness_run("hello.yaml", cassette="kept.yaml").subject.cassette is not None
made = load(Path(__file__).parents[1] / "kept.yaml")
assert harness_run("hello.yaml", cassette=made, level="server").ok
"""
    run_test(project, body).assert_outcomes(passed=1)
    (project.path / "tests").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.path / "tests")
        project.runpytest("..", "-rN").assert_outcomes(passed=1)
    write(project.path / "kept.yaml", "version: 1")
    broken = run_test(project, 'harness_run("hello.yaml", cassette="kept.yaml")')
    broken.assert_outcomes(failed=1)


def test_a_level_may_be_chosen(project: pytest.Pytester) -> None:
    write(project.path / "hello.yaml", HELLO)
    body = """\
result = harness_run("hello.yaml", level="http:anthropic")
assert "received" in [entry.event.__struct_config__.tag for entry in result.trace]
"""
    run_test(project, body).assert_outcomes(passed=1)
    broken = run_test(project, 'harness_run("hello.yaml", level="htp")')
    broken.stdout.fnmatch_lines(["*unknown level 'htp'*"])


def test_a_scenario_is_a_path_a_text_or_an_object(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project.path / "hello.yaml", HELLO)
    write(project.path / "tests/near.yaml", HELLO.replace("It answers", "Near"))
    body = f"""\
from pathlib import Path
from harness import load
assert harness_run("hello.yaml").scenario.about == "It answers."
assert harness_run(Path("hello.yaml")).ok
assert harness_run({HELLO!r}).scenario.source == "<scenario>"
assert harness_run(load("hello.yaml")).ok
"""
    run_test(project, body).assert_outcomes(passed=1)
    monkeypatch.chdir(project.path / "tests")
    body = """\
assert harness_run("../hello.yaml").scenario.source == "../hello.yaml"
assert harness_run("near.yaml").scenario.about == "Near."
assert harness_run("hello.yaml").scenario.about == "It answers."
"""
    ini(project)
    write(project.path / "tests/test_one.py", "")
    lines = "\n".join([f"    {line}" for line in body.splitlines()])
    write(project.path / "tests/test_one.py", f"def test_one(harness_run):\n{lines}\n")
    project.runpytest("--rootdir", "..").assert_outcomes(passed=1)


def test_an_agent_is_a_function_a_name_or_a_loop(project: pytest.Pytester) -> None:
    write(project.path / "hello.yaml", HELLO)
    body = """\
from harness.runner.agents import Subject
from my_agent import MyAgent
assert harness_run("hello.yaml").subject.name == "turn (safe)"
assert harness_run("hello.yaml", MyAgent).subject.name == "MyAgent"
assert harness_run("hello.yaml", agent="my_agent:MyAgent").subject.name == "my_agent:MyAgent"
assert harness_run("hello.yaml", "turn").subject.name == "turn (safe)"
assert harness_run("hello.yaml", Subject("mine", MyAgent)).subject.name == "mine"
"""
    run_test(project, body, "-o", "pythonpath=.").assert_outcomes(passed=1)


def test_the_result_is_given_whatever_came_out_where_it_is_not_checked(
    project: pytest.Pytester,
) -> None:
    body = """\
result = harness_run("scenarios/weather.yaml", "my_agent:MyAgent", check=False)
assert not result.ok
assert harness_run("scenarios/weather.yaml", "mended_agent:MendedAgent").ok
"""
    run_test(project, body).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("harness_run(None)", "None is not a scenario; expected the path of a scenario file, *"),
        ("harness_run({'turns': []})", "{'turns': []} is not a scenario; expected the path *"),
        ("harness_run('about: ' * 2000)", "'about: *is not a path: File name too long; expected *"),
        ("harness_run('a\\0b')", "'a?x00b' is not a path: embedded null byte; expected *"),
        ("harness_run('hallo.yaml')", "there is no hallo.yaml (did you mean 'hello.yaml'?)*"),
        ("harness_run('about: x\\nturn: []')", "<scenario>:2:1: a scenario has no key 'turn' *"),
        ("harness_run('hello.yaml', 'trun')", "unknown loop 'trun' (did you mean 'turn'?)*"),
        ("harness_run('scenarios/weather.yaml')", "*weather.yaml names no loops; say what to *"),
        (
            "harness_run(Scenario('a', loops=('turn', 'other')))",
            "the scenario names several loops, turn, other; say what to run it on: *",
        ),
        (
            "harness_run('hello.yaml', lambda env: 3)",
            "*returned an object of class int whose `turn` is missing*",
        ),
    ],
)
def test_a_mistake_fails_the_test_with_what_to_do(
    project: pytest.Pytester, call: str, said: str
) -> None:
    write(project.path / "hello.yaml", HELLO)
    result = run_test(project, f"from harness import Scenario\n{call}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said.replace("[", "[[]")])
    assert "Traceback" not in result.stdout.str()
    assert "running.py" not in result.stdout.str()


@pytest.mark.parametrize(
    "name", ["harness_run", "harness_sweep", "harness_explore", "harness_snapshot"]
)
def test_a_fixture_that_is_never_called_is_a_warning(project: pytest.Pytester, name: str) -> None:
    project.makepyfile(
        f"""
        import pytest

        def test_idle({name}): pass

        def test_skipped({name}): pytest.skip("before it is called")
        """
    )
    result = project.runpytest("-W", "default")
    result.assert_outcomes(passed=1, skipped=1, warnings=1)
    result.stdout.fnmatch_lines([f"*HarnessNotUsed: the test asks for {name} and never calls it"])


def test_a_test_that_uses_it_cannot_reach_another_machine(
    project: pytest.Pytester, refused: list[str]
) -> None:
    project.makepyfile(
        """
        import contextlib
        import socket

        def reach():
            with contextlib.suppress(Exception):
                socket.gethostbyname("api.example.invalid")

        def test_reaches(harness_run):
            harness_run.used = True
            reach()

        def test_is_told(harness_run):
            harness_run.used = True
            socket.gethostbyname("api.example.invalid")

        def test_has_nothing_to_do_with_it():
            reach()
        """
    )
    result = project.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*:6 in reach reached for api.example.invalid, and only this*"])
    result.stdout.fnmatch_lines([">*socket.gethostbyname*", "E*NetworkUsed: *:14 in test_is_told*"])
    result.stdout.no_fnmatch_line("*pytest_runtest_call*")
    ini(project, "harness_network = true")
    result = project.runpytest("-p", "no:cacheprovider", "-k", "not told")
    result.assert_outcomes(passed=2, deselected=1)
    refused.clear()


# --- beside others


def test_fixtures_of_its_own_that_are_named_like_ours_go_before_them(
    project: pytest.Pytester,
) -> None:
    project.makepyfile(
        """
        from functools import partial
        from unittest.mock import MagicMock

        import pytest

        @pytest.fixture
        def harness_sweep(): return MagicMock()

        @pytest.fixture
        def harness_explore(harness_explore): return partial(harness_explore, runs=2)

        async def leads_nowhere(): pass

        def test_has_nothing_to_do_with_ours(harness_sweep): assert harness_sweep is None

        def test_stands_before_ours(harness_explore): pass

        def test_uses_ours(harness_explore): harness_explore(leads_nowhere)
        """
    )
    result = project.runpytest("-p", "no:cacheprovider", "-W", "default")
    result.assert_outcomes(passed=2, failed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*HarnessNotUsed: the test asks for harness_explore and never calls it"]
    )


def test_what_is_asked_for_on_the_way_counts_as_well(
    project: pytest.Pytester, refused: list[str]
) -> None:
    write(
        project.path / "test_it.py",
        """
import socket
import unittest

import pytest


class TestIt(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def ours(self, request):
        self.run_scenario = request.getfixturevalue("harness_run")

    def test_runs(self):
        assert self.run_scenario("scenarios/weather.yaml", "turn").ok

    def test_reaches(self):
        socket.gethostbyname("api.example.invalid")
""",
    )
    write(
        project.path / "shown.py",
        '"""\n>>> getfixture("harness_run")("scenarios/weather.yaml", "turn").ok\nTrue\n"""\n',
    )
    result = project.runpytest("-p", "no:cacheprovider", "--doctest-modules")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*NetworkUsed*api.example.invalid*", "2 scenarios run"])
    refused.clear()


def test_it_is_light_where_it_is_not_used(project: pytest.Pytester) -> None:
    new = loaded_by("import harness.testing.plugin") - loaded_by("import pytest")
    assert {name for name in new if name.startswith("harness")} == {
        "harness",
        "harness.testing",
        "harness.testing.plugin",
    }  # pytest loads its other parts beside it
    assert not new & {"asyncio", "hypothesis", "msgspec", "rich", "syrupy", "typer", "yaml"}
    project.makepyfile(
        """
        import sys

        def test_nothing_more_is_loaded(pytestconfig):
            assert pytestconfig.pluginmanager.hasplugin("harness")
            names = {name for name in sys.modules if name.startswith("harness")}
            assert names == {
                "harness",
                "harness.testing",
                "harness.testing.cassette_plugin",
                "harness.testing.options_plugin",
                "harness.testing.plugin",
                "harness.testing.results_plugin",
            }
            assert "vcr" not in sys.modules
        """
    )
    write(project.path / "settings.yaml", "colour: blue\n")
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_it_can_be_switched_off(project: pytest.Pytester) -> None:
    ini(project, NAMED, MENDED)
    result = project.runpytest("-p", "no:harness")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_it_works_whatever_the_import_mode(project: pytest.Pytester, mode: str) -> None:
    ini(project, NAMED, MENDED)
    write(project.path / "scenarios/conftest.py", "")
    project.makepyfile(test_one="def test_one(harness_run): harness_run('scenarios/weather.yaml')")
    project.runpytest(f"--import-mode={mode}").assert_outcomes(passed=2)


def test_its_settings_are_explained(project: pytest.Pytester) -> None:
    text = project.runpytest("--help").stdout.str()
    assert "harness_scenarios (paths):" in text
    assert "harness_agent (string):" in text
    assert "harness_cassette_mode (string):" in text
    text = project.runpytest("--fixtures", "-q").stdout.str()
    for name in ("harness_build", "harness_cassette", "harness_run", "harness_snapshot"):
        assert f"{name} -- " in text
    text = project.runpytest("--markers").stdout.str()
    assert "harness(loops, policies, levels, time, allow): a test that is a scenario file" in text
    assert "@pytest.mark.cassette(name, mode, " in text
