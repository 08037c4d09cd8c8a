"""Files that commands write what came out to: `--json FILE`, told early where it cannot be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from harness.cli.report_files import write_report
from harness.core.errors import UsageError
from harness.report.json_report import schema
from harness.runner.files.load import load
from harness.runner.token import Token, digest
from tests.cli.conftest import Cli

RUNS = [
    ("run more scenarios --loop turn", 1, ["FAIL", "PASS", "PASS"], "run"),
    ("sweep scenarios/hello.yaml", 0, ["PASS"], "sweep"),
    ("explore scenarios/cancel --runs 5", 0, ["PASS"], "search"),
]


def read(file: Path) -> dict:
    found = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validate(found, schema())
    return found


@pytest.mark.parametrize(("line", "code", "statuses", "kind"), RUNS)
def test_what_came_out_is_written_beside_what_is_printed(
    cli: Cli, folder: Path, line: str, code: int, statuses: list[str], kind: str
) -> None:
    plain = cli(*line.split())
    done = cli(*line.split(), "--json", "new/found.json")
    assert done == plain
    assert done.code == code
    results = read(folder / "new/found.json")["results"]
    assert [each["status"] for each in results] == statuses
    assert {each["kind"] for each in results} == {kind}


def test_a_replay_is_written_too(cli: Cli, folder: Path) -> None:
    token = str(Token.of(digest(load("scenarios/hello.yaml"))))
    assert cli("replay", token, "scenarios/hello.yaml", "--json", "again.json").code == 0
    [again] = read(folder / "again.json")["results"]
    assert (again["kind"], again["status"]) == ("replay", "PASS")


def test_what_could_be_run_is_written_where_something_else_could_not(
    cli: Cli, folder: Path
) -> None:
    (folder / "my_agent.py").write_text("def build(env):\n    return 3\n", encoding="utf-8")
    done = cli("run", "scenarios", "--agent", "my_agent:build", "--json", "found.json")
    assert done.code == 2
    assert read(folder / "found.json")["results"] == []


@pytest.mark.parametrize("command", ["run", "sweep", "explore", "replay h1.x"])
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("more", "more is a folder; name a file in it\n"),
        ("my_agent.py/x/y.json", "my_agent.py/x/y.json cannot be written; name a file in "),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_anything_is_run(
    cli: Cli, folder: Path, command: str, file: str, said: str
) -> None:
    done = cli(*command.split(), "scenarios/hello.yaml", "--json", file)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(said)


def test_what_fails_later_is_told_and_leaves_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.core.files.replace", full)
    with pytest.raises(UsageError, match=r"found.json cannot be written: No space left on device"):
        write_report(Path("found.json"), "{}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_takes_the_text(folder: Path) -> None:
    os.mkfifo("pipe")
    read_end = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_report(Path("pipe"), "{}\n")
    assert os.read(read_end, 100) == b"{}\n"
    os.close(read_end)
