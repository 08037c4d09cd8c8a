"""The command line, called as a user would, in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.cli import main


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Cli = Callable[..., Done]

SLOW = """\
about: The slow tool is cut off; the next question still works.
loops: [turn]
config: {max_parallel_tool_calls: 1}
tools:
  clock:   {returns: "14:05", takes: 10ms}
  weather: {returns: sunny, takes: 2s}
turns:
  - user: Time and weather?
    model:
      - calls: [{clock: {}}, {weather: {city: Paris}}]
    cancel: {after: tool_started weather}
    expect: {outcome: cancelled, synthesized: [weather]}
  - user: And now?
    model: [{say: Still sunny.}]
    expect: {outcome: completed}
"""

HELLO = """\
about: It answers.
loops: [turn]
turns:
  - user: Hello
    model: [{say: Hi.}]
    expect: {outcome: completed}
"""

AGENT = """\
from harness.core.messages import ModelRequest, user


class Agent:
    def __init__(self, env):
        self.env = env

    async def turn(self, text):
        request = ModelRequest("m", "", (user(text),))
        async for part in await self.env.model.generate(request):
            pass


def build(env):
    return Agent(env)


def broken(env):
    return 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder: two scenarios that pass, one that fails, an agent. It is where we are."""
    files = {
        "scenarios/cancel/slow.yaml": SLOW,
        "scenarios/hello.yaml": HELLO,
        "more/wrong answer.yaml": HELLO.replace("completed", "error"),
        "my_agent.py": AGENT,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    sys.modules.pop("my_agent", None)


@pytest.fixture
def terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let both streams be taken for a terminal of 80 columns."""
    monkeypatch.setattr("harness.report.terminal.on_terminal", lambda _console: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def cli(folder: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run `harness` with arguments, in `folder`."""

    def call(*arguments: str) -> Done:
        code = main(arguments)
        return Done(code, *capsys.readouterr())

    return call
