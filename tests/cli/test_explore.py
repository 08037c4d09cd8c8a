"""`harness explore`, and `harness replay` of what it finds: what is shown, exit codes, mistakes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli.progress import Telling
from harness.exploration.budget import BUDGET, Progress
from harness.runner.token import Token
from tests.cli.conftest import Cli

SCRIPTS = Path(sys.executable).parent
CASE = """\
about: Two tools that take equally long.
tools:
  clock: {returns: "14:05", takes: 10ms}
  weather: {returns: sunny, takes: 10ms}
turns:
  - user: Time and weather?
    model:
      - calls: [clock, weather]
      - say: Sunny.
"""
HASTY = """\
import asyncio

from harness import ModelRequest, ReplyDone, sometimes, tool_result, user


class Hasty:
    def __init__(self, env):
        self.env = env
        self.messages = []

    async def turn(self, text):
        self.messages.append(user(text))
        while True:
            reply = await self.ask()
            self.messages.append(reply)
            if not reply.calls:
                return
            await self.answer(reply.calls)

    async def ask(self):
        request = ModelRequest("m", "", tuple(self.messages))
        async for part in await self.env.model.generate(request):
            if isinstance(part, ReplyDone):
                return part.message

    async def answer(self, calls):
        await asyncio.gather(*map(self.use, calls))

    async def use(self, call):
        value = await self.env.tools.call(call.name, call.args, call.id)
        if self.messages[-1].calls:
            sometimes(f"{call.name} first")
        self.messages.append(tool_result(call.id, value))


class Mended(Hasty):
    async def answer(self, calls):
        self.messages += await asyncio.gather(*map(self.use, calls))

    async def use(self, call):
        return tool_result(call.id, await self.env.tools.call(call.name, call.args, call.id))
"""
EXPLORED = """\
FAIL two tools/case on hasty:Hasty
strategy  runs  new
fifo         2    1
random       3    3
all          5    4
order completions, strategy random, seed 3
4 different schedules
goals: tool_ended clock in 5 runs, reached clock first in 4 runs, reached weather first in 1 run
budget: 10,000 runs and 30 s; it ended since the first finding ends the search

FAIL ORDER
found by random in run 5 with 6 decisions; made simple in 6 runs: 1 decision
  tie 1: task 1.2 goes on before 1.1 (number 2 of 2 that may go next)
ORDER: the request after reply 1.1 has its answers in another order (in 1 run)
    10ms     1.2    tool_ended          weather call_1_1_2 returned "sunny"
    10ms     1.1    tool_effect         clock call_1_1_1
    10ms     1.1    tool_ended          clock call_1_1_1 returned "14:05"
  > 10ms     1      request_sent        1.2 main: kept 1, added [assistant call clock call_1_1_1 \
{}, call weather call_1_1_2 {}] [tool call_1_1_2 "sunny"] [tool call_1_1_1 "14:05"], ~43 tokens
    10ms     1      delta               1.2 text "Sunny."
who ran when, and where it waits then:
    step task      waits at                    decided by then
     2-3 1    turn hasty.py:22 in Hasty.ask
       4 1    turn hasty.py:27 in Hasty.answer
       5 1.1  tool hasty.py:30 in Hasty.use
       6 1.2  tool hasty.py:30 in Hasty.use    tie 1: task 1.2 goes on before 1.1 \
(number 2 of 2 that may go next)
       7 1.2  tool (has ended)
       8 1.1  tool (has ended)
    9-11 1    turn hasty.py:22 in Hasty.ask
      12 1    turn (has ended)
the nearest run that passes: without tie 1: task 1.2 goes on before 1.1 (number 2 \
of 2 that may go next); what differs, times aside:
"""
EXPLORE = ("explore", "two tools", "--agent", "hasty:Hasty")
RANDOM = (*EXPLORE, "--strategy", "random", "--seed", "3")


@pytest.fixture
def hasty(folder: Path) -> Iterator[Path]:
    """A folder with a loop that answers calls as their tools finish, and a scenario for it."""
    (folder / "hasty.py").write_text(HASTY, encoding="utf-8")
    (folder / "two tools").mkdir()
    (folder / "two tools" / "case.yaml").write_text(CASE, encoding="utf-8")
    yield folder
    sys.modules.pop("hasty", None)


def last(text: str) -> list[str]:
    """The last line printed, as a shell takes it."""
    return shlex.split(text.splitlines()[-1])


def test_a_failure_is_shown_whole(cli: Cli, hasty: Path) -> None:
    done = cli(*RANDOM, "--sometimes", "tool_ended clock")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(EXPLORED)
    assert last(done.out)[:2] == ["harness", "replay"]
    assert last(done.out)[3:] == ["two tools/case.yaml", "--agent", "hasty:Hasty"]


def test_the_last_line_printed_replays_the_failure_in_a_shell(cli: Cli, hasty: Path) -> None:
    line = cli(*RANDOM).out.splitlines()[-1]
    again = subprocess.run(
        ["bash", "-c", line],
        cwd=hasty,
        env={**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (again.returncode, again.stderr) == (1, "")
    assert again.stdout.splitlines()[:4] == [
        "two tools/case on hasty:Hasty",
        "tie 1: of 2 that may go next, number 2 does",
        "outcomes: completed",
        "FAIL: something is wrong with this run",
    ]
    assert again.stdout.splitlines()[-1] == line


def test_what_is_mended_passes_the_replay_and_the_search(cli: Cli, hasty: Path) -> None:
    command = last(cli(*RANDOM).out)[1:-1]
    assert Token.parse(command[1]).order == "completions"
    assert cli(*command, "hasty:Mended").code == 0
    done = cli(*EXPLORE[:-1], "hasty:Mended", "--runs", "40", "--order", "tasks")
    assert done.code == 0
    assert done.out.splitlines()[-1].endswith("; it ended since the budget of 40 runs is spent")


def test_a_goal_that_no_run_reaches_is_no_pass(cli: Cli, hasty: Path) -> None:
    goals = ("--sometimes", "tool_ended weather", "--sometimes", "reached weather first")
    done = cli(*EXPLORE[:-1], "hasty:Mended", "--runs", "9", *goals)
    assert done.code == 1
    assert done.out.splitlines()[0] == "INCOMPLETE two tools/case on hasty:Mended"
    assert done.out.splitlines()[-1] == ("INCOMPLETE: no run of 9 came to: reached weather first")


def test_of_several_searches_there_is_a_table_and_the_bad_ones_whole(cli: Cli, hasty: Path) -> None:
    done = cli("explore", "scenarios", "two tools", "--agent", "hasty:Hasty", "--runs", "60")
    rows = done.out.splitlines()
    assert done.code == 1
    assert rows[0] == "verdict  scenario               loop         found  runs  schedules"
    assert re.fullmatch(r"PASS     scenarios/hello        hasty:Hasty      0 +60 +\d+", rows[2])
    assert re.fullmatch(r"FAIL     two tools/case         hasty:Hasty      1 +\d+ +\d+", rows[3])
    assert last(done.out)[:2] == ["harness", "replay"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_is_told_in_a_line(cli: Cli, monkeypatch: pytest.MonkeyPatch, jobs: str) -> None:
    runs: list[int] = []

    def interrupts(_self: Telling, _at: str, progress: Progress) -> None:
        progress_of(_self, _at, progress)
        runs.append(progress.runs)
        if progress.runs == 12:
            raise KeyboardInterrupt

    progress_of = Telling.progress
    monkeypatch.setattr(Telling, "progress", interrupts)
    done = cli("explore", "scenarios/cancel", "--runs", "50", "--jobs", jobs)
    says = "interrupted after 12 runs; nothing was judged whole\n"
    assert (done.code, done.out, done.err) == (130, "", says)
    assert max(runs) == 12


def test_without_a_path_all_scenarios_are_explored(cli: Cli) -> None:
    done = cli("explore", "--runs", "20")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "2 passed, 0 failed, 0 incomplete"


def test_several_processes_print_the_same(cli: Cli, hasty: Path) -> None:
    (hasty / "two tools" / "other.yaml").write_text(CASE.replace("Sunny.", "It is sunny."))
    options = ("--keep-going", "--runs", "120", "--cancels", "1", "--order", "tasks")
    done = cli(*EXPLORE, *options)
    assert cli(*EXPLORE, *options, "--jobs", "2") == done
    assert done.out.count("\nFAIL ORDER") == 2


def test_no_result_is_lost_to_one_search_that_cannot_be_made(cli: Cli, hasty: Path) -> None:
    (hasty / "odd.py").write_text(
        "import itertools\n\nfrom hasty import Mended\nfrom harness import user\n\n"
        "numbers = itertools.count()\n\n\ndef build(env):\n    agent = Mended(env)\n"
        "    if 'clock' in env.tools.functions():\n"
        "        agent.messages.append(user(str(next(numbers))))\n    return agent\n"
    )
    done = cli(
        "explore", "scenarios/hello.yaml", "two tools", "--agent", "odd:build", "--runs", "5"
    )
    assert done.code == 2
    assert done.out.startswith("PASS scenarios/hello on odd:build\n")
    assert done.err.startswith("two tools/case.yaml: two tools/case on odd:build: two runs with ")
    assert done.err.endswith("\n1 of 2 explorations could not be made\n")
    sys.modules.pop("odd")


def test_the_help_tells_the_budgets_that_hold(cli: Cli) -> None:
    shown = " ".join(cli("explore", "--help").out.split())
    assert f"[default: {BUDGET.runs}]" in shown.replace("; x>=1", "")
    assert f"[default: {BUDGET.seconds}]" in shown.replace("; x>=0.001", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--order", "task"], "unknown order 'task' (did you mean 'tasks'?); known: fifo, compl"),
        (["--strategy", "pct"], "unknown strategy 'pct'"),
        (["--sometimes", "tool_end x"], "'tool_end x' is no goal (did you mean 'tool_ended'?)"),
        (["--goal", "reachd x"], "'reachd x' is no goal (did you mean 'reached'?)"),
        (["--strategy", "few", "--cancels", "1"], "strategy few makes no cancels; use auto"),
        (["--runs", "0"], "Invalid value for '--runs'"),
        (["--seconds", "0"], "Invalid value for '--seconds'"),
        (["--cancels", "-1"], "Invalid value for '--cancels'"),
        (["--jobs", "0"], "Invalid value for '--jobs'"),
        (["--loop", "trun"], "unknown loop 'trun' (did you mean 'turn'?)"),
        (["nowhere"], "there is no nowhere"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_run(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli("explore", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_progress_is_shown_on_a_terminal_and_on_standard_error(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    updates: list[str] = []
    monkeypatch.setattr("rich.status.Status.update", lambda _, text: updates.append(str(text)))
    assert cli("explore", "--runs", "30", "--jobs", jobs).code == 0
    for text in (
        "1 of 2: scenarios/cancel/slow: random, run 30 of 30",
        "2 of 2: scenarios/hello: ",
    ):
        assert any(update.startswith(text) for update in updates), updates


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_search_may_make_replies_go_wrong(cli: Cli, hasty: Path, jobs: str) -> None:
    options = ("hasty:Mended", "--runs", "200", "--jobs", jobs)
    assert cli(*EXPLORE[:-1], *options).code == 0
    done = cli(*EXPLORE[:-1], *options, "--faults")
    assert done.code == 1
    again = last(done.out)[1:]
    assert {draw.source for draw in Token.parse(again[1]).tape} == {"fault"}
    assert cli(*again).code == 1
