"""`harness sweep` and `harness replay`: what is shown, what replays it, exit codes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from harness.cli.sweep import _each
from harness.exploration.sweep import SWEEP_BUDGET
from harness.runner.files.load import load
from harness.runner.token import Token, digest
from tests.cli.conftest import HELLO, Cli

SCRIPTS = Path(sys.executable).parent
CASE = """\
about: Two tools, one of them slow.
tools:
  quick: {returns: "1", takes: 10ms}
  slow: {returns: "2", takes: 50ms}
turns:
  - user: Go.
    model:
      - calls: [quick, slow]
      - say: Gone.
"""
HAND_LOOP = """\
import asyncio

from harness import ModelRequest, ReplyDone, tool_result, user


class HandLoop:
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
            self.messages += await self.run_tools(reply.calls)

    async def ask(self):
        request = ModelRequest("m", "", tuple(self.messages))
        async for part in await self.env.model.generate(request):
            if isinstance(part, ReplyDone):
                return part.message

    async def run_tools(self, calls):
        return await asyncio.gather(*map(self.run_tool, calls))

    async def run_tool(self, call):
        return tool_result(call.id, await self.env.tools.call(call.name, call.args, call.id))


class Mended(HandLoop):
    async def run_tools(self, calls):
        try:
            return await super().run_tools(calls)
        except asyncio.CancelledError:
            self.messages += [tool_result(call.id, "cancelled", is_error=True) for call in calls]
            raise


class Short(HandLoop):
    async def turn(self, text):
        self.messages = []
"""
ODD = """\
import itertools

from hand import HandLoop
from harness import user

numbers = itertools.count()


def build(env):
    agent = HandLoop(env)
    agent.messages.append(user(str(next(numbers))))
    return agent
"""
SWEPT = """\
FAIL two tools/case on hand:HandLoop
cancels     points  clean  tolerated  failed  unresolved  missed  n/a
late             3      0          0       3           0       0    8
all              3      0          0       3           0       0    8
turn tasks       1      0          0       1           0       0    6
tool tasks       2      0          0       2           0       0    2
11 sites, told: turn; 6 runs
n/a: the task only yields, and waits for nothing (5), the task has not begun (3)

FAIL cancelled at 1.1#1/late:turn
1.1#1/late:turn: when task 1.1 has what it waits for and is about to go on at hand.py:30 in \
HandLoop.run_tool, the turn's task is cancelled; it came to: cancelled
RESUME: the request after a cancelled turn is not valid: messages[1]: no result follows for the \
calls call_1_1_1, call_1_1_2 (at 3 of 3 points)
    10ms     -      cancel_delivered    turn 1 by task
    10ms     -      turn_ended          turn 1 cancelled
    10ms     -      turn_started        turn 2 "Continue.", added by the runner
  > 10ms     2      request_sent        2.1 main: kept 1, added [assistant call quick call_1_1_1 \
{}, call slow call_1_1_2 {}] [user "Continue."], ~35 tokens
    10ms     2      reply_ended         2.1 refused, "invalid request: messages[1]: no result \
follows for the calls call_1_1_1, call_1_1_2"
who ran when, and where it waits then:
    step task      waits at                        decided by then
       5 1.1  tool hand.py:30 in HandLoop.run_tool
       6 1.2  tool hand.py:30 in HandLoop.run_tool
       7 1.1  tool (has ended)                     cancel 1.1#1/late:turn
       8 1.2  tool (has ended)
       9 1    turn (has ended)
      10 2    turn hand.py:22 in HandLoop.ask
    (and 3 before and 1 after)
the nearest run that passes: without the cancel 1.1#1/late:turn; what differs, times aside:
    @@ -5,9 +5,10 @@
     1.2    tool_started        slow call_1_1_2 {}
    -1.1    tool_effect         quick call_1_1_1
    -1.1    tool_ended          quick call_1_1_1 returned "1"
    -1.2    tool_effect         slow call_1_1_2
    -1.2    tool_ended          slow call_1_1_2 returned "2"
    -1      request_sent        1.2 main: kept 1, added [assistant call quick call_1_1_1 {}, call \
slow call_1_1_2 {}] [tool call_1_1_1 "1"] [tool call_1_1_2 "2"], ~37 tokens
    -1      delta               1.2 text "Gone."
    -1      reply_ended         1.2 complete, [assistant "Gone."]
    --      turn_ended          turn 1 completed
    +-      cancel_requested    turn 1 by task: "1.1#1/late:turn"
    +1.1    tool_ended          quick call_1_1_1 cancelled
    +1.2    tool_ended          slow call_1_1_2 cancelled
    +-      cancel_delivered    turn 1 by task
    +-      turn_ended          turn 1 cancelled
    +-      turn_started        turn 2 "Continue.", added by the runner
    (3 lines more)
run it again:
harness replay h1.TOKEN 'two tools/case.yaml' --agent hand:HandLoop
"""
REPLAYED = """\
two tools/case on hand:HandLoop
1.1#1/late:turn: when task 1.1 has what it waits for and is about to go on at hand.py:30 in \
HandLoop.run_tool, the turn's task is cancelled; it came to: cancelled
outcomes: cancelled, error
FAIL: something is wrong with this run
FAIL two tools/case on hand:HandLoop
two tools/case.yaml: RESUME in turn 2: the request after a cancelled turn is not valid: \
messages[1]: no result follows for the calls call_1_1_1, call_1_1_2
    10ms     -      cancel_delivered    turn 1 by task
    10ms     -      turn_ended          turn 1 cancelled
    10ms     -      turn_started        turn 2 "Continue.", added by the runner
  > 10ms     2      request_sent        2.1 main: kept 1, added [assistant call quick call_1_1_1 \
{}, call slow call_1_1_2 {}] [user "Continue."], ~35 tokens
    10ms     2      reply_ended         2.1 refused, "invalid request: messages[1]: no result \
follows for the calls call_1_1_1, call_1_1_2"
run it again:
harness replay h1.TOKEN 'two tools/case.yaml' --agent hand:HandLoop
"""
HAND = ("two tools", "--agent", "hand:HandLoop", "--whom", "turn")
LATE = (*HAND, "--modes", "late")


@pytest.fixture
def hand(folder: Path) -> Iterator[Path]:
    """A folder with a loop written by hand, and a scenario for it."""
    (folder / "hand.py").write_text(HAND_LOOP, encoding="utf-8")
    (folder / "odd.py").write_text(ODD, encoding="utf-8")
    (folder / "two tools").mkdir()
    (folder / "two tools" / "case.yaml").write_text(CASE, encoding="utf-8")
    yield folder
    for name in ("hand", "odd"):
        sys.modules.pop(name, None)


def pinned(text: str) -> str:
    """What was printed, without what depends on the version of Python."""
    return re.sub(r"\bh1\.\S+", "h1.TOKEN", text)


def last(text: str) -> list[str]:
    """The last line printed, as a shell takes it."""
    return shlex.split(text.splitlines()[-1])


# --- sweep

EMPTY_REPLY = """\
about: A reply without a word, which the recorded policy keeps as it came.
loops: [turn]
turns:
  - {user: Hello, model: [{say: ""}]}
  - {user: And now?, model: [{say: Still here.}]}
"""


def test_what_is_known_of_a_policy_is_told_with_its_reason_and_passes(cli: Cli) -> None:
    done = cli("sweep", "scenarios/cancel/slow.yaml", "--policy", "reference")
    assert done.code == 0
    known = "Every call of a batch that is given up is said not to have run."
    assert f"tolerated: OUTCOME-TRUTH, {known}" in done.out


def test_a_failure_is_shown_whole(cli: Cli, hand: Path) -> None:
    done = cli("sweep", *LATE)
    assert (done.code, pinned(done.out), done.err) == (1, SWEPT, "")


def test_the_last_line_printed_replays_the_failure_in_a_shell(cli: Cli, hand: Path) -> None:
    line = cli("sweep", *LATE).out.splitlines()[-1]
    again = subprocess.run(
        ["bash", "-c", line],
        cwd=hand,
        env={**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (again.returncode, pinned(again.stdout), again.stderr) == (1, REPLAYED, "")
    assert again.stdout.splitlines()[-1] == line


def test_the_line_of_a_reference_loop_names_it_with_its_policy(cli: Cli) -> None:
    Path("empty.yaml").write_text(EMPTY_REPLY, "utf-8")
    done = cli("sweep", "empty.yaml", "--policy", "reference", "--whom", "agent")
    assert done.code == 1
    assert last(done.out)[3:] == ["empty.yaml", "--loop", "turn", "--policy", "reference"]
    again = cli(*last(done.out)[1:])
    assert (again.code, last(again.out)) == (1, last(done.out))


def test_without_a_path_all_scenarios_are_swept(cli: Cli) -> None:
    done = cli("sweep")
    assert done.code == 0
    assert done.out.splitlines()[:3] == [
        "verdict  scenario               loop         points  failed  open  n/a  runs",
        "PASS     scenarios/cancel/slow  turn (safe)      61       0     0  100    63",
        "PASS     scenarios/hello        turn (safe)      21       0     0   39    23",
    ]
    assert done.out.splitlines()[-1] == "2 passed, 0 failed, 0 incomplete"


def test_modes_roles_and_addressees_can_be_chosen(cli: Cli) -> None:
    def rows(*options: str) -> list[str]:
        done = cli("sweep", "scenarios/hello.yaml", *options)
        assert done.code == 0
        return done.out.splitlines()

    names = [row.split()[0] for row in rows("--modes", "all")[2:7]]
    assert names == ["start", "early", "late", "mid", "double"]
    some = rows("--modes", "early, start", "--roles", "model", "--whom", "task,agent")
    assert [row.split()[0] for row in some[2:6]] == ["early", "start", "all", "model"]
    assert "told: task, agent" in some[6]


def test_a_budget_that_is_spent_is_told_and_is_no_pass(cli: Cli) -> None:
    done = cli("sweep", "scenarios/hello.yaml", "--budget", "9")
    assert done.code == 1
    assert done.out.splitlines()[0] == "INCOMPLETE scenarios/hello on turn (safe)"
    assert done.out.splitlines()[-1] == "INCOMPLETE: the budget of 9 runs is spent"


def test_the_help_tells_the_budget_that_holds(cli: Cli) -> None:
    assert f"{SWEEP_BUDGET.runs:,} if not given" in " ".join(cli("sweep", "--help").out.split())


def test_several_processes_print_the_same(cli: Cli, hand: Path) -> None:
    (hand / "two tools" / "hello.yaml").write_text(HELLO, encoding="utf-8")
    done = cli("sweep", *HAND, "--jobs", "2")
    assert done == cli("sweep", *HAND)
    assert done.out.splitlines()[1].startswith("FAIL     two tools/case ")
    assert done.out.splitlines()[2].startswith("PASS     two tools/hello ")


def test_a_scenario_without_a_point_is_passed_over_by_name(cli: Cli) -> None:
    done = cli("sweep", "scenarios", "--roles", "tool")
    assert (done.code, done.out.splitlines()[0]) == (0, "PASS scenarios/cancel/slow on turn (safe)")
    assert done.err == "passed over, with no such point: scenarios/hello.yaml\n"
    alone = cli("sweep", "scenarios/hello.yaml", "--roles", "tool")
    assert (alone.code, alone.out) == (2, "")
    assert alone.err == (
        "scenarios/hello.yaml: scenarios/hello on turn (safe): there is no point to cancel at for "
        "the modes start, early, late, the roles tool and whom agent, turn, task; the run has "
        "7 sites, of the roles turn, model\n1 of 1 sweep could not be made\n"
    )


def test_no_result_is_lost_to_one_sweep_that_cannot_be_made(cli: Cli, hand: Path) -> None:
    (hand / "sly.py").write_text(
        "from hand import Mended\nimport odd\n\n\ndef build(env):\n"
        "    return (Mended if 'clock' in env.tools.functions() else odd.build)(env)\n",
        encoding="utf-8",
    )
    done = cli("sweep", "scenarios/cancel", "two tools", "--agent", "sly:build", "--whom", "turn")
    assert done.code == 2
    assert done.out.startswith("PASS scenarios/cancel/slow on sly:build\n")
    assert done.err.startswith("two tools/case.yaml: two tools/case on sly:build: two runs with ")
    assert done.err.endswith("\n1 of 2 sweeps could not be made\n")


def test_an_agent_that_is_not_deterministic_is_told(cli: Cli, hand: Path) -> None:
    done = cli("sweep", "two tools", "--agent", "odd:build")
    assert (done.code, done.out) == (2, "")
    assert "two tools/case on odd:build: two runs with the same choices went different" in done.err
    assert "line 2 is the first that differs\n  first:  0s       1      request_sent" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--modes", "lat"], "unknown mode 'lat' (did you mean 'late'?); known: start, early, "),
        (["--modes", ""], "no mode is chosen; known: start, early, late, mid, double"),
        (["--roles", "tools"], "unknown role 'tools' (did you mean 'tool'?); known: turn, model"),
        (["--whom", "taks"], "unknown addressee 'taks' (did you mean 'task'?); known: agent, "),
        (["--budget", "0"], "Invalid value for '--budget'"),
        (["--jobs", "0"], "Invalid value for '--jobs'"),
        (["--loop", "trun"], "unknown loop 'trun' (did you mean 'turn'?)"),
        (["--agent", "my_agnet:build"], "there is no module 'my_agnet' (did you mean"),
        (["nowhere"], "there is no nowhere"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_run(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli("sweep", *arguments)
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
    done = cli("sweep", "--modes", "start", "--jobs", jobs)
    assert done.code == 0
    shown = {
        "1": [
            "1 of 2: scenarios/cancel/slow: one cancel, run 9 of 18",
            "2 of 2: scenarios/hello: ",
        ],
        "2": ["1 of 2 scenarios", "2 of 2 scenarios"],
    }[jobs]
    for text in shown:
        assert any(update.startswith(text) for update in updates), updates


# --- replay


def test_what_is_mended_does_not_show_again(cli: Cli, hand: Path) -> None:
    command = last(cli("sweep", *LATE).out)[1:-1]
    done = cli(*command, "hand:Mended")
    assert done.code == 0
    assert done.out.splitlines()[-2:] == [
        "outcomes: cancelled, completed",
        "PASS: nothing is wrong with this run",
    ]


def test_a_cancel_that_is_not_reached_any_more_is_no_pass(cli: Cli, hand: Path) -> None:
    command = last(cli("sweep", *LATE).out)[1:-1]
    done = cli(*command, "hand:Short")
    assert done.code == 1
    assert "INCOMPLETE: the cancel 1.1#1/late:turn was not reached" in done.out


def test_a_changed_comment_does_not_matter_and_a_changed_scenario_does(
    cli: Cli, hand: Path
) -> None:
    command = last(cli("sweep", *LATE).out)[1:]
    file = hand / "two tools" / "case.yaml"
    file.write_text("# Why this is here.\n" + CASE, encoding="utf-8")
    assert cli(*command).code == 1
    file.write_text(CASE.replace("50ms", "60ms"), encoding="utf-8")
    done = cli(*command)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("the token was made of another scenario: it is for ")
    assert done.err.endswith("give the file it was made of, as it was then, or search again\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda token: token[:-9], "is damaged: what it says and its checksum do not agree"),
        (lambda token: "h9" + token[2:], "is of the version h9, and this is a harness that reads"),
        (lambda token: "case.yaml", "'case.yaml' is not a replay token; expected one like h1.311."),
    ],
)
def test_a_token_that_cannot_be_read_is_told(
    cli: Cli, folder: Path, change: object, message: str
) -> None:
    token = str(Token.of(digest(load("scenarios/hello.yaml"))))
    assert cli("replay", token, "scenarios/hello.yaml").code == 0
    done = cli("replay", change(token), "scenarios/hello.yaml")  # type: ignore[operator]
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_replay_takes_one_scenario_on_one_subject(cli: Cli) -> None:
    done = cli("replay", "h1.", "scenarios")
    assert (done.code, done.err) == (2, "scenarios holds 2 scenarios; name the file of one\n")


def sleeps(name: str) -> list[Any]:
    if name == "long":
        time.sleep(600)
    return []


def test_ctrl_c_waits_for_no_other_process() -> None:
    scenarios: Any = ["short", "long", "long"]
    found = _each(sleeps, scenarios, jobs=2)
    assert next(found) == []
    with pytest.raises(KeyboardInterrupt):
        found.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    assert active_children() == []
