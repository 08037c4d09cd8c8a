"""`harness show`: canonical text into a pipe, a time line in a terminal."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.loops import LOOPS
from harness.report.text import render
from harness.runner.agents import find_loop, loop_subject
from harness.runner.files.load import load
from harness.runner.run import run
from tests.cli.conftest import HELLO, Cli


def test_a_pipe_gets_the_canonical_text(cli: Cli) -> None:
    done = cli("show", "scenarios/cancel/slow.yaml")
    scenario = load(Path("scenarios/cancel/slow.yaml"))
    trace = run(scenario, loop_subject(find_loop("turn"), scenario).build).trace
    assert done == (0, render(trace), "")
    assert len(done.out.splitlines()) == len(trace)


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_a_time_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    done = cli("show", "scenarios/hello.yaml", "--loop", "turn")
    assert (done.code, done.err) == (0, "")
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "scenarios/hello on turn (safe)",
        "It answers.",
        f"time     {'model':<45}log",
        '0s       turn 1: "Hello"',
        "0s" + " " * 52 + "turn_start turn-0",
        "0s" + " " * 52 + 'user_message "Hello"',
        "0s       → 1.1, 1 message",
        '0s       says "Hi."',
        "0s       ← done",
        "0s" + " " * 52 + 'assistant_message "Hi."',
        "0s" + " " * 52 + "turn_end turn-0 completed",
        "0s       turn 1 ends: completed",
        "PASS",
    ]


def test_plain_gives_a_terminal_the_canonical_text_too(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    piped = cli("show", "scenarios/hello.yaml")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli("show", "scenarios/hello.yaml") == piped  # it asks for colours only
    request.getfixturevalue("terminal")
    assert cli("show", "scenarios/hello.yaml") != piped
    assert cli("show", "scenarios/hello.yaml", "--plain") == piped


def test_a_run_that_fails_is_shown_all_the_same(cli: Cli) -> None:
    done = cli("show", "more/wrong answer.yaml")
    assert done.code == 0
    assert "turn_ended" in done.out


def test_a_user_s_agent_is_shown(cli: Cli) -> None:
    done = cli("show", "scenarios/hello.yaml", "--agent", "my_agent:build")
    assert done.code == 0
    assert "log_row" not in done.out
    assert '1.1 complete, [assistant "Hi."]' in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show"], "Missing argument"),
        (["show", "scenarios"], "scenarios holds 2 scenarios; name the file of one"),
        (["show", "scenarios/hello.yaml", "--loop", "trun"], "did you mean 'turn'"),
    ],
)
def test_a_mistake_is_told(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_of_several_loops_one_must_be_chosen(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = (LOOPS[0], msgspec.structs.replace(LOOPS[0], name="other"))
    monkeypatch.setattr("harness.loops.LOOPS", two)
    monkeypatch.setattr("harness.runner.agents.LOOPS", two)
    (folder / "two.yaml").write_text(HELLO.replace("[turn]", "[turn, other]"))
    assert cli("show", "two.yaml") == (
        2,
        "",
        "two.yaml names several loops; choose one with --loop: turn, other\n",
    )
    assert cli("show", "two.yaml", "--loop", "other").code == 0
    assert cli("run", "two.yaml").out.splitlines()[-1] == "2 passed, 0 failed"
