"""Recorded sessions as scenarios: a loop that made one makes the same requests there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.messages import Usage
from harness.core.ports import Agent, Env
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Answers, Behaviour, Case, Returns, ToolSpec
from harness.runner.agents import at_level, subject_for
from harness.runner.cassettes.to_scenario import Converted, convert
from harness.runner.files.load import read_script
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.recording import recorded
from harness.wire import CODECS
from harness.wire.canonical import canonical
from tests.subjects.sdk import chat, gemini, messages, responses
from tests.subjects.sdk.loop import AsyncLoop, SyncLoop

MS = 1_000_000
PROTOCOLS = [codec.name for codec in CODECS]
SDK = {
    "openai_chat": (chat.AsyncChat, chat.SyncChat),
    "openai_responses": (responses.AsyncResponses, responses.SyncResponses),
    "anthropic": (messages.AsyncMessages, messages.SyncMessages),
    "gemini": (gemini.AsyncGemini, gemini.SyncGemini),
}
PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec(
    "weather",
    cases=(
        Case({"city": "Rome"}, Behaviour(Returns("sunny"), 50 * MS)),
        Case({"city": "Oslo"}, Behaviour(Answers("no such city"), 5 * MS)),
    ),
    description="The weather of a city.",
    parameters=PLACE,
)
CLOCK = ToolSpec("clock", calls=(Behaviour(Returns("12:00"), 10 * MS), Behaviour(Returns("12:05"))))
ROME, OSLO = ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("weather", {"city": "Oslo"})
CASE = Scenario(
    "weather",
    turns=(
        Turn(
            "What is the weather?",
            (
                Reply(
                    think="Two tools will do.",
                    say="Let me look that up, it will not take long.",
                    calls=(ROME, ScriptedCall("clock")),
                    usage=Usage(10, 5, 15),
                    takes=300 * MS,
                    each=20 * MS,
                    chunk=8,
                ),
                Reply(calls=(OSLO, ScriptedCall("clock")), takes=100 * MS),
                Reply(say="Sunny at noon in Rome.", takes=200 * MS),
            ),
        ),
        Turn("And now?", (Reply(say="Still."),)),
    ),
    tools=(CLOCK, WEATHER),
)


def sdk(protocol: str, **how: bool) -> Callable[[Env], Agent]:
    """An agent on the vendor's library."""
    dialect: Any = SDK[protocol][bool(how.get("sync"))]
    loop = SyncLoop if how.get("sync") else AsyncLoop
    return lambda env: loop(env, dialect(env, **how))


def taped(case: Scenario, agent: Any, level: str) -> tuple[Cassette, Result]:
    """What an agent asks for when it plays a scenario, and what it gets, on a cassette."""
    kept: list[Interaction] = []
    subject = at_level(subject_for(agent, case), level)

    def build(env: Any) -> Agent:
        env.level = subject.level
        env.provider.answer = recorded(env.provider.answer, kept.append, env.clock.now)
        return subject.build(env)

    result = run(case, replace(subject, build=build))
    kept.sort(key=lambda each: each.begun)
    return Cassette(interactions=tuple(kept)), result


def asked(cassette: Cassette) -> list[bytes]:
    return [canonical(each.request).digest for each in cassette.interactions]


def same(case: Scenario, agent: Any, level: str = "http:openai_chat") -> Converted:
    """Record a session, convert it, and play that, also as a file: the requests are the same."""
    cassette, _result = taped(case, agent, level)
    made = convert(cassette, "again")
    loaded = read_script(made.text)
    assert loaded == replace(
        made.scenario, name=loaded.name, source=loaded.source, turns=loaded.turns
    )
    for scenario in (made.scenario, loaded):
        again, result = taped(scenario, agent, level)
        assert asked(again) == asked(cassette), made.text
        assert result.ok, (result.failures, result.verdict.violations, made.text)
    return made


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("loop", ["turn", "fsm"])
def test_the_reference_loops_ask_the_same(loop: str, protocol: str) -> None:
    made = same(CASE, loop, f"http:{protocol}")
    assert made.level == f"http:{protocol}"


@pytest.mark.parametrize("way", [{}, {"sync": True}, {"stream": False}], ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_agent_on_a_library_asks_the_same(protocol: str, way: dict[str, bool]) -> None:
    same(CASE, sdk(protocol, **way), "model")
