"""The vendors' own clients: recorded from a server, replayed without one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from harness import serve
from harness.core.errors import CassetteMiss
from harness.transport.cassettes import file
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.use import Session, cassette

KEY = "sk-not-a-real-key-0123456789"
EACH = 4_000_000
SCRIPT = """
- say: Hello, this is told in pieces, one after the other.
  think: What do they want?
  signature: sig
  takes: 4ms
  each: 4ms
"""

Hear = Callable[[Any], object]


def _chat(url: str, **options: Any) -> Any:
    body: Any = {"model": "m", "messages": [{"role": "user", "content": "Go"}], "stream": True}
    kind = openai.AsyncOpenAI if options.pop("is_async", False) else openai.OpenAI
    client: Any = kind(api_key=KEY, base_url=f"{url}/v1", **options)
    return client, lambda: client.chat.completions.create(**body)


def _responses(url: str, **options: Any) -> Any:
    kind = openai.AsyncOpenAI if options.pop("is_async", False) else openai.OpenAI
    client: Any = kind(api_key=KEY, base_url=f"{url}/v1", **options)
    return client, lambda: client.responses.create(model="m", input="Go", stream=True)


def _messages(url: str, **options: Any) -> Any:
    body: Any = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Go"}]}
    kind = anthropic.AsyncAnthropic if options.pop("is_async", False) else anthropic.Anthropic
    client: Any = kind(api_key=KEY, base_url=url, **options)
    return client, lambda: client.messages.create(stream=True, **body)


def _gemini(url: str, **options: Any) -> Any:
    is_async = options.pop("is_async", False)
    limit = options.get("timeout")
    given = types.HttpOptions(
        base_url=url,
        timeout=None if limit is None else int(limit * 1000),
        retry_options=types.HttpRetryOptions(attempts=1),
    )
    made = genai.Client(api_key=KEY, http_options=given)
    client = made.aio if is_async else made
    return client, lambda: client.models.generate_content_stream(model="m", contents="Go")


SDKS = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}
every = pytest.mark.parametrize(
    ("sdk", "is_async"), [(sdk, is_async) for sdk in SDKS for is_async in (False, True)]
)


def ask(
    sdk: str, url: str, *, is_async: bool, hear: Hear = lambda event: None, **options: Any
) -> list[str]:
    """What a client tells of a reply, event by event; `hear` gets each when it comes."""
    events: list[str] = []
    client, stream = SDKS[sdk](url, is_async=is_async, **options)

    def had(event: Any) -> None:
        events.append(told(event))
        hear(event)

    async def go() -> None:
        try:
            async for event in await stream():
                had(event)
        finally:
            await (client.aclose() if sdk == "gemini" else client.close())

    if is_async:
        asyncio.run(go())
    else:
        try:
            for event in stream():
                had(event)
        finally:
            client.close()
    return events


def told(event: Any) -> str:
    """An event, but for the headers that only connections need."""
    text: str = event.model_dump_json(exclude={"sdk_http_response"})
    return text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sdk.yaml"


@pytest.fixture
def nowhere() -> str:
    """An address at which nobody is."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


def only(session: Session) -> Interaction:
    [interaction] = session.interactions
    return interaction


@every
def test_a_streamed_reply_is_heard_as_it_comes_and_replayed_the_same(
    sdk: str, is_async: bool, path: Path, nowhere: str
) -> None:
    firsts: list[int] = []
    with serve(SCRIPT) as server:
        with cassette(path, "all", source="a fake provider") as session:
            live = ask(
                sdk, server.url, is_async=is_async, hear=lambda _: firsts.append(session.now())
            )
        assert not server.findings()
    recorded = only(session)
    assert recorded.ended == "complete"
    last = recorded.chunks[-1].at
    assert firsts[0] < recorded.begun + last  # the first was heard before the last had come
    assert last >= 3 * EACH
    times = [chunk.at for chunk in recorded.chunks]
    assert len(times) > 3
    assert times == sorted(set(times))
    assert KEY.encode() not in path.read_bytes()
    [stored] = file.load(path).interactions
    assert [chunk.data for chunk in stored.chunks] == [chunk.data for chunk in recorded.chunks]
    heard: list[object] = []
    with cassette(path) as session:
        again = ask(sdk, nowhere, is_async=is_async, hear=heard.append)
    assert again == live
    assert len(heard) == len(live)
    with cassette(path, split=7):
        assert ask(sdk, nowhere, is_async=is_async) == live


@every
def test_recorded_times_are_kept_in_real_time(
    sdk: str, is_async: bool, path: Path, nowhere: str
) -> None:
    with serve(SCRIPT) as server, cassette(path, "all"):
        live = ask(sdk, server.url, is_async=is_async)
    heard: list[int] = []
    with cassette(path, timing="recorded") as session:
        again = ask(sdk, nowhere, is_async=is_async, hear=lambda _: heard.append(session.now()))
    assert again == live
    # gemini's client makes an event of a chunk, the others tell of the end as the last
    assert heard[-1] >= only(session).chunks[-1].at


FAULTS = {
    "torn": "{cut_at: {byte: 400, how: incomplete}}",
    "reset": "{reset: {after: 2}}",
    "timeout": "{hang: {after: 2}}",
    "dropped": "dropped",
}


@pytest.mark.parametrize("ended", FAULTS)
@every
def test_what_breaks_off_is_recorded_and_breaks_off_again(
    sdk: str, is_async: bool, ended: str, path: Path, nowhere: str
) -> None:
    options: dict[str, Any] = {"timeout": 0.15 if ended == "timeout" else 10}
    if sdk != "gemini":
        options["max_retries"] = 0

    def failing(url: str) -> tuple[list[Any], type[BaseException], str]:
        heard: list[Any] = []
        with pytest.raises(Exception) as failed:  # noqa: PT011 - each client has its own
            ask(
                sdk,
                url,
                is_async=is_async,
                hear=lambda event: heard.append(told(event)),
                **options,
            )
        return heard, failed.type, str(failed.value)

    script = f"- say: one two three four five\n  each: 1ms\n  fault: {FAULTS[ended]}\n"
    with serve(script) as server, cassette(path, "all") as session:
        live = failing(server.url)
    assert only(session).ended == ended
    with cassette(path) as session:
        again = failing(nowhere)
    assert again[:2] == live[:2]
    assert file.load(path).interactions[0].ended == ended


@every
def test_a_client_that_leaves_is_recorded_as_such_and_may_leave_again(
    sdk: str, is_async: bool, path: Path, nowhere: str
) -> None:
    class Enough(Exception):
        pass

    def leaving(url: str) -> list[Any]:
        heard: list[Any] = []

        def hear(event: Any) -> None:
            heard.append(told(event))
            if len(heard) == 2:
                raise Enough

        with suppress(Enough):
            ask(sdk, url, is_async=is_async, hear=hear)
        return heard

    with serve(SCRIPT) as server, cassette(path, "all") as session:
        live = leaving(server.url)
    recorded = only(session)
    assert recorded.ended == "cancelled"
    assert recorded.chunks
    with cassette(path):
        assert leaving(nowhere) == live


@every
def test_a_miss_goes_through_every_client_as_it_is(
    sdk: str, is_async: bool, path: Path, nowhere: str
) -> None:
    """None of them takes it for a broken connection, asks again, or hides it."""
    file.save(path, file.Cassette())
    with pytest.raises(CassetteMiss), cassette(path) as session:
        ask(sdk, nowhere, is_async=is_async)
    assert len(session.missed) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_raw_responses_have_their_content(is_async: bool, path: Path, nowhere: str) -> None:
    body: Any = {"model": "m", "messages": [{"role": "user", "content": "Go"}]}

    def contents(url: str) -> Iterator[tuple[int, str, Any]]:
        if is_async:

            async def go() -> Any:
                async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1") as client:
                    return await client.chat.completions.with_raw_response.create(**body)

            raw = asyncio.run(go())
        else:
            with openai.OpenAI(api_key=KEY, base_url=f"{url}/v1") as client:
                raw = client.chat.completions.with_raw_response.create(**body)
        yield raw.status_code, raw.text, raw.parse().choices[0].message.content

    with serve("- say: Hello.\n") as server, cassette(path, "all"):
        live = next(contents(server.url))
    assert live[2] == "Hello."
    with cassette(path):
        assert next(contents(nowhere)) == live


def test_twenty_at_once_in_another_order_each_have_their_own(path: Path, nowhere: str) -> None:
    async def ask_all(url: str, prompts: list[str]) -> dict[str, str]:
        async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1") as client:

            async def one(prompt: str) -> str:
                messages: Any = [{"role": "user", "content": prompt}]
                stream = await client.chat.completions.create(
                    model="m", messages=messages, stream=True
                )
                return "".join([c.choices[0].delta.content or "" async for c in stream])

            return dict(zip(prompts, await asyncio.gather(*map(one, prompts)), strict=True))

    prompts = [f"question {n}" for n in range(20)]
    script = "".join(f"- say: answer {n}\n  each: 1ms\n" for n in range(20))
    with serve(script, strict=False) as server, cassette(path, "all"):
        live = asyncio.run(ask_all(server.url, prompts))
    assert len(set(live.values())) == 20
    begun = [each.begun for each in file.load(path).interactions]
    assert begun == sorted(begun)
    shuffled = sorted(prompts, key=lambda prompt: prompt[::-1])
    assert shuffled != prompts
    with cassette(path):
        assert asyncio.run(ask_all(nowhere, shuffled)) == live
