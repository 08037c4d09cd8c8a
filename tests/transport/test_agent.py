"""A whole agent on OpenAI's SDK, in runs and sweeps, by the env's client and by one of its own."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import openai
import pytest

from harness.core.errors import UsageError
from harness.core.json_text import dumps, loads
from harness.core.outcome import Completed
from harness.core.ports import Env
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import ToolSpec
from harness.runner.exploring import sweep
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn

CALLS = (ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("clock", {}))
SCENARIO = Scenario(
    "weather",
    tools=(ToolSpec("weather"), ToolSpec("clock")),
    turns=(Turn("Weather?", (Reply(say="Looking.", calls=CALLS), Reply(say="Sunny."))),),
)


class Conversation:
    """What is said, as OpenAI's Chat Completions has it."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def said(self, text: str, calls: list[tuple[str, str, str]]) -> None:
        told = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": args}}
            for call, name, args in calls
        ]
        self.messages.append({"role": "assistant", "content": text, "tool_calls": told or None})

    def answered(self, call: str, text: str) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call, "content": text})

    def add(self, text: str | None) -> None:
        if text is not None:
            self.messages.append({"role": "user", "content": text})

    @property
    def asked(self) -> dict[str, Any]:
        return {"model": "gpt-x", "messages": self.messages, "stream": True}


class Heard:
    """A reply as its chunks add up."""

    def __init__(self) -> None:
        self.text = ""
        self.parts: dict[int, tuple[str, str, list[str]]] = {}

    def take(self, chunk: Any) -> None:
        for choice in chunk.choices:
            self.text += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                made = (call.id, call.function.name, [])
                self.parts.setdefault(call.index, made)[2].append(call.function.arguments or "")

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        return [(call, name, "".join(args)) for call, name, args in self.parts.values()]


class Loop(Conversation):
    """Ask, run the tools side by side, ask again; what is cut off is answered all the same."""

    def __init__(self, env: Env, http_client: Any) -> None:
        super().__init__()
        self.env = env
        self.client = openai.AsyncOpenAI(api_key="k", http_client=http_client)

    async def turn(self, text: str | None) -> None:
        self.add(text)
        while True:
            heard = Heard()
            async with await self.client.chat.completions.create(**self.asked) as stream:
                async for chunk in stream:
                    heard.take(chunk)
            if heard.calls:
                await self.run_tools(heard)
            else:
                self.said(heard.text, [])
                return

    async def run_tools(self, heard: Heard) -> None:
        results: dict[str, str] = {}

        async def one(call: str, name: str, args: Any) -> None:
            results[call] = dumps(await self.env.tools.call(name, loads(args), call))

        self.said(heard.text, heard.calls)
        try:
            async with asyncio.TaskGroup() as group:
                for call in heard.calls:
                    group.create_task(one(*call))
        finally:
            for call, _name, _args in heard.calls:
                self.answered(call, results.get(call, "Error: cut off"))


class SyncLoop(Conversation):
    """The same for a synchronous agent."""

    def __init__(self, env: Env, http_client: Any) -> None:
        super().__init__()
        self.env = env
        self.client = openai.OpenAI(api_key="k", http_client=http_client)

    def turn(self, text: str | None) -> None:
        self.add(text)
        while True:
            heard = Heard()
            with self.client.chat.completions.create(**self.asked) as stream:
                for chunk in stream:
                    heard.take(chunk)
            self.said(heard.text, heard.calls)
            if not heard.calls:
                return
            results: dict[str, str] = {}
            try:
                for call, name, args in heard.calls:
                    results[call] = dumps(self.env.tools.call_sync(name, loads(args), call))
            finally:
                for call, _name, _args in heard.calls:
                    self.answered(call, results.get(call, "Error: cut off"))


AGENTS: dict[str, Callable[[Env], Any]] = {
    "given": lambda env: Loop(env, env.http()),
    "given httpx": lambda env: Loop(env, env.http("httpx")),
    "own": lambda env: Loop(env, None),
    "sync given": lambda env: SyncLoop(env, env.http(sync=True)),
    "sync own": lambda env: SyncLoop(env, None),
}


@pytest.mark.parametrize("build", AGENTS.values(), ids=AGENTS)
def test_a_run_is_the_same_each_time(build: Callable[[Env], Any]) -> None:
    first, second = run(SCENARIO, build), run(SCENARIO, build)
    assert first.outcomes == (Completed(),)
    assert not first.failures
    assert not [each for each in first.verdict.violations if each.severity == "hard"]
    assert first.trace == second.trace


def test_the_ways_to_the_provider_make_no_difference() -> None:
    for one, other in (("given", "own"), ("sync given", "sync own")):
        assert run(SCENARIO, AGENTS[one]).trace == run(SCENARIO, AGENTS[other]).trace


@pytest.mark.parametrize("build", AGENTS.values(), ids=AGENTS)
def test_it_can_be_cancelled_anywhere(build: Callable[[Env], Any]) -> None:
    done = sweep(SCENARIO, build)
    assert done.status == "PASS", str(done)
    assert "failed" in str(done)


def test_a_loop_that_leaves_calls_open_where_it_is_cancelled_is_found() -> None:
    class Leaves(Loop):
        def answered(self, call: str, text: str) -> None:
            if text != "Error: cut off":
                super().answered(call, text)

    done = sweep(SCENARIO, lambda env: Leaves(env, None))
    assert done.status == "FAIL"
    assert "PAIR" in str(done)


def test_a_library_that_there_is_not_is_the_agents_error() -> None:
    with pytest.raises(UsageError, match="unknown library for HTTP 'aiohttp'"):
        run(SCENARIO, lambda env: Loop(env, env.http("aiohttp")))


def test_nothing_is_left_open() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for build in AGENTS.values():
            run(SCENARIO, build)
            gc.collect()


def test_a_run_that_does_not_speak_http_loads_nothing_for_it() -> None:
    program = (
        "import sys, harness; harness.run('scenarios/' + sys.argv[1]);"
        "print(*sorted({'httpx', 'httpx2', 'respx', 'httpcore2'} & sys.modules.keys()))"
    )
    scenario = "tools/parallel.yaml"
    command = [sys.executable, "-c", program, scenario]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.stdout == "\n", said.stderr
