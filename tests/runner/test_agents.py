"""Finding what is to be run, and saying well why it was not found."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.core.json_text import Json
from harness.loops.kind import LoopKind
from harness.runner.agents import agent_subject, find_loop, loop_config, loop_subject
from harness.runner.scenario import Scenario


def build(env: Any, config: Mapping[str, Json], policy: str) -> Any:
    return env, dict(config), policy


KIND = LoopKind("sample", {"limit": 3, "prompt": ""}, ("safe", "reference"), build)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def refusal(spec: str) -> str:
    with pytest.raises(UsageError) as caught:
        agent_subject(spec)
    return str(caught.value)


def test_a_reference_loop_is_found_by_its_name() -> None:
    assert find_loop("turn").name == "turn"


def test_an_unknown_loop_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown loop 'trun' \(did you mean 'turn'\?\); known: "):
        find_loop("trun")


def test_a_loop_gets_its_settings_and_its_first_policy() -> None:
    config = {"limit": 5, "elsewhere": 1, "sample": {"limit": 7}, "other": {"limit": 9}}
    subject = loop_subject(KIND, Scenario("s", config=config))
    assert subject.name == "sample (safe)"
    assert subject.options == ("--loop", "sample")
    assert subject.build("the env") == ("the env", {"limit": 7}, "safe")
    assert loop_config(KIND, {"limit": 5, "elsewhere": 1}) == {"limit": 5}


def test_a_policy_that_was_asked_for_is_asked_for_again() -> None:
    subject = loop_subject(KIND, Scenario("s"), "reference")
    assert subject.name == "sample (reference)"
    assert subject.options == ("--loop", "sample", "--policy", "reference")
    assert subject.build("the env") == ("the env", {}, "reference")


def test_an_unknown_policy_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        loop_subject(KIND, Scenario("s"), "sfae")
    assert str(caught.value) == (
        "loop sample: unknown policy 'sfae' (did you mean 'safe'?); known: safe, reference"
    )


def test_an_agent_of_the_current_folder_is_found(folder: Path) -> None:
    (folder / "kit").mkdir()
    (folder / "kit" / "__init__.py").touch()
    (folder / "kit" / "mine.py").write_text(
        "class Kit:\n    @staticmethod\n    def make(env): ...\n"
    )
    subject = agent_subject("kit.mine:Kit.make")
    assert subject.name == "kit.mine:Kit.make"
    assert subject.options == ("--agent", "kit.mine:Kit.make")
    assert subject.build is sys.modules["kit.mine"].Kit.make


@pytest.mark.parametrize("spec", ["mine", "mine:", ":build", ""])
def test_a_name_of_another_form_is_refused(spec: str) -> None:
    assert refusal(spec) == (
        f"agent {spec!r} is not of the form package.module:build; "
        "write the module, a colon, and the function that builds the agent"
    )


def test_a_missing_module_is_told_with_the_nearest_and_what_was_searched(folder: Path) -> None:
    (folder / "my_agent.py").touch()
    assert refusal("my_agnet:build") == (
        f"there is no module 'my_agnet' (did you mean 'my_agent'?); searched were {folder} and "
        "what is installed, so run from the folder that holds it, or install it"
    )


@pytest.mark.parametrize(
    ("file", "module"),
    [
        ("mine.py", "mine"),
        ("./kit/mine.py", "kit.mine"),
        ("kit.mine.py", "kit.mine"),
        ("/kit/mine.py", "mine"),
        ("../kit/mine.py", "mine"),
    ],
)
def test_a_file_in_place_of_a_module_is_told_how_to_name_it(file: str, module: str) -> None:
    assert refusal(f"{file}:build") == (
        f"agent '{file}:build' names a file; name its module, as it is imported: "
        f"write {module}:build"
    )


def test_a_missing_part_of_a_package_is_named(folder: Path) -> None:
    (folder / "kit").mkdir()
    (folder / "kit" / "__init__.py").touch()
    assert refusal("kit.inner.mine:build").startswith(
        "there is no module 'kit.inner' of 'kit.inner.mine'; searched were "
    )


def test_a_missing_name_is_told_with_the_nearest_of_the_module_s_own(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "from pathlib import Path\nfrom harness import from_command, from_function\nlimit = 3\n"
        "def build(env): ...\nclass Agent: ...\n"
        "chat = from_function(lambda messages: 'Hi.')\nprogram = from_command('cat')\n"
    )
    assert refusal("mine:biuld") == (
        "mine: unknown name 'biuld' (did you mean 'build'?); known: build, Agent, chat, program"
    )
    assert refusal("mine:Agent.make") == "mine.Agent: unknown name 'make'; known: none"


def test_a_name_that_cannot_be_called_is_refused(folder: Path) -> None:
    (folder / "mine.py").write_text("limit = 3\n")
    assert refusal("mine:limit") == (
        "agent 'mine:limit' is int, which cannot be called; "
        "name a function that takes the env and returns the agent"
    )


@pytest.mark.parametrize(
    ("source", "error", "place"),
    [
        ("import os\nimport not_there_x\n", "ModuleNotFoundError: No module named", ":2: import"),
        ("from os import not_there_x\n", "ImportError: cannot import name", ":1: from os"),
        ("x = 1\n\n1 / 0\n", "ZeroDivisionError: division by zero", ":3: 1 / 0"),
        ("def build(:\n", "SyntaxError: ", ":1"),
    ],
)
def test_a_module_that_breaks_is_told_with_its_line(
    folder: Path, source: str, error: str, place: str
) -> None:
    (folder / "mine.py").write_text(source)
    first, second = refusal("mine:build").splitlines()
    assert first.startswith(f"module 'mine' broke while it was loaded: {error}")
    assert second.startswith(f"  {folder / 'mine.py'}{place}")


def test_the_line_that_broke_is_the_innermost_of_the_user_s(folder: Path) -> None:
    (folder / "mine.py").write_text("import helper\n")
    (folder / "helper.py").write_text("\nraise ValueError('no key')\n")
    assert refusal("mine:build") == (
        "module 'mine' broke while it was loaded: ValueError: no key\n"
        f"  {folder / 'helper.py'}:2: raise ValueError('no key')"
    )


def test_a_module_that_uses_the_harness_wrongly_is_told_by_its_own_line(folder: Path) -> None:
    (folder / "wrong.py").write_text(
        "import harness\n\n\ndef takes(prompt): ...\n\n\nagent = harness.from_function(takes)\n"
    )
    says = refusal("wrong:agent")
    assert 'rename it, or give prompt="messages"' in says
    assert says.splitlines()[-1].endswith("wrong.py:7: agent = harness.from_function(takes)")
