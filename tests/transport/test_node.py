"""An agent in another language, on OpenAI's own library for it, against the server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.core.outcome import outcome_name
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import ToolSpec
from harness.runner.agents import command_subject
from harness.runner.run import run
from harness.runner.scenario import Cancel, Scenario, Turn
from harness.runner.served import Served, serve
from harness.transport.framing import Framing
from tests.transport.sdks import FRAMINGS

FOLDER = Path(__file__).parents[1] / "subjects" / "node"
NODE = shutil.which("node")
MISSING = NODE is None or not (FOLDER / "node_modules/openai").is_dir()

pytestmark = pytest.mark.skipif(
    MISSING and os.environ.get("HARNESS_NODE") != "required",
    reason="needs node and the package openai of npm: make node",
)

CALLS = Reply(calls=(ScriptedCall("weather", {"city": "Grüße 😀"}), ScriptedCall("clock", {})))
TURNS = (
    Turn("How is it in Rome", (CALLS, Reply(say="It is fine. 😀", chunk=1))),
    Turn("Thanks", (Reply(say="You are welcome."),)),
)
CASE = Scenario("case", tools=(ToolSpec("weather"), ToolSpec("clock")), turns=TURNS)
AGENT = f"node {FOLDER / 'agent.mjs'}"


@contextmanager
def agent(server: Served) -> Iterator[subprocess.Popen[str]]:
    """The agent, pointed at a server by nothing but the variables."""
    process = subprocess.Popen(
        ["node", FOLDER / "agent.mjs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **server.variables},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
def test_a_conversation_with_two_tools(framing: Framing) -> None:
    with serve(CASE, framing=framing) as server, agent(server) as process:
        out, errors = process.communicate("How is it in Rome\nThanks\n", timeout=20)
        assert (out, errors) == ("It is fine. 😀\nYou are welcome.\n", "")
        assert server.findings() == ()
        last = server.trace.requests()[-1]
    assert [message.role for message in last.messages] == [
        *("user", "assistant", "tool", "tool", "assistant", "user")
    ]
    assert last.messages[1].calls[0].args == {"city": "Grüße 😀"}


def test_one_that_is_killed_in_the_middle_is_told() -> None:
    slow = Reply(say="a" * 4000, chunk=1, each=10_000_000)
    with serve(Scenario("case", turns=(Turn("Go", (slow,)), TURNS[1]))) as server:
        with agent(server) as process:
            assert process.stdin is not None
            process.stdin.write("Go\n")
            process.stdin.flush()
            while not (server.requests and server.requests[0].frames):
                pass
        (record,) = server.requests
        assert record.ending == "gone"
        assert [str(each) for each in server.findings()] == ["all of turn 2 was never asked for"]


def test_it_is_run_and_judged_as_a_command() -> None:
    result = run(CASE, command_subject(AGENT)).check()
    assert list(map(outcome_name, result.outcomes)) == ["completed", "completed"]


@pytest.mark.parametrize("nth", [1, 2])
def test_it_is_cancelled_at_a_request(nth: int) -> None:
    turn = Turn("How is it", TURNS[0].replies, Cancel(after="request_sent", nth=nth))
    result = run(Scenario("case", tools=CASE.tools, turns=(turn,)), command_subject(AGENT)).check()
    assert list(map(outcome_name, result.outcomes)) == ["cancelled", "completed"]
