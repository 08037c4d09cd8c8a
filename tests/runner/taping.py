"""Sessions of agents in runs, on cassettes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from harness.core.messages import Usage
from harness.core.ports import Agent, Env
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Answers, Behaviour, Case, Returns, ToolSpec
from harness.runner.agents import at_level, subject_for
from harness.runner.result import Result
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.recording import recorded
from harness.wire import CODECS
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
