"""What shells offer where TAB is pressed, and how they come to ask."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import completion
from tests.cli.conftest import Cli

SCRIPTS = Path(sys.executable).parent


def asked(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str, shell: str = "bash") -> list[str]:
    """What a shell is told for a line with the cursor at its end."""
    words = line.split(" ")
    monkeypatch.setenv("_HARNESS_COMPLETE", f"complete_{shell}")
    if shell == "bash":
        parts = line.replace(":", " : ").rstrip(" ").split(" ") if ":" in words[-1] else words
        monkeypatch.setenv("COMP_WORDS", "\n".join(parts))
        monkeypatch.setenv("COMP_CWORD", str(len(parts) - 1))
    else:
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    done = cli()
    monkeypatch.delenv("_HARNESS_COMPLETE")
    monkeypatch.delenv("_HARNESS_BEFORE", raising=False)
    assert (done.code, done.err) == (0, "")
    return done.out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("harness ru", ["run"]),
        ("harness cassette to", ["to-scenario"]),
        ("harness run --verb", ["--verbose"]),
        ("harness run --loop ", ["turn", "fsm"]),
        ("harness run --policy r", ["reference"]),
        ("harness run --level mo", ["model"]),
        ("harness run --level server:a", ["anthropic"]),
        ("harness run --level http:", ["openai_chat", "openai_responses", "anthropic", "gemini"]),
        ("harness run scenarios/", ["scenarios/cancel/", "scenarios/hello.yaml"]),
        ("harness show --level http:gemini scenarios/h", ["scenarios/hello.yaml"]),
        ("harness replay h1.1 scenarios/c", ["scenarios/cancel/slow.yaml"]),
        ("harness serve scenarios/h", ["scenarios/hello.yaml"]),
        ("harness serve --provider op", ["openai_chat", "openai_responses"]),
        ("harness record --provider g", ["gemini"]),
        ("harness explore --order f", ["fifo"]),
        ("harness explore --strategy p", ["pct:"]),
        ("harness sweep --modes early,", ["early,all", "early,start", "early,late", "early,mid",
                                          "early,double"]),
        ("harness sweep --roles to", ["tool"]),
        ("harness sweep --whom a", ["agent"]),
        ("harness conform t", ["turn", "trim"]),
    ],
)  # fmt: skip
def test_a_word_is_completed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]
) -> None:
    assert asked(cli, monkeypatch, line) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_ask_too(cli: Cli, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    told = " ".join(asked(cli, monkeypatch, "harness run --level http:an", shell))
    assert "http" in told
    assert "anthropic" in told
    assert "scenarios/hello.yaml" in " ".join(
        asked(cli, monkeypatch, "harness run scenarios/h", shell)
    )


def test_paths_are_scenarios_and_folders(folder: Path) -> None:
    (folder / "notes.txt").write_text("", encoding="utf-8")
    (folder / ".hidden").mkdir()
    assert completion.scenarios("") == ["more/", "scenarios/"]
    assert completion.scenarios("more") == ["more/wrong answer.yaml"]
    assert completion.scenarios("scenarios/c") == ["scenarios/cancel/slow.yaml"]
    assert completion.scenarios("scenarios/hello.yaml") == []  # it is whole: shells leave it
    assert completion.scenarios(".h") == [".hidden/"]
    assert completion.scenarios(f"{folder}/mo") == [f"{folder}/more/wrong answer.yaml"]
    assert completion.scenarios("nowhere/x") == []
    assert completion.scenarios("notes") == []


def test_a_folder_of_the_user_is_known_by_its_tilde(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert completion.scenarios("~/scenarios/h") == ["~/scenarios/hello.yaml"]


def test_of_folders_that_no_one_can_look_into_nothing_is_offered() -> None:
    assert completion.scenarios("~nobody-of-this-name/x") == []
    assert completion.scenarios("a\0b/x") == []


def test_names_that_no_shell_can_be_told_are_left_out(folder: Path) -> None:
    (folder / "odd").mkdir()
    for name in (b"two\nlines.yaml", b"broken\xff.yaml", "größe.yaml".encode()):
        (folder / "odd" / os.fsdecode(name)).touch()
    assert completion.scenarios("odd/") == ["odd/größe.yaml"]


def test_a_link_that_leads_back_up_is_not_followed_for_ever(folder: Path) -> None:
    (folder / "round").mkdir()
    (folder / "round" / "round").symlink_to(folder / "round")
    [offered] = completion.scenarios("round")
    assert offered.count("/") <= 12


def test_words_that_bash_took_apart_are_put_together() -> None:
    environ = {"COMP_WORDS": "harness\nrun\n--level\nhttp\n:\nan\nx", "COMP_CWORD": "5"}
    completion.join_words(environ)
    assert environ == {
        "COMP_WORDS": "harness\nrun\n--level\nan",
        "COMP_CWORD": "3",
        "_HARNESS_BEFORE": "http:",
    }
    nothing = {"COMP_CWORD": "1"}
    completion.join_words(nothing)
    assert nothing == {"COMP_CWORD": "1"}


def test_bash_completes_with_the_script_that_it_is_given(folder: Path) -> None:
    program = """
        eval "$(_HARNESS_COMPLETE=source_bash harness)"
        COMP_WORDS=(harness sweep --level http : an) COMP_CWORD=5
        _harness_completion harness; printf '%s\\n' "${COMPREPLY[@]}"
        COMP_WORDS=(harness run scenarios/c) COMP_CWORD=2
        _harness_completion harness; printf '%s\\n' "${COMPREPLY[@]}"
        COMP_WORDS=(harness run more) COMP_CWORD=2
        _harness_completion harness; printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", program],
        cwd=folder,
        env={"PATH": f"{SCRIPTS}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("anthropic\nscenarios/cancel/slow.yaml\n\n", "")


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".bash_completions/harness.sh"),
        ("zsh", ".zfunc/_harness"),
        ("fish", ".config/fish/completions/harness.fish"),
    ],
)
def test_completion_is_installed_and_shown_for_the_shell_that_is_used(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, shell: str, file: str
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    shown = cli("--show-completion")
    assert shown.code == 0
    done = cli("--install-completion")
    assert done.code == 0
    assert f"{shell} completion installed in {folder / file}" in done.out
    assert (folder / file).read_text(encoding="utf-8").strip() == shown.out.strip()
