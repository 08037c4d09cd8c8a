"""Output that is closed, full or not read: no traceback, and an exit code that tells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.output import Unwritten, standard_output

COMMANDS = [
    "show scenarios/hello.yaml",
    "show scenarios/hello.yaml --plain",
    "run scenarios",
    "schema",
    "--help",
    "--version",
]
FULL = "standard output cannot be written: No space left on device\n"


def shell(folder: Path, script: str, *, colour: bool = False) -> tuple[int, str]:
    """Run a bash script in which `harness` is ours; its exit code and what it tells on stderr."""
    preface = f'harness() {{ {sys.executable} -m harness "$@"; }}; set -o pipefail; '
    done = subprocess.run(
        ["bash", "-c", preface + script],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **({"FORCE_COLOR": "1"} if colour else {})},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_reads_the_pipe(folder: Path, command: str) -> None:
    assert shell(folder, f"harness {command} | true") == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_output_is_full(folder: Path, command: str) -> None:
    assert shell(folder, f"harness {command} > /dev/full") == (2, FULL)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_output_was_closed(folder: Path, command: str) -> None:
    assert shell(folder, f"harness {command} >&-") == (0, "")


def test_a_terminal_that_goes_away(folder: Path) -> None:
    code, told = shell(folder, "harness show scenarios/hello.yaml | true", colour=True)
    assert (code, told) == (141, "")


def test_a_mistake_is_told_whatever_becomes_of_the_output(folder: Path) -> None:
    told = "there is no nowhere; expected a scenario file or a folder of them\n"
    for where in ("| true", "> /dev/null", ">&-"):
        assert shell(folder, f"harness run nowhere {where}") == (2, told)
    for where in ("2>&-", "2> /dev/full", ">&- 2>&-"):
        assert shell(folder, f"harness run nowhere {where}") == (2, "")


def test_a_run_that_fails_still_fails_where_the_output_was_closed(folder: Path) -> None:
    assert shell(folder, "harness run more >&-") == (1, "")


class Broken:
    """A stream that takes nothing, and has no file."""

    def __init__(self, error: OSError) -> None:
        self.error = error

    def write(self, text: str) -> int:
        raise self.error

    def flush(self) -> None:
        raise self.error

    def fileno(self) -> int:
        raise OSError


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (OSError(28, "No space left on device"), 2, FULL),
    ],
)
def test_a_stream_without_a_file_may_break_too(
    error: OSError,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = Broken(error)
    monkeypatch.setattr(sys, "stdout", broken)
    assert main(["schema"]) == code
    assert sys.stdout is broken
    assert capsys.readouterr().err == told


def test_an_error_of_something_else_stays_what_it_is() -> None:
    with pytest.raises(OSError, match="of mine"), standard_output():
        raise OSError(28, "of mine")
    with pytest.raises(Unwritten), standard_output():
        raise Unwritten(OSError(5, "Input/output error"))
