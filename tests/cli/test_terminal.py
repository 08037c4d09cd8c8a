"""What a real terminal shows, and what a pipe is spared: progress, colours, long lines."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli.progress import Telling, telling
from harness.exploration.budget import Progress
from tests.cli.conftest import Cli

pty = pytest.importorskip("pty", reason="terminals of another kind")
HIDE_CURSOR = "\x1b[?25l"
GREEN = "\x1b[32m"


def on_terminal(folder: Path, columns: int, *words: str, **variables: str) -> str:
    """What `harness` writes to a terminal of so many columns."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *words],
        cwd=folder,
        env={"PATH": "", "TERM": "xterm", **variables},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            written += os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
    os.close(ours)
    process.wait(60)
    return written.decode().replace("\r\n", "\n")


def plain(written: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)


def test_a_terminal_gets_progress_and_colours(folder: Path) -> None:
    written = on_terminal(folder, 80, "run", "scenarios/hello.yaml")
    assert written.startswith(HIDE_CURSOR)
    assert "1 of 1: scenarios/hello" in written
    assert f"{GREEN}PASS" in written


def test_a_dumb_terminal_gets_text_and_nothing_else(folder: Path) -> None:
    written = on_terminal(folder, 80, "run", "scenarios/hello.yaml", TERM="dumb")
    assert "\x1b" not in written
    assert "1 of 1" not in written
    assert "\nPASS " in written


def test_a_narrow_terminal_gets_lines_that_fit_and_progress_without_colours(folder: Path) -> None:
    written = on_terminal(folder, 40, "sweep", "scenarios/cancel", NO_COLOR="1")
    assert not re.search(r"\x1b\[[\d;]*m", written)
    written = plain(written)
    assert "scenarios/cancel/slow: one c…" in written
    lines = [line.rpartition("\r")[2].rstrip() for line in written.splitlines()]
    assert [line for line in lines if len(line) > 40] == []


def test_a_pipe_gets_no_progress_whatever_is_said_of_colours(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness", "run", "scenarios/hello.yaml"],
        cwd=folder,
        env={"PATH": "", "TERM": "xterm", "FORCE_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{GREEN}PASS" in done.stdout


@pytest.mark.usefixtures("terminal")
def test_progress_is_plain_where_nothing_else_can_be_written(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console.Console.encoding", "ascii")
    monkeypatch.setenv("COLUMNS", "20")
    done = cli("run", "scenarios/hello.yaml")
    assert done.code == 0
    assert "1 of 1: scenarios" in done.err
    assert "scenarios/" not in done.err
    assert done.err.isascii()


@pytest.mark.usefixtures("terminal")
def test_no_name_of_a_file_commands_a_terminal(cli: Cli, folder: Path) -> None:
    odd = folder / "more" / "red\x1b[31m\nname.yaml"
    odd.write_bytes((folder / "scenarios/hello.yaml").read_bytes())
    assert "1 of 1: more/red\\u001b[31m\\u000aname" in cli("run", str(odd.relative_to(folder))).err
    done = cli("run", "gone\x1b[31m")
    assert done.err.startswith("there is no gone\\u001b[31m;")


def test_more_runs_than_were_planned_are_told_without_the_plan() -> None:
    told: list[str] = []
    telling = Telling(told.append)
    for runs in (2, 3):
        telling.progress("here", Progress("double", runs, 2, 0))
    assert told == ["here: two cancels, run 2 of 2", "here: two cancels, run 3"]


class Deaf:
    """Goes away while something runs, and Ctrl-C is pressed at this very moment."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_that_nothing_can_raise_ends_what_is_told_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sys.unraisablehook, signal.getsignal(signal.SIGINT)
    came_to: list[str] = []

    def work() -> None:
        with telling() as told:
            told.progress("here", Progress("single", 1, 2, 0))
            Deaf()
            came_to.append("after it")
            told.say("there")
            came_to.append("the end")

    with pytest.raises(KeyboardInterrupt, match="interrupted after 1 run; nothing was judged"):
        work()
    assert came_to == ["after it"]
    assert (sys.unraisablehook, signal.getsignal(signal.SIGINT)) == before
    assert capsys.readouterr().err == ""


def test_what_else_a_destructor_raises_is_told_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    class Bad:
        def __del__(self) -> None:
            raise ZeroDivisionError

    with telling():
        Bad()
    assert [each.exc_type for each in told] == [ZeroDivisionError]


def test_an_interrupt_is_left_to_who_takes_it_already(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(*_: object) -> None:
        pass

    with monkeypatch.context() as patch:
        patch.setattr(signal, "getsignal", lambda _number: own)
        patch.setattr(signal, "signal", lambda *_: pytest.fail("it was taken"))
        with telling() as told:
            told.say("on")
