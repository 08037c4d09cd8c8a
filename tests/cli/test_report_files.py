"""Files that commands write what came out to: `--json FILE`, told early where it cannot be."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import jsonschema
import pytest

from harness.cli import main
from harness.cli.report_files import write_report
from harness.core.errors import UsageError
from harness.report.json_report import schema
from harness.runner.files.load import load
from harness.runner.token import Token, digest
from tests.cli.conftest import Cli
from tests.cli.test_html import CASSETTE
from tests.cli.test_output import Broken

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


BOTH = ("--json", "found.json", "--html", "page.html")


def written(folder: Path, *keys: str) -> list[tuple[str, ...]]:
    """What stands of each result in both files, in the order of either."""
    results = read(folder / "found.json")["results"]
    page = (folder / "page.html").read_text(encoding="utf-8")
    badges = re.findall(r'<h2><b class="badge \w+">(\w+)</b>', page)
    assert badges == [each["status"] for each in results]
    return [tuple([each[key] for key in keys]) for each in results]


@pytest.mark.parametrize(
    ("command", "meant"), [("run", "run"), ("sweep", "sweep"), ("explore --runs 5", "search")]
)
def test_an_agent_that_cannot_be_built_is_written_for_each_scenario(
    cli: Cli, folder: Path, command: str, meant: str
) -> None:
    done = cli(*command.split(), "scenarios", "--agent", "my_agent:broken", *BOTH)
    assert (done.code, done.out) == (2, "")
    assert written(folder, "kind", "meant", "status", "source", "on") == [
        ("not_run", meant, "ERROR", "scenarios/cancel/slow.yaml", "my_agent:broken"),
        ("not_run", meant, "ERROR", "scenarios/hello.yaml", "my_agent:broken"),
    ]
    [(message,), _] = written(folder, "message")
    assert message in done.err
    assert read(folder / "found.json")["totals"]["errors"] == 2


def test_what_could_be_run_is_written_behind_what_could_not(cli: Cli, folder: Path) -> None:
    text = (folder / "my_agent.py").read_text(encoding="utf-8")
    late = "made = []\n\n\ndef late(env):\n    made.append(1)\n"
    late += "    return build(env) if made[1:] else 3\n"
    (folder / "my_agent.py").write_text(f"{text}\n\n{late}", encoding="utf-8")
    done = cli("run", "more", "scenarios/hello.yaml", "--agent", "my_agent:late", *BOTH)
    assert done.code == 2
    assert done.err.endswith("1 of 2 runs could not be made\n")
    assert written(folder, "kind", "status", "scenario") == [
        ("not_run", "ERROR", "more/wrong answer"),
        ("run", "PASS", "scenarios/hello"),
    ]
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert '<b class="badge pass">PASS</b> 1<b class="badge error">ERROR</b> 1</p>' in page


@pytest.mark.parametrize("command", ["run", "sweep", "explore"])
def test_files_with_errors_are_written_each_with_its_problems(
    cli: Cli, folder: Path, command: str
) -> None:
    assert cli(command, "scenarios/hello.yaml", *BOTH).code == 0
    for name in ("a", "b"):
        text = "about: It answers.\nturms: []\nloops: 3\n"
        (folder / f"scenarios/{name}.yaml").write_text(text, encoding="utf-8")
    done = cli(command, *BOTH)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("problems found; nothing was run\n")
    assert written(folder, "kind", "status", "source") == [
        ("not_run", "ERROR", "scenarios/a.yaml"),
        ("not_run", "ERROR", "scenarios/b.yaml"),
    ]
    for (message,) in written(folder, "message"):
        problems, _, last = message.rpartition("\n")
        assert (problems in done.err, last) == (True, "nothing was run")


@pytest.mark.parametrize("command", ["run", "sweep", "explore"])
@pytest.mark.parametrize(
    "options", ["--loop turm", "--agent my_agent:none", "--agent leaves:build"]
)
def test_what_keeps_everything_from_being_run_is_written(
    cli: Cli, folder: Path, command: str, options: str
) -> None:
    (folder / "leaves.py").write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    done = cli(command, "scenarios", *options.split(), *BOTH)
    assert (done.code, done.out) == (2, "")
    [(kind, message, scenario)] = written(folder, "kind", "message", "scenario")
    assert (kind, f"{message}\n", scenario) == ("not_run", done.err, "")


def test_a_cassette_with_errors_is_written_by_its_name(cli: Cli, folder: Path) -> None:
    (folder / "text.yaml").write_text("format: 3\n", encoding="utf-8")
    line = ("run", "scenarios/hello.yaml", "--loop", "turn", "--cassette", "text.yaml")
    assert cli(*line, *BOTH).code == 2
    assert written(folder, "kind", "source") == [("not_run", "text.yaml")]


def test_sweeps_without_points_are_written_and_are_no_errors(cli: Cli, folder: Path) -> None:
    done = cli("sweep", "scenarios", "--roles", "tool", *BOTH)
    assert done.err == "passed over, with no such point: scenarios/hello.yaml\n"
    assert written(folder, "kind", "status", "scenario") == [
        ("sweep", "PASS", "scenarios/cancel/slow"),
        ("not_run", "SKIPPED", "scenarios/hello"),
    ]
    totals = read(folder / "found.json")["totals"]
    assert (totals["skipped"], totals["errors"], totals["sweeps"]) == (1, 0, 1)
    assert cli("sweep", "scenarios/hello.yaml", "--roles", "tool", *BOTH).code == 2
    assert written(folder, "kind", "status") == [("not_run", "ERROR")]


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


@pytest.mark.parametrize("option", ["--json", "--html"])
@pytest.mark.parametrize("file", ["scenarios/hello.yaml", "new.YML", "my_agent.py"])
def test_no_scenario_and_no_program_is_overwritten(
    cli: Cli, folder: Path, option: str, file: str
) -> None:
    before = (folder / "scenarios/hello.yaml").read_text(encoding="utf-8")
    done = cli("run", option, file)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"{file} is named as scenarios and programs are")
    assert (folder / "scenarios/hello.yaml").read_text(encoding="utf-8") == before


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


class Unread(Broken):
    """A pipe that nobody reads, or that is full."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    "line",
    [
        "run scenarios --loop turn",
        "sweep scenarios/hello.yaml",
        "explore scenarios/hello.yaml --runs 5",
        "show scenarios/hello.yaml",
        "cassette show text.yaml text.yaml",
    ],
)
@pytest.mark.parametrize(("error", "code"), [(BrokenPipeError(32, ""), 141), (OSError(28, ""), 2)])
def test_files_are_written_where_nobody_reads_what_is_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, error: OSError, code: int
) -> None:
    shutil.copy(CASSETTE, folder / "text.yaml")
    monkeypatch.setattr(sys, "stdout", Unread(error))
    files = ["--html", "page.html"]
    files += [] if "show" in line else ["--json", "found.json"]
    assert main([*line.split(), *files]) == code
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count('<section id="r') == (2 if "text" in line or "run " in line else 1)
    assert "show" in line or read(folder / "found.json")["results"]


def test_one_file_is_written_where_the_other_cannot_be(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        if path.suffix == broken:
            raise OSError(28, "No space left on device")
        path.write_bytes(data)

    monkeypatch.setattr("harness.core.files.replace", full)
    for broken, whole in ((".json", "page.html"), (".html", "found.json")):
        line = "run scenarios/hello.yaml --json found.json --html page.html"
        done = cli(*line.split())
        assert done.code == 2
        assert "1 passed, 0 failed" in done.out
        assert f"{broken} cannot be written: No space left on device" in done.err
        assert (folder / whole).stat().st_size
        (folder / whole).unlink()


def test_a_file_that_cannot_be_written_is_told_though_nobody_reads_what_is_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_path: Path, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.core.files.replace", full)
    monkeypatch.setattr(sys, "stdout", Unread(BrokenPipeError(32, "Broken pipe")))
    assert main(["run", "scenarios/hello.yaml", "--json", "found.json"]) == 141
    assert capsys.readouterr().err == "found.json cannot be written: No space left on device\n"


def test_two_reports_in_one_file_are_told_before_anything_is_run(cli: Cli, folder: Path) -> None:
    (folder / "link").symlink_to("found")
    for other, said in [
        ("found", "found is named twice; name two files\n"),
        ("more/../found", "found and more/../found are one file; name two\n"),
        ("link", "found and link are one file; name two\n"),
    ]:
        done = cli("run", "scenarios/hello.yaml", "--json", "found", "--html", other)
        assert done == (2, "", said)
    nowhere = ["--json", os.devnull, "--html", os.devnull]
    assert cli("run", "scenarios/hello.yaml", *nowhere).code == 0


def test_a_name_that_is_too_long_is_told(cli: Cli) -> None:
    for name in ("a" * 300, f"{'a' * 300}/x"):
        done = cli("run", "scenarios/hello.yaml", "--json", name)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"{name} cannot be written: ")
