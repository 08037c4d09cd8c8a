"""`harness run`: the table, the failures, the exit codes, the line that runs a failure again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.runner.agents import at_level, subject_for
from harness.runner.cassettes.taped import taped
from harness.runner.files.load import load
from harness.transport.cassettes.file import save
from tests.cli.conftest import AGENT, HELLO, Cli

SCRIPTS = Path(sys.executable).parent
FAILED = """\
verdict  scenario           loop         outcomes   requests  time
FAIL     more/wrong answer  turn (safe)  completed  1         0s
not judged: ...
0 passed, 1 failed

FAIL more/wrong answer on turn (safe)
more/wrong answer.yaml:6: turn 1: expected outcome error, found completed
    0s       1      log_row             assistant_message "Hi."
    0s       1      log_row             turn_end turn-0 completed
    0s       1      loop_event          turn_end {"error":null,"outcome":"completed"}
  > 0s       -      turn_ended          turn 1 completed
run it again:
harness run 'more/wrong answer.yaml' --loop turn
"""


def shortened(text: str) -> str:
    """What was printed, without the names of all invariants that had nothing to judge."""
    return re.sub(r"not judged: .+", "not judged: ...", text)


def test_without_a_path_all_scenarios_run(cli: Cli) -> None:
    done = cli("run")
    assert shortened(done.out).splitlines() == [
        "verdict  scenario               loop         outcomes              requests  time",
        "PASS     scenarios/cancel/slow  turn (safe)  cancelled, completed  2         10ms",
        "PASS     scenarios/hello        turn (safe)  completed             1         0s",
        "not judged: ...",
        "2 passed, 0 failed",
    ]
    assert re.search(r"judged: \d+ of \d+ invariants, \d+ more in some runs \(--verb", done.out)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("command", ["run", "sweep", "explore"])
def test_without_a_path_and_without_the_folder_it_is_said_what_is_missing(
    cli: Cli, folder: Path, command: str
) -> None:
    (folder / "scenarios").rename(folder / "others")
    done = cli(command)
    assert done.code == 2
    assert "no PATH was given, and there is no folder scenarios/ here; name a scen" in done.err


@pytest.mark.parametrize("command", ["run", "sweep", "explore"])
def test_a_loop_runs_the_scenarios_of_a_folder_that_are_for_it(
    cli: Cli, folder: Path, command: str
) -> None:
    other = folder / "scenarios" / "other.yaml"
    other.write_text(HELLO.replace("[turn]", "[fsm]"), encoding="utf-8")
    done = cli(command, "scenarios", "--loop", "turn")
    assert "left out, as they are for other loops: 1 scenario\n" in done.err
    assert "scenarios/other" not in done.out
    assert "scenarios/other" in cli(command, "scenarios/other.yaml", "--loop", "turn").out
    done = cli(command, "more", "--loop", "fsm")
    assert (done.code, done.out) == (2, "")
    assert "none of these scenarios is for the loop fsm; name the file of one" in done.err
    assert "unknown loop 'tutn'" in cli(command, "scenarios", "--loop", "tutn").err


def test_what_could_not_be_judged_is_named_on_demand(cli: Cli) -> None:
    assert "BAD-ARGS, BOUND" in cli("run", "scenarios/hello.yaml", "--verbose").out
    assert "BAD-ARGS" not in cli("run", "scenarios/hello.yaml").out


def test_what_scenarios_are_about_can_be_asked_for(cli: Cli) -> None:
    assert cli("run", "scenarios/hello.yaml", "--about").out.splitlines()[:2] == [
        "PASS  scenarios/hello on turn (safe): completed; 1 request, 0s of virtual time",
        "      It answers.",
    ]


def test_a_failure_is_shown_whole(cli: Cli) -> None:
    done = cli("run", "more")
    assert (done.code, shortened(done.out), done.err) == (1, FAILED, "")


def test_the_last_line_printed_runs_the_failure_again(cli: Cli, folder: Path) -> None:
    done = cli("run", "scenarios", "more", "--loop", "turn", "--policy", "safe")
    last = done.out.splitlines()[-1]
    assert last == "harness run 'more/wrong answer.yaml' --loop turn --policy safe"
    again = subprocess.run(
        ["bash", "-c", last],
        cwd=folder,
        env={**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1
    assert shortened(again.stdout) == FAILED.replace("--loop turn", "--loop turn --policy safe")


def test_a_user_s_agent_runs_and_is_asked_for_again(cli: Cli, folder: Path) -> None:
    good = cli("run", "scenarios/hello.yaml", "--agent", "my_agent:build")
    assert good.code == 0
    assert good.out.splitlines()[1].split()[:3] == ["PASS", "scenarios/hello", "my_agent:build"]
    bad = cli("run", "more", "--agent", "my_agent:build")
    assert bad.code == 1
    assert bad.out.splitlines()[-1] == (
        "harness run 'more/wrong answer.yaml' --agent my_agent:build"
    )


def test_a_loop_runs_on_a_cassette_and_is_asked_for_again(cli: Cli, folder: Path) -> None:
    case = load(folder / "scenarios/hello.yaml")
    _was, made = taped(case, at_level(subject_for("turn", case), "http:anthropic").build)
    save(folder / "kept/hello.yaml", made)
    good = cli("run", "scenarios/hello.yaml", "--cassette", "kept/hello.yaml", "--verbose")
    assert good.code == 0
    assert "turn (safe) at http:anthropic on kept/hello.yaml" in " ".join(good.out.split())
    text = (folder / "scenarios/hello.yaml").read_text(encoding="utf-8")
    (folder / "scenarios/other.yaml").write_text(text.replace("Hello", "Bye"), encoding="utf-8")
    bad = cli("run", "scenarios/other.yaml", "--cassette", "kept/hello.yaml")
    assert bad.code == 1
    assert "MISS in turn 1: request 1 (POST /v1/messages, anthropic) is none of those" in bad.out
    assert [line for line in bad.out.splitlines() if '"[-Hello-]" was recorded' in line] == [
        '    messages[0].content: "[-Hello-]" was recorded, "{+Bye+}" came'
    ]
    assert "\\n" not in bad.out
    assert bad.out.splitlines()[-1] == (
        "harness run scenarios/other.yaml --loop turn --cassette kept/hello.yaml"
    )
    both = cli("run", "scenarios/hello.yaml", "--cassette", "kept/hello.yaml", "--relations")
    assert both.code == 2
    assert "not swept, searched or held against other runs" in both.err
    (folder / "kept/hello.yaml").write_text("version: 1", encoding="utf-8")
    broken = cli("run", "scenarios/hello.yaml", "--cassette", "kept/hello.yaml")
    assert (broken.code, broken.out) == (2, "")
    assert "kept/hello.yaml:1:" in broken.err


def test_a_policy_holds_for_the_loops_that_files_name(cli: Cli) -> None:
    done = cli("run", "scenarios/hello.yaml", "--policy", "reference")
    assert done.code == 0
    assert "turn (reference)" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "scnarios"], "there is no scnarios (did you mean 'scenarios'?)"),
        (["run", "my_agent.py"], "my_agent.py is not a scenario file: expected the ending"),
        (["run", "--loop", "trun"], "unknown loop 'trun' (did you mean 'turn'?); known: "),
        (["run", "--policy", "sfae"], "loop turn: unknown policy 'sfae' (did you mean 'safe'"),
        (["run", "--agent", "my_agent"], "agent 'my_agent' is not of the form package.module:"),
        (["run", "--agent", "my_agnet:build"], "there is no module 'my_agnet' (did you mean"),
        (["run", "--agent", "my_agent:biuld"], "my_agent: unknown name 'biuld' (did you mean"),
        (["run", "--agent", "my_agent:broken"], "whose `turn` is missing; write `async def"),
        (["run", "--agent", "a:b", "--loop", "turn"], "--agent and --loop exclude each other"),
        (["run", "--agent", "a:b", "--policy", "safe"], "--agent and --policy exclude each other"),
        (["run", "--lop", "turn"], "No such option"),
    ],
)
def test_a_mistake_is_told_without_a_traceback(
    cli: Cli, arguments: list[str], message: str
) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


THIRD = """\
from my_agent import build as good

built = 0


def build(env):
    global built
    built += 1
    if built == 2:
        raise ValueError("no second time")
    return good(env)


def never(env):
    raise ValueError("never")
"""


def test_a_run_that_cannot_be_made_loses_nothing_of_the_others(cli: Cli, folder: Path) -> None:
    (folder / "third.py").write_text(THIRD)
    (folder / "scenarios" / "last.yaml").write_text(HELLO.replace("completed", "error"))
    done = cli(
        "run", "scenarios/hello.yaml", "more", "scenarios/last.yaml", "--agent", "third:build"
    )
    sys.modules.pop("third")
    assert done.code == 2
    out = done.out.splitlines()
    assert out[1].startswith("PASS     scenarios/hello  third:build  completed")
    assert out[2].startswith("FAIL     scenarios/last   third:build  completed")
    assert "1 passed, 1 failed" in out
    assert out[-1] == "harness run scenarios/last.yaml --agent third:build"
    first, last = done.err.splitlines()
    assert first.startswith("more/wrong answer.yaml: build raised ValueError: no second time (")
    assert last == "1 of 3 runs could not be made"


def test_what_keeps_every_run_from_being_made_is_told_once(cli: Cli, folder: Path) -> None:
    (folder / "third.py").write_text(THIRD)
    done = cli("run", "scenarios", "more", "--agent", "third:never")
    sys.modules.pop("third")
    assert (done.code, done.out) == (2, "")
    first, last = done.err.splitlines()
    files = "scenarios/cancel/slow.yaml, scenarios/hello.yaml, more/wrong answer.yaml"
    assert first.startswith(f"{files}: never raised ValueError: never (third.py:")
    assert last == "3 of 3 runs could not be made"


@pytest.mark.parametrize("code", ["0", "3", "'bye'"])
def test_an_exit_that_is_not_the_command_s_own_is_a_mistake(
    cli: Cli, folder: Path, code: str
) -> None:
    (folder / "leaving.py").write_text(f"import sys\nsys.exit({code})\n")
    done = cli("run", "scenarios", "--agent", "leaving:build")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"sys.exit({code}) was called at leaving.py:2 in <module>; an agent, and the module that "
        "it is loaded from, must leave the process running\n"
    )


def test_an_agent_that_exits_does_not_end_the_command(cli: Cli, folder: Path) -> None:
    (folder / "leaving.py").write_text(
        "import sys\n\nclass Leaving:\n    def __init__(self, env): pass\n\n"
        "    async def turn(self, text):\n        sys.exit(0)\n"
    )
    done = cli("run", "scenarios/hello.yaml", "--agent", "leaving:Leaving")
    sys.modules.pop("leaving")
    assert done.code == 1
    assert "0 passed, 1 failed" in done.out


def test_a_file_without_loops_needs_an_option(cli: Cli, folder: Path) -> None:
    (folder / "any.yaml").write_text(HELLO.replace("loops: [turn]\n", ""))
    done = cli("run", "any.yaml")
    assert (done.code, done.err) == (
        2,
        "any.yaml names no loops to run it on; "
        "add `loops: [turn]` to it, or give --loop or --agent\n",
    )
    assert cli("run", "any.yaml", "--loop", "turn").code == 0


def test_all_broken_files_are_told_and_nothing_is_run(cli: Cli, folder: Path) -> None:
    (folder / "scenarios" / "a.yaml").write_text(HELLO.replace("user", "usr"))
    (folder / "scenarios" / "b.yaml").write_text("turns: [\n")
    (folder / "scenarios" / "c.json").write_text('{"turns": 1}')
    done = cli("run")
    assert (done.code, done.out) == (2, "")
    lines = done.err.splitlines()
    assert {line.split(":")[0] for line in lines[:-1]} == {
        "scenarios/a.yaml",
        "scenarios/b.yaml",
        "scenarios/c.json",
    }
    assert lines[-1] == f"{len(lines) - 1} problems found; nothing was run"


@pytest.mark.usefixtures("terminal")
def test_progress_is_shown_on_a_terminal_and_on_standard_error(cli: Cli) -> None:
    done = cli("run", "scenarios/hello.yaml")
    assert "1 of 1: scenarios/hello" in done.err
    assert "1 of 1" not in done.out


def test_our_own_bugs_are_not_hidden(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_arguments: object, **_options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("harness.report.terminal.print_results", break_down)
    with pytest.raises(ZeroDivisionError):
        cli("run")


@pytest.mark.parametrize(
    "start",
    [[str(SCRIPTS / "harness")], [sys.executable, "-m", "harness"]],
    ids=["script", "module"],
)
def test_the_command_and_the_module_are_the_same(folder: Path, start: list[str]) -> None:
    done = subprocess.run(
        [*start, "run", "nowhere"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "there is no nowhere; expected a scenario file or a folder of them\n"


def test_files_for_others_are_passed_over_and_named(cli: Cli, folder: Path) -> None:
    (folder / "scenarios" / "compose.yml").write_text("services: {}\n")
    done = cli("run", "scenarios")
    assert (done.code, done.out.splitlines()[-1]) == (0, "2 passed, 0 failed")
    assert done.err == ("passed over, with neither `about` nor `turns`: scenarios/compose.yml\n")
    assert cli("run", "scenarios/compose.yml").code == 2


def test_a_folder_with_foreign_files_only_has_nothing_to_run(cli: Cli, folder: Path) -> None:
    (folder / "others").mkdir()
    (folder / "others" / "compose.yml").write_text("services: {}\n")
    done = cli("run", "others")
    assert done.code == 2
    assert "none of these files is a scenario" in done.err


def test_what_holds_between_runs_is_judged_where_it_is_asked_for(cli: Cli, folder: Path) -> None:
    alone = cli("run", "scenarios/hello.yaml", "--verbose")
    assert "DETERMINISM" in alone.out
    done = cli("run", "scenarios/hello.yaml", "--verbose", "--relations")
    assert done.code == 0
    assert not any(name in done.out for name in ("DETERMINISM", "PARITY", "MONOTONIC"))


def test_a_failure_between_runs_is_run_again_with_all_of_them(cli: Cli, folder: Path) -> None:
    counts = AGENT.replace('"m", "", ', 'f"m{id(self)}", "", ').replace(
        "def build(env):", "kept = []\n\n\ndef build(env):"
    )
    text = counts.replace("return Agent(env)", "kept.append(Agent(env))\n    return kept[-1]")
    (folder / "fickle.py").write_text(text)
    assert cli("run", "scenarios/hello.yaml", "--agent", "fickle:build").code == 0
    done = cli("run", "scenarios/hello.yaml", "--agent", "fickle:build", "--relations")
    assert done.code == 1
    assert "DETERMINISM in turn 1: the second time entry 1, request_sent, has …" in done.out
    last = done.out.splitlines()[-1]
    assert last == "harness run scenarios/hello.yaml --agent fickle:build --relations"


def test_ctrl_c_is_told_in_a_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupts(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.runner.run.run", interrupts)
    done = cli("run", "scenarios/hello.yaml")
    assert (done.code, done.out, done.err) == (130, "", "interrupted\n")
