"""`harness record -- COMMAND`: what programs ask for, as a cassette; it ends as they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.runner.cassettes import record
from harness.runner.served import Served
from harness.transport.cassettes.file import load
from tests.cli.conftest import Cli

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
SCRIPT = """\
about: Two questions.
order: calls
turns:
  - user: x
    model:
      - {say: Hello to you., takes: 5ms, each: 5ms}
      - {say: Goodbye., optional: true}
"""
ASK = """\
import json, os, sys, urllib.error, urllib.request

base, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
for text in sys.argv[2:]:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{base}/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as response:
            said = json.load(response)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        said = f"{error.code}: {error.read().decode()}"
    with open("said.txt", "a") as file:
        file.write(f"{said}\\n")
sys.exit(int(sys.argv[1]))
"""
SDK = """\
import openai

stream = openai.OpenAI().chat.completions.create(
    model="gpt-5", stream=True, messages=[{"role": "user", "content": "Hello"}]
)
try:
    for chunk in stream:
        print(chunk.choices[0].delta.content or "", end="|", flush=True)
except KeyboardInterrupt:
    raise SystemExit(7)
"""


@pytest.fixture
def provider(
    folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Served]:
    """A provider to which the user's own variables point, beside two programs."""
    (folder / "ask.py").write_text(ASK)
    (folder / "sdk.py").write_text(SDK)
    with harness.serve(getattr(request, "param", SCRIPT)) as server:
        for name, value in server.variables.items():
            monkeypatch.setenv(name, KEY if name.endswith("KEY") else value)
        yield server


def asking(*words: str, code: int = 0) -> list[str]:
    """The command that asks for each of some texts, and ends with a code."""
    return ["--", sys.executable, "ask.py", str(code), *words]


def said() -> list[str]:
    """What the program was told so far."""
    return Path("said.txt").read_text().splitlines()


def test_what_a_program_asks_for_is_recorded_and_played(cli: Cli, provider: Served) -> None:
    done = cli("record", "-o", "new/c.yaml", *asking("Hello"))
    assert (done.code, done.out) == (0, "")
    (one,) = load("new/c.yaml").interactions
    assert (one.protocol, one.status, one.ended) == ("openai_chat", 200, "complete")
    assert one.request.url == f"{provider.url}/v1/chat/completions"
    assert KEY not in Path("new/c.yaml").read_text()
    (came,) = provider.requests
    assert came.request.header("authorization") == f"Bearer {KEY}"

    before = Path("new/c.yaml").read_bytes()
    done = cli("record", "-o", "new/c.yaml", "--mode", "replay", *asking("Hello"))
    assert done.code == 0
    assert said() == ["Hello to you."] * 2
    assert len(provider.requests) == 1
    assert Path("new/c.yaml").read_bytes() == before


def test_what_the_cassette_lacks_is_told_to_the_program_and_to_the_user(
    cli: Cli, provider: Served
) -> None:
    assert cli("record", "-o", "c.yaml", *asking("Hello")).code == 0
    done = cli("record", "-o", "c.yaml", "--mode", "replay", *asking("Hallo"))
    assert done.code == 1
    assert "Hello" in done.err
    assert "Hallo" in done.err
    assert said()[1].startswith("404: ")
    done = cli("record", "-o", "c.yaml", *asking("Hello", "Hallo"))
    assert done.code == 0
    assert said()[2:] == ["Hello to you.", "Goodbye."]
    assert len(load("c.yaml").interactions) == 2
    assert len(provider.requests) == 2
    done = cli("record", "-o", "c.yaml", "--mode", "replay", *asking("Hallo"))
    assert (done.code, said()[4:]) == (1, ["Goodbye."])
    assert done.err.startswith(
        "nobody asked for 1 interaction of the cassette; record all anew with --mode all\n"
    )


def test_what_has_changed_since_is_told(
    cli: Cli, provider: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("record", "-o", "c.yaml", *asking("Hello")).code == 0
    before = Path("c.yaml").read_bytes()
    with harness.serve(SCRIPT) as same:
        monkeypatch.setenv("OPENAI_BASE_URL", same.variables["OPENAI_BASE_URL"])
        assert cli("record", "-o", "c.yaml", "--mode", "drift", *asking("Hello")).code == 0
    with harness.serve(SCRIPT.replace("to you", "to all")) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.variables["OPENAI_BASE_URL"])
        done = cli("record", "-o", "c.yaml", "--mode", "drift", *asking("Hello"))
    assert done.code == 1
    assert 'was recorded, "Hello to {+all+}." came' in done.err
    assert Path("c.yaml").read_bytes() == before
    assert b"to all" in load("c.drift.yaml").interactions[0].body


def test_the_exit_code_is_the_programs_and_the_cassette_is_written(
    cli: Cli, provider: Served
) -> None:
    assert cli("record", "-o", "c.yaml", *asking("Hello", code=3)).code == 3
    assert len(load("c.yaml").interactions) == 1
    assert cli("record", "-o", "c.yaml", "--mode", "replay", *asking("Hallo", code=4)).code == 4
    ended = ["--", sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"]
    assert cli("record", "-o", "c.yaml", *ended).code == 128 + 15


def test_rules_of_the_user_are_kept_with_what_they_were_used_for(
    cli: Cli, provider: Served
) -> None:
    more = ["--volatile", "[0-9]+", "--ignore", "model", "--name", "x-one", "--harmless", "token"]
    more += ["--pattern", "emp-[0-9]+"]
    assert cli("record", "-o", "c.yaml", *more, *asking("Hello 1 of emp-7")).code == 0
    rules = load("c.yaml").rules
    assert (rules.volatile, rules.ignore, rules.names) == (("[0-9]+",), ("model",), ("x-one",))
    assert (rules.harmless, rules.patterns) == (("token",), ("emp-[0-9]+",))
    assert "emp-7" not in Path("c.yaml").read_text()
    assert cli("record", "-o", "c.yaml", "--mode", "replay", *asking("Hello 2 of emp-8")).code == 0
    assert len(provider.requests) == 1
    done = cli("record", "-o", "d.yaml", "--volatile", "a(", *asking("Hello"))
    assert (done.code, "--volatile 'a(' is no regular expression" in done.err) == (2, True)


def test_a_program_that_asks_for_nothing(cli: Cli, provider: Served) -> None:
    done = cli("record", "-o", "c.yaml", *asking())
    assert done.code == 0
    assert done.err == (
        "no request came: see that the program's client takes its address from OPENAI_BASE_URL, "
        "ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL\n"
        "c.yaml: 0 of 0 played, nothing recorded\n"
    )
    assert not Path("c.yaml").exists()


def test_a_program_that_breaks_before_it_asks(cli: Cli, provider: Served) -> None:
    done = cli("record", "-o", "c.yaml", "--", sys.executable, "-c", "raise SystemExit(3)")
    assert done.code == 3
    assert done.err == (
        "no request came: the program ended by itself, with exit code 3\n"
        "c.yaml: 0 of 0 played, nothing recorded\n"
    )


def test_what_cannot_be_recorded(cli: Cli, provider: Served) -> None:
    done = cli("record", "-o", "ask.py/c.yaml", *asking("Hello"))
    assert (done.code, done.out) == (2, "")
    assert "ask.py/c.yaml cannot be written" in done.err
    done = cli("record", "--", "no-such-program")
    assert done.code == 2
    assert "the command 'no-such-program' cannot be started" in done.err
    done = cli("record", "--upstream", "opena=http://127.0.0.1:1", *asking("Hello"))
    assert (done.code, "did you mean 'openai'" in done.err) == (2, True)
    done = cli("record", "--mode", "reply", *asking("Hello"))
    assert (done.code, "did you mean 'replay'" in done.err) == (2, True)
    done = cli("record")
    assert done.code == 2
    assert not Path("said.txt").exists()
    assert not Path("cassette.yaml").exists()


def test_a_provider_that_is_not_there(cli: Cli, provider: Served) -> None:
    done = cli(
        "record", "--upstream", "openai=http://127.0.0.1:9/v1", "--",
        sys.executable, "ask.py", "0", "Hello",
    )  # fmt: skip
    assert done.code == 1  # an error of the program's own
    assert "POST http://127.0.0.1:9/v1/chat/completions: " in done.err
    (one,) = load("cassette.yaml").interactions
    assert (one.status, one.ended) == (None, "refused")


@pytest.mark.parametrize(
    "provider", [SCRIPT.replace("each: 5ms", "each: 20s, chunk: 5")], indirect=True
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_is_stopped(provider: Served, folder: Path, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "record", "-o", "c.yaml", "--", sys.executable, "sdk.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.read(6) == "|Hello"
        process.send_signal(number)
        _out, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == (7 if number == signal.SIGINT else 128 + number)
    (one,) = load(folder / "c.yaml").interactions
    assert (one.status, one.ended) == (200, "cancelled")
    assert b"Hello" in one.body
    assert "Traceback" not in errors
    assert KEY not in (folder / "c.yaml").read_text()


def test_ctrl_c_of_a_terminal_has_come_to_the_program_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[int] = []

    class Process:
        returncode = None
        send_signal = staticmethod(sent.append)

    process: Any = Process()
    for group in (os.getpgrp(), os.getpgrp() + 1):
        monkeypatch.setattr(os, "tcgetpgrp", lambda _file, group=group: group)
        record._forward(process, signal.SIGINT)
        record._forward(process, signal.SIGTERM)
    monkeypatch.setattr(os, "tcgetpgrp", lambda file: os.close(-1))  # it is no terminal
    record._forward(process, signal.SIGINT)
    process.returncode = 0
    record._forward(process, signal.SIGTERM)
    assert sent == [signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGINT]


def test_another_proxy_is_not_asked_for_this_machine() -> None:
    assert record._past_proxies({})["no_proxy"] == "127.0.0.1"
    told = record._past_proxies({"no_proxy": "", "NO_PROXY": "corp.test"})
    assert told == dict.fromkeys(("no_proxy", "NO_PROXY"), "corp.test,127.0.0.1")
