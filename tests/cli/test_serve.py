"""`harness serve`, as a process: what it prints, how it ends, what it finds."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from harness.cli.serve import _at_signals
from tests.cli.conftest import Cli

TWO = "- say: One.\n- say: Two.\n"
HEADERS = {"authorization": "Bearer sk-secret"}


class Running(NamedTuple):
    """A server that has said where it is."""

    process: subprocess.Popen[str]
    first: str
    variables: dict[str, str]

    def ask(self, text: str = "x", **more: Any) -> httpx2.Response:
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        url = f"{self.variables['OPENAI_BASE_URL']}/chat/completions"
        return httpx2.post(url, json=body, headers=HEADERS)

    def end(self, number: int | None = signal.SIGINT) -> tuple[int, list[str]]:
        if number is not None:
            self.process.send_signal(number)
        out, errors = self.process.communicate(timeout=20)
        assert errors == ""
        return self.process.returncode, out.splitlines()


@contextmanager
def running(folder: Path, script: str, *options: str, count: int = 6) -> Iterator[Running]:
    """A server of a script, which prints so many variables."""
    (folder / "script.yaml").write_text(script)
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "serve", "script.yaml", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        lines = [process.stdout.readline().strip() for _ in range(count)]
        exported = [line.removeprefix("export ").partition("=") for line in lines]
        yield Running(process, first, {name: value for name, _, value in exported})
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end(tmp_path: Path, number: int) -> None:
    with running(tmp_path, TWO) as server:
        url = server.variables["ANTHROPIC_BASE_URL"]
        assert server.first == f"serving script.yaml at {url} until Ctrl-C\n"
        assert list(server.variables) == [
            "OPENAI_BASE_URL",
            "OPENAI_API_KEY",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "GEMINI_API_KEY",
        ]
        said = [server.ask().json()["choices"][0]["message"]["content"] for _ in range(2)]
        assert said == ["One.", "Two."]
        assert server.end(number) == (0, ["2 requests; all is well"])


def test_it_ends_when_the_script_is_used_up(tmp_path: Path) -> None:
    with running(tmp_path, TWO, "--once") as server:
        assert server.first.endswith(" until the script is used up\n")
        server.ask()
        server.ask()
        assert server.end(None) == (0, ["2 requests; all is well"])


def test_what_the_client_did_wrong_is_told(tmp_path: Path) -> None:
    orphan = {"role": "tool", "tool_call_id": "c", "content": "x"}
    with running(tmp_path, TWO, "--journal", "requests.jsonl") as server:
        assert server.ask(messages=[orphan]).status_code == 400
        code, lines = server.end()
    assert code == 1
    assert lines[0] == "1 request; 2 findings"
    assert lines[1].startswith("request 1: refused: ")
    assert lines[2] == "reply 2 of turn 1 (say: 'Two.') was never asked for"
    (line,) = (tmp_path / "requests.jsonl").read_text().splitlines()
    assert "sk-secret" not in line
    record = json.loads(line)
    assert (record["status"], record["ended"], record["body"]["messages"]) == (
        400,
        "whole",
        [orphan],
    )


def test_options_of_what_is_served(tmp_path: Path) -> None:
    options = ("--no-strict", "--pedantic", "--provider", "openai_chat")
    with running(tmp_path, TWO, *options, count=2) as server:
        orphan = {"role": "tool", "tool_call_id": "c", "content": "x"}
        assert server.ask(messages=[orphan]).status_code == 200
        port = server.variables["OPENAI_BASE_URL"].rpartition(":")[2].removesuffix("/v1")
        (tmp_path / "other").mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "harness", "serve", "script.yaml", "--port", port],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        )
        assert done.returncode == 2
        assert f"port {port} of 127.0.0.1 cannot be had" in done.stderr


def test_what_cannot_be_served(cli: Cli, folder: Path) -> None:
    assert cli("serve", "nothing.yaml").code == 2
    done = cli("serve", "scenarios/hello.yaml", "--provider", "openia_chat")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'openai_chat'" in done.err
    done = cli("serve", "scenarios/hello.yaml", "--journal", "no/such/file")
    assert (done.code, done.err) == (
        2,
        "no/such/file cannot be written: No such file or directory\n",
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


@pytest.mark.parametrize("once", [True, False])
def test_it_serves_in_a_process_of_ours_too(cli: Cli, folder: Path, once: bool) -> None:
    """The same again where its lines are seen, as they are not in a process of its own."""
    (folder / "script.yaml").write_text(TWO)
    port = free_port()

    def client() -> None:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        transport = httpx2.HTTPTransport(retries=8)
        with httpx2.Client(transport=transport) as ours:
            for _ in range(2 if once else 1):
                ours.post(url, json=body)
            if not once:
                os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=client)
    thread.start()
    options = ("--once",) if once else ()
    done = cli("serve", "script.yaml", "--port", str(port), "--journal", "log.jsonl", *options)
    thread.join()
    assert done.code == (0 if once else 1)
    assert ("all is well" in done.out) is once
    assert len((folder / "log.jsonl").read_text().splitlines()) == (2 if once else 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_journal_that_cannot_be_written_is_told_and_the_client_is_served(tmp_path: Path) -> None:
    with running(tmp_path, TWO, "--journal", "/dev/full") as server:
        said = [server.ask().json()["choices"][0]["message"]["content"] for _ in range(2)]
        assert said == ["One.", "Two."]
        server.process.send_signal(signal.SIGINT)
        out, errors = server.process.communicate(timeout=20)
    assert (server.process.returncode, out) == (2, "2 requests; all is well\n")
    assert errors == "/dev/full could not be written whole: No space left on device\n"


def test_a_loop_without_handlers_of_signals_is_told_by_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OfWindows:
        def add_signal_handler(self, _number: int, _act: object) -> None:
            raise NotImplementedError

        def call_soon_threadsafe(self, act: Any) -> None:
            act()

    handlers: dict[int, Any] = {}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    told: list[str] = []
    _at_signals(OfWindows(), lambda: told.append("end"))  # type: ignore[arg-type]
    for handler in handlers.values():
        handler(0, None)
    assert told == ["end", "end"]
    assert set(handlers) == {signal.SIGINT, signal.SIGTERM}
