"""`--level`: every command that runs a scenario runs it over HTTP too, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

HELLO = "scenarios/hello.yaml"


@pytest.mark.parametrize("command", ["run", "sweep", "explore"])
def test_a_command_runs_at_a_level(cli: Cli, command: str) -> None:
    more = ("--runs", "3") if command == "explore" else ()
    done = cli(command, HELLO, "--level", "server:anthropic", *more)
    assert done.code == 0, done
    assert "turn (safe) at server:anthropic" in done.out


def test_a_run_is_shown_at_a_level(cli: Cli) -> None:
    plain = cli("show", HELLO, "--plain").out
    over = cli("show", HELLO, "--plain", "--level", "http:anthropic").out
    assert "max_tokens" in over
    assert "max_tokens" not in plain


def test_an_agent_of_ones_own_runs_at_a_level(cli: Cli) -> None:
    agent = "harness.transport.fsm_client:agent"
    done = cli("run", HELLO, "--agent", agent, "--level", "http")
    assert done.code == 0, done
    assert f"{agent} at http:openai_chat" in done.out


@pytest.mark.parametrize("command", ["run", "show", "sweep", "explore"])
def test_a_level_that_is_none_is_told(cli: Cli, command: str) -> None:
    done = cli(command, HELLO, "--level", "htp")
    assert done.code == 2
    assert "unknown level 'htp' (did you mean 'http'?); known: model, http, server" in done.err


def test_the_line_that_runs_a_failure_again_runs_it_there(cli: Cli) -> None:
    text = Path(HELLO).read_text(encoding="utf-8")
    Path("bad.yaml").write_text(text.replace("completed", "cancelled"), encoding="utf-8")
    done = cli("run", "bad.yaml", "--level", "http")
    assert done.code == 1
    assert done.out.splitlines()[-1].endswith("bad.yaml --loop turn --level http:openai_chat")
