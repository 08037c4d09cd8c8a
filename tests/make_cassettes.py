"""Makes the cassettes of the folder cassettes/: `make cassettes`.

The vendors' own libraries, and both reference loops, speak with a scripted provider in virtual
time, so that making them again gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from google.genai import types
from msgspec.structs import replace

from harness.core.ports import Agent
from harness.runner.agents import at_level, subject_for
from harness.runner.env import RunEnv
from harness.runner.files.load import read
from harness.runner.run import run
from harness.transport.cassettes.file import write
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.recording import recorded
from harness.transport.exchange import Exchange, Whole
from harness.wire.http import Request, Response
from tests.subjects.sdk import chat, gemini, messages, responses
from tests.subjects.sdk.loop import AsyncLoop

REPOSITORY = Path(__file__).parents[1]
FOLDER = REPOSITORY / "cassettes"
LOOPS_PLAY = REPOSITORY / "scenarios" / "tools" / "order_of_finishing.yaml"
"""The scenario for both reference loops."""
SOURCE = "a fake provider (make cassettes)"
OF_THIS_MACHINE = re.compile(r"x-stainless-(?!retry)|user-agent|x-goog-api-client")
"""Headers by which libraries tell of their version, and of the machine."""

TEXT = """\
about: A question and its answer.
turns:
  - user: What is the capital of France?
    model:
      - say: The capital of France is Paris.
        takes: 420ms
        usage: {prompt_tokens: 21, completion_tokens: 7, total_tokens: 28}
"""

TOOLS = """\
about: The model thinks, asks for two tools side by side, and answers.
tools:
  weather:
    description: The weather of a city.
    parameters: {type: object, properties: {city: {type: string}}, required: [city]}
    returns: {sky: sunny, degrees: 21}
    takes: 80ms
  clock: {description: What time it is., returns: "14:05", takes: 10ms}
turns:
  - user: How is the weather in Rome, and how late is it?
    model:
      - think: The user wants two things; I can ask for both at once.
        say: Let me look.
        calls: [{weather: {city: Rome}}, clock]
        takes: 610ms
        each: 35ms
        usage: {prompt_tokens: 85, completion_tokens: 52, total_tokens: 137, reasoning_tokens: 14}
      - say: It is sunny in Rome, at 21 degrees, and 14:05.
        takes: 380ms
        each: 28ms
        usage: {prompt_tokens: 160, completion_tokens: 17, total_tokens: 177}
"""

RETRIED = """\
about: The provider is busy; asked again after the time that it names, it answers.
turns:
  - user: Name a prime number.
    model:
      - {say: Seven., takes: 290ms, each: 20ms, fault: {http: {status: 429, retry_after: 2s}}}
"""

TORN = """\
about: The connection breaks in the middle of a stream; asked again, the provider answers.
turns:
  - user: Name the planets.
    model:
      - say: "Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus, Neptune."
        takes: 300ms
        each: 25ms
        fault: {incomplete: {after: 2}}
  - user: Once more, please.
    model: [{say: Mercury to Neptune., takes: 300ms, each: 25ms}]
"""

CANCELLED = """\
about: The client wants no more in the middle of a stream, and asks for something else.
turns:
  - user: Tell me a long story.
    model:
      - say: "Once upon a time there was a queue that never ran dry, whatever came."
        takes: 350ms
        each: 40ms
    cancel: {after: delta text, nth: 3}
  - user: A short one, then.
    model: [{say: It ended well., takes: 250ms, each: 40ms}]
"""


class Thinks:
    """What each library is asked with, that the model thinks before it answers."""

    class Chat(chat.AsyncChat):
        def asked(self) -> dict[str, Any]:
            return {**super().asked(), "model": "gpt-5", "reasoning_effort": "medium"}

    class Responses(responses.AsyncResponses):
        def asked(self) -> dict[str, Any]:
            return {**super().asked(), "reasoning": {"effort": "medium", "summary": "auto"}}

    class Messages(messages.AsyncMessages):
        def asked(self) -> dict[str, Any]:
            return {**super().asked(), "max_tokens": 4096, "thinking": {"type": "adaptive"}}

    class Gemini(gemini.AsyncGemini):
        def asked(self) -> dict[str, Any]:
            asked = super().asked()
            asked["config"].thinking_config = types.ThinkingConfig(include_thoughts=True)
            return asked


class Patient(gemini.AsyncGemini):
    """Google's library asks again only where it is told to."""

    def asked(self) -> dict[str, Any]:
        asked = super().asked()
        retry = types.HttpRetryOptions(attempts=2, initial_delay=2.0, jitter=0.0)
        asked["config"].http_options = types.HttpOptions(retry_options=retry)
        return asked


class Library(NamedTuple):
    """How one protocol is spoken by its vendor's library."""

    protocol: str
    plain: Callable[..., Any]
    thinks: Callable[..., Any]
    retries: Callable[..., Any]


LIBRARIES = (
    Library("openai_chat", chat.AsyncChat, Thinks.Chat, chat.AsyncChat),
    Library(
        "openai_responses", responses.AsyncResponses, Thinks.Responses, responses.AsyncResponses
    ),
    Library("anthropic", messages.AsyncMessages, Thinks.Messages, messages.AsyncMessages),
    Library("gemini", gemini.AsyncGemini, Thinks.Gemini, Patient),
)


class Teed:
    """A run's provider whose interactions are kept, with what says something of this machine left
    out. An answer of one piece is there whole before its client hears of it, as on a network.
    """

    def __init__(self, env: RunEnv, keep: Callable[[Interaction], None]) -> None:
        self._answer = recorded(env.answer, keep, env.clock.now)

    async def answer(self, request: Request) -> Exchange:
        kept = tuple([each for each in request.headers if not OF_THIS_MACHINE.match(each[0])])
        exchange = await self._answer(replace(request, headers=kept))
        if exchange.streamed:
            return exchange
        body = b"".join([chunk async for chunk in exchange])
        return Whole(Response(exchange.status, exchange.headers, body), exchange.place)


def session(scenario: str | Path, agent: Any, protocol: str) -> tuple[Interaction, ...]:
    """What an agent and its provider say to each other in a scenario, in the order of requests."""
    case = read(scenario)
    subject = at_level(subject_for(agent, case), f"server:{protocol}")
    kept: list[Interaction] = []

    def build(env: Any) -> Agent:
        env.answer = Teed(env, kept.append).answer
        return subject.build(env)

    result = run(case, replace(subject, build=build))
    assert result.ok, result
    kept.sort(key=lambda each: each.begun)
    return tuple([replace(each, reason=HTTPStatus(each.status).phrase) for each in kept])


def sessions() -> Iterator[tuple[str, tuple[Interaction, ...]]]:
    """Every cassette: its name in the folder, and what is in it."""
    for library in LIBRARIES:

        def agent(dialect: Callable[..., Any], **how: Any) -> Callable[[Any], Agent]:
            return lambda env: AsyncLoop(env, dialect(env, **how))

        said = {
            "text": session(TEXT, agent(library.plain, stream=False), library.protocol),
            "thinking_two_calls": session(TOOLS, agent(library.thinks), library.protocol),
            "retried": session(RETRIED, agent(library.retries), library.protocol),
            "torn": session(TORN, agent(library.plain), library.protocol),
            "cancelled": session(CANCELLED, agent(library.plain), library.protocol),
        }
        for loop in ("turn", "fsm"):
            said[f"loop_{loop}"] = session(LOOPS_PLAY, loop, library.protocol)
        for name, interactions in said.items():
            yield f"{library.protocol}/{name}.yaml", interactions


def made() -> Iterator[tuple[Path, str]]:
    """Every cassette: its file in the folder, and the text of it."""
    for name, interactions in sessions():
        yield FOLDER / name, write(Cassette(interactions=interactions, source=SOURCE))


def main() -> None:
    """Write all of them."""
    for file, text in made():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(file.relative_to(REPOSITORY))


if __name__ == "__main__":
    main()
