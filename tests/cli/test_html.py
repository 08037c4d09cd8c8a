"""`--html FILE`: what came out as a page, beside what is printed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.runner.files.load import load
from harness.runner.token import Token, digest
from tests.cli.conftest import Cli

CASSETTE = Path(__file__).parents[2] / "cassettes/anthropic/text.yaml"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("run more scenarios --loop turn", "<h1>3 runs</h1>"),
        ("sweep scenarios/hello.yaml", "<h1>harness sweep</h1>"),
        ("explore scenarios/cancel --runs 5", "<h1>harness exploration</h1>"),
        ("show scenarios/hello.yaml --plain", "<h1>harness run</h1>"),
        ("cassette show text.yaml", "<h1>harness session</h1>"),
        ("cassette show text.yaml --number 1", "<h3>request 1</h3>"),
    ],
)
def test_a_page_is_written_beside_what_is_printed(
    cli: Cli, folder: Path, line: str, shown: str
) -> None:
    shutil.copy(CASSETTE, folder / "text.yaml")
    plain = cli(*line.split())
    assert cli(*line.split(), "--html", "new/page.html") == plain
    page = (folder / "new/page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>\n")
    assert shown in page


def test_a_replay_is_a_page_too(cli: Cli, folder: Path) -> None:
    token = str(Token.of(digest(load("scenarios/hello.yaml"))))
    assert cli("replay", token, "scenarios/hello.yaml", "--html", "again.html").code == 0
    assert "<h1>harness replay</h1>" in (folder / "again.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["run", "sweep", "explore", "replay h1.x", "show"])
def test_a_page_that_cannot_be_written_is_told_before_anything_is_run(
    cli: Cli, folder: Path, command: str
) -> None:
    done = cli(*command.split(), "scenarios/hello.yaml", "--html", "more")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("more ")
