"""What agents over HTTP cost: calls through our router beside a bare route of respx, runs of one
scenario at each level, and sweeps of hand-written loops on the vendors' own libraries.

One process, one core; the best of several rounds, those to be compared taken in turn, so that a
busy machine harms all alike. Compare the ratios.

Run it by hand: ``python tests/benchmarks/bench_http.py``.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.core.choices import Choices
from harness.core.messages import ModelRequest, Usage, user
from harness.core.ports import Env
from harness.core.trace import Recorder
from harness.fakes.model import FakeModel
from harness.fakes.place import Stage
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.loops import LOOPS
from harness.runner.exploring import sweep
from harness.runner.run import run
from harness.runner.scenario import Scenario, Turn
from harness.transport.exchange import Exchange
from harness.transport.in_memory import client
from harness.transport.provider import Provider
from harness.wire.codec import Asked
from harness.wire.http import Request
from harness.wire.openai_chat.codec import OpenAIChat

ROUNDS, SECONDS, CALLS = 4, 0.4, 200
URL = "https://api.openai.com/v1/chat/completions"
BODY = b'{"model": "gpt-x", "messages": [{"role": "user", "content": "Go"}]}'
REPLY = Reply(say="It is sunny.", usage=Usage(10, 5, 15))
ONE = Scenario("one", turns=(Turn("Go", (REPLY,)),))
TWO = (ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("clock"))
MS = 1_000_000
CASE = Scenario(
    "weather",
    turns=(Turn("Weather?", (Reply(say="Let me look.", calls=TWO), Reply(say="Sunny at noon."))),),
    tools=(
        ToolSpec("weather", Behaviour(Returns("sunny"), takes=50 * MS)),
        ToolSpec("clock", Behaviour(Returns("12:00"), takes=10 * MS)),
    ),
)
SDKS = {
    "openai": ("openai", "chat", "AsyncChat", "http:openai_chat"),
    "anthropic": ("anthropic", "messages", "AsyncMessages", "http:anthropic"),
    "google-genai": ("google.genai", "gemini", "AsyncGemini", "http:gemini"),
}
"""The module of a library, the subject on it, and the level at which our client speaks the same."""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def there(name: str) -> bool:
    """Whether a module is installed; says so where it is not."""
    try:
        found = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        say(f"{name}: not installed, skipped")
    return found


def best(onces: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The most that each comes to, of several rounds in turn; each gives what it did a second."""
    found = dict.fromkeys(onces, 0.0)
    for _round in range(ROUNDS):
        for name, once in onces.items():
            found[name] = max(found[name], once())
    return found


def rate(once: Callable[[], object]) -> float:
    """How often a second."""
    once()
    times, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        once()
        times += 1
    return times / (time.perf_counter() - start)


# --- calls


async def calls(made: Any, count: int) -> None:
    """Calls of a client, one after the other."""
    async with made:
        for _ in range(count):
            response = await made.post(URL, content=BODY)
            assert response.status_code == 200, response.text


def in_run(name: str) -> float:
    """Calls a second of a client that an agent in a run has made by itself."""
    module = importlib.import_module(name)
    taken = [0.0, 0.0]
    for at, count in enumerate((1, 1 + CALLS)):

        async def agent(_env: Env, _text: str | None, count: int = count) -> None:
            await calls(module.AsyncClient(verify=False), count)

        start = time.perf_counter()
        result = run(ONE, lambda env, agent=agent: _Agent(env, agent))
        taken[at] = time.perf_counter() - start
        assert not result.failures, result
    return CALLS / (taken[1] - taken[0])


class _Agent:
    def __init__(self, env: Env, turn: Any) -> None:
        self.env, self._turn = env, turn

    async def turn(self, text: str | None) -> None:
        """One turn."""
        await self._turn(self.env, text)


def timed_calls(made: Any) -> float:
    """Calls a second on asyncio's own loop."""

    async def work() -> float:
        start = time.perf_counter()
        await calls(made, CALLS)
        return CALLS / (time.perf_counter() - start)

    return asyncio.run(work())


def in_pieces(name: str) -> float:
    """Calls a second of a client whose transport is ours, without a run."""
    recorder = Recorder(time.monotonic_ns, lambda: "1")
    stage = Stage((), recorder)
    provider = Provider(stage, FakeModel(stage, recorder, Choices()), lambda: 0)
    stage.start_turn(1, "Go", (REPLY,))
    return timed_calls(client(name, provider.answer, URL))


def bare_respx() -> float:
    """Calls a second of a route that answers the same bytes to whoever asks."""
    import httpx
    import respx

    asked = Asked(ModelRequest("gpt-x", "", (user("Go"),)))
    recorder = Recorder(lambda: 0, lambda: "1")
    stage = Stage((), recorder)
    provider = Provider(stage, FakeModel(stage, recorder, Choices()), lambda: 0)
    stage.start_turn(1, "Go", (REPLY,))

    async def answered() -> tuple[Any, bytes]:
        exchange = await provider.answer(OpenAIChat().write(asked))
        return exchange.headers, b"".join([chunk async for chunk in exchange])

    headers, body = asyncio.run(answered())
    with respx.mock(assert_all_called=False) as router:
        router.post(URL).mock(return_value=httpx.Response(200, headers=headers, content=body))
        return timed_calls(httpx.AsyncClient(verify=False))


def measure_calls() -> None:
    """Calls a second, and how they compare."""
    if not (there("httpx") and there("httpx2") and there("respx")):
        return
    found = best(
        {
            "a bare route of respx, httpx": bare_respx,
            "our router in a run, httpx": lambda: in_run("httpx"),
            "our router in a run, httpx2": lambda: in_run("httpx2"),
            "our transport alone, httpx": lambda: in_pieces("httpx"),
            "our transport alone, httpx2": lambda: in_pieces("httpx2"),
        }
    )
    bare = next(iter(found.values()))
    say("calls a second of a client that the caller built")
    for name, each in found.items():
        say(f"  {name:30} {each:7.0f}   {each / bare:5.2f} of the bare route")


# --- levels


def at_level(level: str) -> Callable[[], float]:
    """Runs a second of our turn loop at a level."""
    kind = next(kind for kind in LOOPS if kind.name == "turn")

    def once() -> None:
        assert run(CASE, lambda env: kind.build(env, {}, "safe"), level=level).ok

    return lambda: rate(once)


def measure_levels() -> None:
    """Runs a second at each level."""
    found = best({level: at_level(level) for level in ("model", "http", "server")})
    say("runs a second of one scenario (two replies, two tools), our turn loop")
    for name, each in found.items():
        say(f"  {name:30} {each:7.0f}   {each / found['model']:5.2f} of those at the model")


# --- sweeps


def swept(make: Callable[[Env], Any]) -> float:
    """Runs a second of a sweep."""
    start = time.perf_counter()
    found = sweep(CASE, make)
    assert found.ok, found
    return found.report.runs / (time.perf_counter() - start)


def measure_sweep(name: str, module: str, kind: str, level: str) -> None:
    """Runs a second of a sweep on one library, and where the time of a run goes."""
    loop = importlib.import_module("tests.subjects.sdk.loop").AsyncLoop
    dialect = getattr(importlib.import_module(f"tests.subjects.sdk.{module}"), kind)
    ways: dict[str, Callable[[], float]] = {
        "its client on env.http()": lambda: swept(lambda env: loop(env, dialect(env))),
        "its own HTTP client": lambda: swept(lambda env: loop(env, dialect(env, own=True))),
    }
    if name == "google-genai":
        alone = type("Alone", (dialect,), {"client_args": None})
        ways["a TLS context a client"] = lambda: swept(lambda env: loop(env, alone(env)))
    turn = next(each for each in LOOPS if each.name == "turn")
    ways["our client, the same protocol"] = lambda: rate(
        lambda: run(CASE, lambda env: turn.build(env, {}, "safe"), level=level)
    )
    found = best(ways)
    first, ours = found["its client on env.http()"], found["our client, the same protocol"]
    say(f"runs a second of a sweep, a loop on {name}")
    for way, each in found.items():
        say(f"  {way:30} {each:7.0f}   {each / first:5.2f} of the first")
    env = SimpleNamespace(base_url="http://provider.test", http=lambda **_: _unused())
    whole, making = 1000 / first, 1000 / rate(lambda: dialect(env))
    rest = max(whole - making - 1000 / ours, 0)
    say(
        f"  a run takes {whole:.1f} ms: {making:.1f} its making of a client, {1000 / ours:.1f} the "
        f"simulation and the provider, {rest:.1f} its reading and writing"
    )


def _unused() -> Any:
    """A client as `env.http()` gives it, that nobody asks anything."""

    async def answer(_request: Request) -> Exchange:
        raise AssertionError

    return client("httpx2", answer, URL)


def main() -> None:
    """Measure and print."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    measure_calls()
    measure_levels()
    for name, (library, module, kind, level) in SDKS.items():
        if there(library):
            measure_sweep(name, module, kind, level)


if __name__ == "__main__":
    main()
