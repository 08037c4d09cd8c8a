"""The vendors' own libraries as tests use them: one reply, read to its end, by each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from harness.core.choices import Choices
from harness.core.json_text import loads
from harness.core.messages import Usage
from harness.core.trace import Recorder
from harness.fakes.model import FakeModel
from harness.fakes.place import Stage
from harness.fakes.script import Reply, ScriptedCall
from harness.runner.blocking import Blocking, Frame
from harness.sim.kernel import Kernel
from harness.sim.stop import Stop
from harness.transport.framing import NOISY, PLAIN, Framing
from harness.transport.provider import Provider

T = TypeVar("T")
FULL = Reply(
    say="Let me look.",
    think="Two tools.",
    signature="sig",
    calls=(ScriptedCall("weather", {"city": "Rome"}), ScriptedCall("clock", {})),
    usage=Usage(10, 5, 15),
    takes=2_000_000_000,
    each=500_000_000,
)
FRAMINGS = {
    "frames": PLAIN,
    "whole": Framing(None),
    "bytes": Framing(1),
    "noisy": Framing(noise=NOISY),
    "comments": Framing(comments=True),
    "crlf": Framing(crlf=True),
}


class World:
    """A provider on a kernel, asynchronous and synchronous code beside it, and the trace."""

    def __init__(self, *replies: Reply, framing: Framing = PLAIN) -> None:
        self.kernel = Kernel()
        self.blocking = Blocking(self.kernel)
        self.recorder = Recorder(self.kernel.now, self.blocking.path)
        self.stage = Stage((), self.recorder)
        model = FakeModel(self.stage, self.recorder, Choices())
        self.provider = Provider(self.stage, model, lambda: 1_700_000_000, framing=framing)
        self.stage.start_turn(1, "Go", replies)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have a task do what is asynchronous."""
        task = self.kernel.spawn(work, "1")
        stop = self.kernel.run_until(task.done)
        assert stop.reason == "done", (stop.reason, stop.detail)
        return task.result()

    def play(self, work: Callable[[], T]) -> T:
        """Play synchronous code as a turn."""
        given: list[T] = []
        frame = Frame(self.kernel, "1", lambda: None)
        task = frame.start()

        def wait(done: Callable[[], bool]) -> Stop:
            return self.kernel.run_until(done)

        stop = self.blocking.play(frame, lambda: given.append(work()), wait)
        assert stop.reason == "done", (stop.reason, stop.detail)
        task.result()
        return given[0]

    def kinds(self) -> list[str]:
        return [type(each.event).__name__ for each in self.recorder.trace()]


@contextmanager
def world(*replies: Reply, framing: Framing = PLAIN) -> Iterator[World]:
    """A world, torn down at the end."""
    made = World(*replies, framing=framing)
    try:
        yield made
    finally:
        made.kernel.tear_down()


class Heard(NamedTuple):
    """What a client has understood of a reply."""

    text: str
    thinking: str
    calls: list[tuple[str, Any]]
    usage: tuple[int, int]


def _chat(chunks: list[Any]) -> Heard:
    """What the chunks of Chat Completions add up to."""
    text, calls, usage = "", dict[int, list[str]](), (0, 0)
    for chunk in chunks:
        if chunk.usage is not None:
            usage = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                slot = calls.setdefault(call.index, ["", ""])
                slot[0] += call.function.name or ""
                slot[1] += call.function.arguments or ""
    return Heard(text, "", [(name, loads(args)) for name, args in calls.values()], usage)


def _message(message: Any) -> Heard:
    text, thinking, calls = "", "", []
    for block in message.content:
        match block.type:
            case "text":
                text += block.text
            case "thinking":
                thinking += block.thinking
            case "tool_use":
                calls.append((block.name, block.input))
    return Heard(text, thinking, calls, (message.usage.input_tokens, message.usage.output_tokens))


def _response(response: Any) -> Heard:
    text, thinking, calls = "", "", []
    for item in response.output:
        match item.type:
            case "message":
                text += "".join(part.text for part in item.content)
            case "reasoning":
                thinking += "".join(part.text for part in item.summary)
            case "function_call":
                calls.append((item.name, loads(item.arguments)))
    return Heard(text, thinking, calls, (response.usage.input_tokens, response.usage.output_tokens))


def _completion(completion: Any) -> Heard:
    message = completion.choices[0].message
    calls = [(each.function.name, loads(each.function.arguments)) for each in message.tool_calls]
    usage = completion.usage.prompt_tokens, completion.usage.completion_tokens
    return Heard(message.content, "", calls, usage)


CHAT = {
    "model": "gpt-x",
    "messages": [{"role": "user", "content": "Go"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}
WHOLE_CHAT: Any = {key: CHAT[key] for key in ("model", "messages")}
MESSAGES = {
    "model": "claude-x",
    "max_tokens": 2000,
    "messages": [{"role": "user", "content": "Go"}],
}


RESPONSES: dict[str, Any] = {"model": "gpt-x", "input": "Go"}


async def responses_async(http_client: Any = None, *, whole: bool = False, **options: Any) -> Heard:
    client = openai.AsyncOpenAI(api_key="k", http_client=http_client, **options)
    async with client:
        if whole:
            return _response(await client.responses.create(**RESPONSES))
        async with client.responses.stream(**RESPONSES) as stream:
            return _response(await stream.get_final_response())


def responses_sync(http_client: Any = None, *, whole: bool = False, **options: Any) -> Heard:
    with openai.OpenAI(api_key="k", http_client=http_client, **options) as client:
        if whole:
            return _response(client.responses.create(**RESPONSES))
        with client.responses.stream(**RESPONSES) as stream:
            return _response(stream.get_final_response())


async def openai_async(http_client: Any = None, *, whole: bool = False, **options: Any) -> Heard:
    client = openai.AsyncOpenAI(api_key="k", http_client=http_client, **options)
    async with client:
        if whole:
            return _completion(await client.chat.completions.create(**WHOLE_CHAT))
        stream: Any = await client.chat.completions.create(**CHAT)
        return _chat([chunk async for chunk in stream])


def openai_sync(http_client: Any = None, *, whole: bool = False, **options: Any) -> Heard:
    with openai.OpenAI(api_key="k", http_client=http_client, **options) as client:
        if whole:
            return _completion(client.chat.completions.create(**WHOLE_CHAT))
        stream: Any = client.chat.completions.create(**CHAT)
        return _chat(list(stream))


async def anthropic_async(http_client: Any = None, *, whole: bool = False, **options: Any) -> Heard:
    client = anthropic.AsyncAnthropic(api_key="k", http_client=http_client, **options)
    if whole:
        async with client:
            return _message(await client.messages.create(**MESSAGES))
    async with client, client.messages.stream(**MESSAGES) as stream:
        return _message(await stream.get_final_message())


def anthropic_sync(http_client: Any = None, *, whole: bool = False, **options: Any) -> Heard:
    if whole:
        with anthropic.Anthropic(api_key="k", http_client=http_client, **options) as asking:
            return _message(asking.messages.create(**MESSAGES))
    with (
        anthropic.Anthropic(api_key="k", http_client=http_client, **options) as client,
        client.messages.stream(**MESSAGES) as stream,
    ):
        return _message(stream.get_final_message())


def _gemini_client(http_client: Any, base_url: str | None, *, sync: bool) -> genai.Client:
    given: dict[str, Any] = {} if base_url is None else {"base_url": base_url}
    if http_client is not None:
        given["httpx_client" if sync else "httpx_async_client"] = http_client
    options = types.HttpOptions(**given)
    return genai.Client(api_key="k", http_options=options)


def _gemini(chunks: list[Any]) -> Heard:
    """What the chunks of Gemini add up to."""
    text, thinking, calls, usage = "", "", [], (0, 0)
    for chunk in chunks:
        if chunk.usage_metadata is not None:
            counted = chunk.usage_metadata
            usage = counted.prompt_token_count or 0, counted.candidates_token_count or 0
        for part in chunk.candidates[0].content.parts or ():
            if part.function_call is not None:
                calls.append((part.function_call.name, part.function_call.args))
            elif part.thought:
                thinking += part.text or ""
            else:
                text += part.text or ""
    return Heard(text, thinking, calls, usage)


async def gemini_async(
    http_client: Any = None, *, whole: bool = False, base_url: str | None = None
) -> Heard:
    client = _gemini_client(http_client, base_url, sync=False)
    models = client.aio.models
    if whole:
        heard = _gemini([await models.generate_content(model="gemini-x", contents="Go")])
    else:
        asked = models.generate_content_stream(model="gemini-x", contents="Go")
        heard = _gemini([chunk async for chunk in await asked])
    await client.aio.aclose()
    return heard


def gemini_sync(
    http_client: Any = None, *, whole: bool = False, base_url: str | None = None
) -> Heard:
    client = _gemini_client(http_client, base_url, sync=True)
    if whole:
        heard = _gemini([client.models.generate_content(model="gemini-x", contents="Go")])
    else:
        asked = client.models.generate_content_stream(model="gemini-x", contents="Go")
        heard = _gemini(list(asked))
    client.close()
    return heard


ASYNC: dict[str, Callable[..., Coroutine[Any, Any, Heard]]] = {
    "openai": openai_async,
    "responses": responses_async,
    "anthropic": anthropic_async,
    "gemini": gemini_async,
}
SYNC: dict[str, Callable[..., Heard]] = {
    "openai": openai_sync,
    "responses": responses_sync,
    "anthropic": anthropic_sync,
    "gemini": gemini_sync,
}
CASES = [
    pytest.param(sdk, framing, id=f"{sdk}-{name}")
    for sdk in ASYNC
    for name, framing in FRAMINGS.items()
    if (sdk, name) != ("gemini", "comments")  # Google sends none, and its library knows none
]
THINKS = {"responses", "anthropic", "gemini"}
"""Those that show what the model thinks."""


def check(heard: Heard, sdk: str) -> None:
    """Compare with what the script says."""
    assert heard.text == FULL.say
    assert heard.calls == [("weather", {"city": "Rome"}), ("clock", {})]
    assert heard.usage == (10, 5)
    assert heard.thinking == (FULL.think if sdk in THINKS else "")


async def at_once(*works: Coroutine[Any, Any, T]) -> list[T]:
    """Do several things side by side."""
    return list(await asyncio.gather(*works))
