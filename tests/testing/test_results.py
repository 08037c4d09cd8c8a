"""What all tests come to: the block in the terminal, files of JSON and HTML, JUnit's properties."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.report.json_report import schema
from tests.cli.conftest import SLOW
from tests.testing.conftest import HELLO, ini, write
from tests.testing.test_plugin import NAMED

TEST = """
import asyncio

from harness import choose


async def swept():
    await asyncio.sleep(1)


async def searched():
    if choose("late", 2):
        raise ValueError("late")


def test_run(harness_run):
    harness_run("scenarios/hello.yaml", check=False)


def test_sweep(harness_sweep):
    harness_sweep(swept)


def test_search(harness_explore):
    harness_explore(searched)
"""


@pytest.fixture
def suite(project: pytest.Pytester) -> pytest.Pytester:
    """A run, a sweep that passes, and a search that finds something."""
    (project.path / "scenarios/weather.yaml").unlink()
    write(project.path / "scenarios/hello.yaml", HELLO)
    write(project.path / "test_all.py", TEST)
    return project


def block(result: pytest.RunResult) -> list[str]:
    """What is said of all tests together."""
    lines = result.outlines
    heads = [at for at, line in enumerate(lines) if line.strip("=") == " harness "]
    if not heads:
        return []
    end = next(at for at, line in enumerate(lines) if at > heads[0] and line.startswith("="))
    return lines[heads[0] + 1 : end]


def read(folder: Path, name: str = "out.json") -> Any:
    value = json.loads((folder / name).read_text(encoding="utf-8"))
    jsonschema.validate(value, schema())
    return value


def test_all_tests_are_summed_up(suite: pytest.Pytester) -> None:
    found = block(suite.runpytest())
    assert found[:3] == [
        "1 scenario run",
        "1 sweep: 3 of 3 cancel points reached",
        "1 search: 2 schedules tried",
    ]
    assert found[3].startswith("not judged in any scenario: ")
    assert found[3].endswith(" invariants")
    assert block(suite.runpytest("-q")) == found
    assert block(suite.runpytest("-qq")) == []
    named = " ".join(block(suite.runpytest("-v"))[3:])
    assert "EFFECT-ONCE, " in named


def test_a_narrow_terminal_gets_narrow_lines(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = block(suite.runpytest("-v"))
    assert lines[1:3] == ["1 sweep: 3 of 3 cancel points reached", "1 search: 2 schedules tried"]
    assert max(map(len, lines)) <= 40


def test_files_are_written_where_pytest_has_no_terminal(suite: pytest.Pytester) -> None:
    result = suite.runpytest("-p", "no:terminal", "--harness-json", "out.json", "-k", "run")
    assert result.ret == pytest.ExitCode.OK
    assert len(read(suite.path)["results"]) == 1


def test_suites_that_do_not_use_it_hear_nothing(suite: pytest.Pytester) -> None:
    write(suite.path / "test_all.py", "def test_one(): pass")
    result = suite.runpytest()
    assert block(result) == []
    assert "harness" not in result.outlines[-2]


@pytest.mark.nightly  # it starts processes
def test_it_is_the_same_among_processes(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/pytest/__main__.py"])
    odd = "def test_odd(harness_sweep): harness_sweep(odd, allow='error')\n"
    odd = f"async def odd(): raise ValueError('\\ud800 \\0 </script>')\n{odd}"
    write(suite.path / "test_odd.py", odd)
    alone = suite.runpytest("--harness-json", "alone.json", "--harness-html", "alone.html")
    spread = suite.runpytest(
        "-n", "2", "--harness-json", "spread.json", "--harness-html", "spread.html"
    )
    assert block(alone)[:4] == block(spread)[:4]
    assert read(suite.path, "alone.json") == read(suite.path, "spread.json")
    pages = [(suite.path / f"{name}.html").read_text("utf-8") for name in ("alone", "spread")]
    assert pages[0] == pages[1]


def test_the_file_has_each_result_with_its_test(suite: pytest.Pytester) -> None:
    result = suite.runpytest("--harness-json", "deep/out.json")
    assert block(result)[-1] == "wrote deep/out.json"
    value = read(suite.path / "deep")
    assert [(each["test"], each["kind"], each["status"]) for each in value["results"]] == [
        ("test_all.py::test_run", "run", "PASS"),
        ("test_all.py::test_search", "search", "FAIL"),
        ("test_all.py::test_sweep", "sweep", "PASS"),
    ]
    (finding,) = value["results"][1]["findings"]
    assert f"test_all.py::test_search --harness-replay {finding['token']}" in finding["rerun"]
    assert value["totals"]["points"] == 3
    again = suite.runpytest(
        "--harness-replay", finding["token"], "--harness-json", "again.json", "-k", "search"
    )
    again.assert_outcomes(failed=1)
    assert [each["kind"] for each in read(suite.path, "again.json")["results"]] == ["replay"]


REFUSED = """
import pytest

from harness.core.errors import UsageError


async def swept():
    pass


@pytest.fixture
def broken():
    raise UsageError("there is no such thing\\nand no other")


def test_broken(broken):
    pass


def test_plain():
    raise UsageError("no such thing either")


def test_run(harness_run):
    harness_run("scenarios/none.yaml")


def test_of_hello(harness_run):
    harness_run("scenarios/hello.yaml", "no_such:agent")


def test_folder(harness_run):
    harness_run.each("nowhere")


def test_sweep(harness_sweep):
    harness_sweep(swept, modes="nothing")


def test_search(harness_explore):
    harness_explore("about: 3\\nturns: 4\\n")


@pytest.mark.xfail
def test_known():
    raise UsageError("it is known")


def test_well(harness_run):
    harness_run("scenarios/hello.yaml")
"""


def test_what_ended_by_a_mistake_and_not_by_a_verdict_is_told(suite: pytest.Pytester) -> None:
    write(suite.path / "test_all.py", REFUSED)
    result = suite.runpytest(
        "--harness-json", "out.json", "--harness-html", "out.html", "--junitxml", "out.xml"
    )
    result.assert_outcomes(passed=1, failed=6, errors=1, xfailed=1)
    assert block(result)[:2] == ["could not be run: 7", "1 scenario run"]
    found = [each for each in read(suite.path)["results"] if each["kind"] == "not_run"]
    keys = ("test", "meant", "status", "scenario", "source")
    assert [tuple([each[key] for key in keys]) for each in found] == [
        ("test_all.py::test_broken", "test", "ERROR", "test_broken", ""),
        ("test_all.py::test_folder", "test", "ERROR", "", "nowhere"),
        ("test_all.py::test_of_hello", "run", "ERROR", "", "scenarios/hello.yaml"),
        ("test_all.py::test_plain", "test", "ERROR", "test_plain", ""),
        ("test_all.py::test_run", "run", "ERROR", "", "scenarios/none.yaml"),
        ("test_all.py::test_search", "search", "ERROR", "test_search", ""),
        ("test_all.py::test_sweep", "sweep", "ERROR", "swept", ""),
    ]
    assert found[0]["message"] == "there is no such thing\nand no other"
    page = (suite.path / "out.html").read_text(encoding="utf-8")
    assert '<b class="badge error">ERROR</b> 7</p>' in page
    assert "<p>there is no such thing</p><p>and no other</p>" in page
    cases = ET.parse(suite.path / "out.xml").getroot().iter("testcase")
    [run] = [case for case in cases if case.get("name") == "test_run"]
    assert [each.get("value") for each in run.iter("property")] == ["ERROR", "0"]


def test_what_could_not_be_run_is_shown_before_what_failed(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.testing.results._DRAWN", 1)
    text = "from harness.core.errors import UsageError\n\n\n"
    text += "def test_z(): raise UsageError('no such thing')\n"
    write(suite.path / "test_z.py", text)
    suite.runpytest("--harness-html", "out.html")
    page = (suite.path / "out.html").read_text(encoding="utf-8")
    assert "harness in pytest: the first 1 of 2" in page
    assert "no such thing" in page


def test_a_scenario_of_a_folder_that_has_no_points_is_told(suite: pytest.Pytester) -> None:
    write(suite.path / "scenarios/slow.yaml", SLOW)
    text = "def test_all(harness_sweep): harness_sweep.each('scenarios', roles='tool')\n"
    write(suite.path / "test_all.py", text)
    result = suite.runpytest("--harness-json", "out.json", "--harness-html", "out.html")
    assert block(result)[0] == "passed over, with nothing to try: 1"
    assert [(each["kind"], each["status"]) for each in read(suite.path)["results"]] == [
        ("not_run", "SKIPPED"),
        ("sweep", "PASS"),
    ]
    page = (suite.path / "out.html").read_text(encoding="utf-8")
    assert page.count('<section id="r') == 2


def test_what_is_passed_over_for_a_token_is_no_error(suite: pytest.Pytester) -> None:
    searched = "def test_search(harness_explore): harness_explore(searched)\n"
    text = TEST.partition("def test_run")[0] + searched
    text += "\n\ndef test_none(harness_sweep): harness_sweep('none.yaml')\n"
    write(suite.path / "test_all.py", text)
    suite.runpytest("--harness-json", "out.json")
    token = read(suite.path)["results"][1]["findings"][0]["token"]
    result = suite.runpytest("--harness-replay", token, "--harness-json", "again.json")
    result.assert_outcomes(failed=1, skipped=1)
    assert [each["kind"] for each in read(suite.path, "again.json")["results"]] == ["replay"]


def test_a_file_is_written_where_nothing_was_run(suite: pytest.Pytester) -> None:
    write(suite.path / "test_all.py", "def test_one(): pass")
    result = suite.runpytest("--harness-json", "out.json", "--harness-html", "out.html")
    assert block(result) == ["wrote out.json", "wrote out.html"]
    assert read(suite.path)["results"] == []


def test_a_page_shows_what_failed_and_else_all(suite: pytest.Pytester) -> None:
    suite.runpytest("--harness-html", "out.html")
    page = (suite.path / "out.html").read_text(encoding="utf-8")
    assert "test_all.searched" in page
    assert "; test_all.py::test_search<" in page
    assert "test_all.swept" not in page
    suite.runpytest("--harness-html", "out.html", "-k", "not search")
    page = (suite.path / "out.html").read_text(encoding="utf-8")
    assert "test_all.swept" in page


@pytest.mark.skipif(sys.platform == "win32", reason="no such name can be there")
def test_files_have_names_and_messages_of_any_characters(suite: pytest.Pytester) -> None:
    write(suite.path / "test_\udcff.py", "from test_all import *")
    write(suite.path / "test_all.py", TEST.replace('"late"', r'"\ud800 \0 </script>"'))
    result = suite.runpytest(
        "--harness-json", "out.json", "--harness-html", "out.html", "-p", "no:cacheprovider"
    )
    assert block(result)[-2:] == ["wrote out.json", "wrote out.html"]
    assert len(read(suite.path)["results"]) == 6


def test_a_page_has_room_for_some(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.testing.results._DRAWN", 1)
    suite.runpytest("--harness-html", "out.html", "-k", "not search")
    page = (suite.path / "out.html").read_text(encoding="utf-8")
    assert "harness in pytest: the first 1 of 2" in page


def test_a_file_that_cannot_be_written_fails_the_session(suite: pytest.Pytester) -> None:
    write(suite.path / "file", "")
    result = suite.runpytest("--harness-json", "file/out.json", "-k", "run")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert block(result)[-1].startswith("ERROR: file/out.json cannot be written: ")
    for given in ("", "scenarios"):
        result = suite.runpytest(f"--harness-json={given}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert f"--harness-json is {given!r}; expected the name of a file" in result.stderr.str()
    result = suite.runpytest("--harness-json", "test_all.py")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "'test_all.py', which is named as tests and scenarios are" in result.stderr.str()


def test_a_test_has_properties_in_junit_xml(suite: pytest.Pytester) -> None:
    suite.runpytest("--junitxml", "out.xml")
    cases = ET.parse(suite.path / "out.xml").getroot().iter("testcase")
    found = {
        case.get("name"): [(each.get("name"), each.get("value")) for each in case.iter("property")]
        for case in cases
    }
    assert found["test_run"] == [("harness_status", "PASS"), ("harness_runs", "1")]
    status, runs, points = found["test_sweep"]
    assert (status, points) == (("harness_status", "PASS"), ("harness_points", "3"))
    assert int(runs[1] or 0) > 3
    (status, runs, token) = found["test_search"]
    assert status == ("harness_status", "FAIL")
    assert token[0] == "harness_token"
    assert str(token[1]).startswith("h1.")


def test_scenario_files_are_told_too(suite: pytest.Pytester) -> None:
    ini(suite, NAMED)
    result = suite.runpytest("scenarios")
    result.assert_outcomes(passed=1)
    assert block(result)[0] == "1 scenario run"


def test_scenario_files_with_errors_are_told(suite: pytest.Pytester) -> None:
    ini(suite, NAMED)
    write(suite.path / "scenarios/broken.yaml", "about: It answers.\nturms: 3\nloops: []\n")
    write(suite.path / "scenarios/nothing.yaml", "a: b\n")
    result = suite.runpytest(
        "scenarios/broken.yaml",
        "scenarios/nothing.yaml",
        "--harness-json",
        "out.json",
        "--harness-html",
        "o.html",
    )
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert block(result)[0] == "could not be run: 2"
    found = read(suite.path)["results"]
    assert [(each["kind"], each["source"], each["test"]) for each in found] == [
        ("not_run", "scenarios/broken.yaml", "scenarios/broken.yaml"),
        ("not_run", "scenarios/nothing.yaml", "scenarios/nothing.yaml"),
    ]
    page = (suite.path / "o.html").read_text(encoding="utf-8")
    assert page.count('<h2><b class="badge error">ERROR</b> scenarios/') == 2


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(suite.path / "out.html", "as it was")

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = suite.runpytest("--harness-html", "out.html", "-k", "run")
    assert block(result)[-1] == "ERROR: out.html cannot be written: No space left on device"
    assert (suite.path / "out.html").read_text(encoding="utf-8") == "as it was"
