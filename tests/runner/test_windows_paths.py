"""Paths of Windows, wherever one is shown, put into a line to be copied, a token or a name.

They are tried on any system: `PureWindowsPath` needs no file.
"""

from __future__ import annotations

import ntpath
from pathlib import PureWindowsPath
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core import shell
from harness.core.errors import FileError, Problem
from harness.runner.agents import Subject, _dotted
from harness.runner.files.load import load_text
from harness.runner.token import digest
from harness.sim.where import shown_file
from harness.testing import running
from harness.testing.cassette_names import file_name

HELLO = "about: It answers.\nturns: [{user: Hello, model: [{say: Hi.}]}]\n"
WORK = PureWindowsPath("C:\\Users\\me\\my agents")


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        (WORK / "agent.py", "agent.py"),
        (WORK / "src" / "agent.py", "src/agent.py"),
        (PureWindowsPath("c:\\users\\ME\\My Agents\\Agent.py"), "Agent.py"),  # the same folder
        (PureWindowsPath("D:\\lib\\deep\\tool.py"), "deep/tool.py"),
        (PureWindowsPath("D:\\tool.py"), "tool.py"),
        (PureWindowsPath("\\\\server\\share\\x\\tool.py"), "x/tool.py"),
        (PureWindowsPath("C:\\Python\\Lib\\site-packages\\openai\\_base.py"), "openai/_base.py"),
    ],
)
def test_a_line_of_code_is_named_as_on_other_systems(file: PureWindowsPath, shown: str) -> None:
    assert shown_file(file, WORK) == shown


def test_a_scenario_has_the_same_name_and_the_same_token_wherever_it_lies() -> None:
    source = PureWindowsPath("scenarios\\cancel\\slow.yaml").as_posix()
    scenario = load_text(HELLO, source)
    assert (scenario.name, scenario.source) == ("scenarios/cancel/slow", f"{source}")
    assert digest(scenario) == digest(load_text(HELLO, "slow.yaml"))


def test_the_line_that_runs_again_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell.join, "__kwdefaults__", {"windows": True})
    subject = Subject("x", print, ("--agent", "my.agent:build"))  # type: ignore[arg-type]
    source = PureWindowsPath("C:\\my agents\\slow.yaml").as_posix()
    assert subject.command(source, "replay", "h1.3.ab.1:3:early:turn.5a") == (
        'harness replay h1.3.ab.1:3:early:turn.5a "C:/my agents/slow.yaml" --agent my.agent:build'
    )


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("C:\\work\\tests\\test_it.py", "pytest tests/test_it.py::test_it[weather.yaml]"),
        ("C:\\work\\my tests\\test_it.py", 'pytest "my tests/test_it.py::test_it[weather.yaml]"'),
        ("D:\\tests\\test_it.py", "pytest D:/tests/test_it.py::test_it[weather.yaml]"),
    ],
)
def test_the_line_that_runs_a_test_again_can_be_copied(
    monkeypatch: pytest.MonkeyPatch, file: str, line: str
) -> None:
    monkeypatch.setattr(shell.join, "__kwdefaults__", {"windows": True})
    monkeypatch.setattr(running, "relpath", ntpath.relpath)
    monkeypatch.setattr(running, "Path", PureWindowsPath)
    monkeypatch.setattr("sys.argv", ["C:\\env\\Scripts\\pytest.exe"])
    config: Any = SimpleNamespace(
        invocation_params=SimpleNamespace(dir=PureWindowsPath("C:\\work"), args=()),
        getoption=lambda _name: None,
    )
    node: Any = SimpleNamespace(
        config=config,
        path=PureWindowsPath(file),
        nodeid="somewhere/test_it.py::test_it[weather.yaml]",
    )
    assert running.rerun_line(node) == line


def test_a_file_given_for_a_module_is_told_as_its_module() -> None:
    assert _dotted(PureWindowsPath("my\\agents\\one.py")) == "my.agents.one"
    assert _dotted(PureWindowsPath("C:\\my\\one.py")) == "one"
    assert _dotted(PureWindowsPath("..\\one.py")) == "one"


def test_a_problem_of_a_file_is_told_with_its_line() -> None:
    error = FileError(PureWindowsPath("scenarios\\a.yaml").as_posix(), [Problem("is bad", 3, 7)])
    assert str(error) == "scenarios/a.yaml:3:7: is bad"


def test_parameters_that_are_paths_make_files_that_windows_takes() -> None:
    name = file_name("test_it[C:\\my agents\\a.yaml]")
    assert name.startswith("test_it[C-my-agents-a.yaml]-")
    assert not set('<>:"/\\|?* ') & set(name)
