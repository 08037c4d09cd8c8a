"""Help that teaches, a start that is quick, a schema that is JSON."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.cli import COMMANDS, main
from harness.cli.cassette import CASSETTE
from harness.cli.conform import Kind
from harness.cli.help import WIDTH_MAX
from harness.runner.conform.vectors import CHECKS
from harness.runner.files.load import schema
from tests.cli.conftest import Cli


def test_help_names_every_command_and_the_exit_codes(cli: Cli) -> None:
    done = cli("--help")
    assert done.code == 0
    for command in COMMANDS:
        assert f"\n  {command.__name__} " in done.out
    assert "\n  cassette " in done.out
    assert "Exit codes: 0 all is well; 1 something failed" in done.out
    assert cli("-h") == done


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_the_help_of_a_command_has_an_example(cli: Cli, command: object) -> None:
    name = command.__name__
    done = cli(name, "--help")
    assert done.code == 0
    assert f"\n    harness {name}" in done.out


PAGES = [
    (),
    *[(each.__name__,) for each in COMMANDS],
    ("cassette",),
    *[("cassette", each.__name__.replace("_", "-")) for each in CASSETTE],
]


def page(cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], columns: int) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    done = cli(*words, "--help")
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_help_fits_a_terminal_and_says_the_same_in_a_narrow_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    pages = {columns: page(cli, monkeypatch, words, columns) for columns in (40, 80, 120)}
    for columns, text in pages.items():
        long = [line for line in text.splitlines() if len(line) > min(columns, WIDTH_MAX)]
        if columns < 80:  # a command is not broken, as it is there to be copied
            long = [line for line in long if not line.lstrip().startswith(("harness", "#"))]
        assert long == []
    assert pages[40].split() == pages[120].split()
    assert not re.search(r"<(list|path|int|float|str)\b", pages[120])  # types of Python


def test_what_a_command_is_for_is_said_whole(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    out = page(cli, monkeypatch, (), 80)
    assert "..." not in out.partition("Commands:")[2]
    assert (
        "  sweep     Run scenarios again and again, cancelled at every point there is,\n"
        "            and judge each run\n"
    ) in out
    narrow = page(cli, monkeypatch, (), 40)
    assert "\n  sweep\n    Run scenarios again and again,\n    cancelled" in narrow
    assert "\n  harness init\n    an example to start from\n" in narrow


def test_no_command_is_a_mistake_that_shows_the_help(cli: Cli) -> None:
    done = cli()
    assert done.code == 2
    assert "Usage: harness" in done.out + done.err


def test_an_unknown_command_is_told_with_the_nearest(cli: Cli) -> None:
    done = cli("rnu")
    assert done.code == 2
    assert "rnu" in done.err


def test_the_version_is_the_package_s(cli: Cli) -> None:
    assert cli("--version") == (0, f"harness {harness.__version__}\n", "")


def test_the_schema_is_printed_as_json(cli: Cli) -> None:
    done = cli("schema")
    assert done.code == 0
    assert json.loads(done.out) == json.loads(json.dumps(schema()))


def test_help_loads_nothing_that_it_does_not_need() -> None:
    program = (
        "import sys\nfrom harness.cli import main\nmain(['--help'])\n"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    assert "harness.cli.run" in loaded
    assert not loaded & {"asyncio", "pytest", "rich", "yaml", "harness.runner.run"}


def test_what_cannot_be_encoded_is_escaped_and_does_not_crash(folder: Path) -> None:
    text = "about: Words.\nturns: [{user: Grüße, model: [{say: 漢字}]}]\n"
    (folder / "words.yaml").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "harness", "show", "words.yaml", "--loop", "turn"],
        cwd=folder,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb'"Gr\xfc\xdfe"' in done.stdout
    assert rb'"\u6f22\u5b57"' in done.stdout


def test_output_may_go_to_any_stream(folder: Path) -> None:
    file = io.StringIO()
    with contextlib.redirect_stdout(file):
        assert main(["--version"]) == 0
    assert file.getvalue() == f"harness {harness.__version__}\n"


def test_the_module_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["harness", "--version"])
    with pytest.raises(SystemExit) as end:
        # By path: pytest rewrites what stands in a plugin's package, and runpy cannot ask it.
        runpy.run_path(str(Path(harness.__file__).parent / "__main__.py"), run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out == f"harness {harness.__version__}\n"


def test_every_kind_of_vectors_can_be_asked_for() -> None:
    assert {kind.value for kind in Kind} == set(CHECKS)
