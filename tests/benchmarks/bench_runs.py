"""Runs per second of one scenario: three steps, two parallel tools in two of them, streamed.

Ours is a whole run with trace and verdict; beside it, where they are installed, the scripted
models that openai-agents and pydantic-ai ship for their own loops. One process, one core; the
best of several rounds of each, taken in turn, so that a busy machine harms all alike.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import time
from collections.abc import Callable

from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops import LOOPS
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn

ROUNDS = 5
SECONDS = 0.6
ANSWER = "It is five past two and sunny in both places, so take no umbrella with you today."
STEPS = (
    (("clock", {"zone": "Europe/Paris"}), ("weather", {"city": "Paris"})),
    (("clock", {"zone": "Europe/Oslo"}), ("weather", {"city": "Oslo"})),
)


def harness_run() -> Callable[[], None]:
    """Our turn loop on our fakes."""
    replies = [
        Reply(calls=tuple(ScriptedCall(name, args) for name, args in step)) for step in STEPS
    ]
    tools = tuple(ToolSpec(name, Behaviour(Returns("14:05"))) for name in ("clock", "weather"))
    turn = Turn("Time and weather?", (*replies, Reply(say=ANSWER)))
    scenario = Scenario("bench", turns=(turn,), tools=tools)
    kind = next(kind for kind in LOOPS if kind.name == "turn")

    def once() -> None:
        result = run(scenario, lambda env: kind.build(env, {}, "safe"))
        assert result.ok, result
        assert [type(outcome).__name__ for outcome in result.outcomes] == ["Completed"]

    return once


def openai_agents_run() -> Callable[[], None]:
    """openai-agents' own loop on its `ScriptedModel`, streamed."""
    from agents import Agent, Runner, function_tool, set_tracing_disabled
    from agents.testing import ScriptedModel, assistant_message, function_call

    set_tracing_disabled(True)

    @function_tool
    async def clock(zone: str) -> str:
        return "14:05"

    @function_tool
    async def weather(city: str) -> str:
        return "sunny"

    async def scenario() -> None:
        steps = [
            [
                function_call(name, json.dumps(args), call_id=f"call_{number}_{name}")
                for name, args in step
            ]
            for number, step in enumerate(STEPS)
        ]
        model = ScriptedModel([*steps, [assistant_message(ANSWER)]])
        agent = Agent(name="bench", model=model, tools=[clock, weather])
        result = Runner.run_streamed(agent, "Time and weather?")
        async for _event in result.stream_events():
            pass
        assert result.final_output == ANSWER

    return lambda: asyncio.run(scenario())


def pydantic_ai_run() -> Callable[[], None]:
    """pydantic-ai's own loop on its `FunctionModel`, streamed."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    async def stream(messages, info):
        step = sum(isinstance(message, ModelResponse) for message in messages)
        if step < len(STEPS):
            for index, (name, args) in enumerate(STEPS[step]):
                yield {
                    index: DeltaToolCall(
                        name=name, json_args=json.dumps(args), tool_call_id=f"c{step}{index}"
                    )
                }
        else:
            for start in range(0, len(ANSWER), 16):
                yield ANSWER[start : start + 16]

    agent = Agent(FunctionModel(stream_function=stream))

    @agent.tool_plain
    async def clock(zone: str) -> str:
        return "14:05"

    @agent.tool_plain
    async def weather(city: str) -> str:
        return "sunny"

    async def scenario() -> None:
        async with agent.run_stream("Time and weather?") as result:
            text = await result.get_output()
        assert text == ANSWER

    return lambda: asyncio.run(scenario())


def rate(once: Callable[[], None]) -> float:
    """Runs per second over `SECONDS`."""
    runs, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        once()
        runs += 1
    return runs / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    contenders = {"harness": harness_run}
    for name, module, make in (
        ("openai-agents", "agents", openai_agents_run),
        ("pydantic-ai", "pydantic_ai", pydantic_ai_run),
    ):
        if importlib.util.find_spec(module):
            contenders[name] = make
        else:
            print(f"{name}: not installed, skipped")
    onces = {name: make() for name, make in contenders.items()}
    for once in onces.values():
        once()
    best = dict.fromkeys(onces, 0.0)
    for _round in range(ROUNDS):
        for name, once in onces.items():
            best[name] = max(best[name], rate(once))
    for name, runs in best.items():
        print(f"{name:15} {runs:8.0f} runs/s")
    rivals = {name: runs for name, runs in best.items() if name != "harness"}
    if rivals:
        name, runs = max(rivals.items(), key=lambda item: item[1])
        print(f"harness is {best['harness'] / runs:.1f} times the better of them ({name})")


if __name__ == "__main__":
    main()
