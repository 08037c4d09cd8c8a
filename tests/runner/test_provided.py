"""Clients that are answered in their own process: of every kind, in real and in virtual time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai

import harness
from harness.core.errors import UsageError
from harness.runner.functions.allow import Allow
from harness.runner.functions.once import once
from harness.runner.provided import Provided, _Apart, provide
from harness.transport import router
from harness.transport.exchange import Broken
from harness.transport.guard import NetworkUsed
from harness.transport.journal import Journal
from harness.transport.libraries import library

MESSAGES: Any = [{"role": "user", "content": "Hello"}]
ONE = "- say: One.\n"
ASKED = {"model": "m", "messages": MESSAGES}
TWO = "- say: One.\n- say: Two.\n"
RUN = "about: x\nturns: [{user: a, model: [{say: b}]}]\n"
CLIENT = openai.OpenAI(api_key="any", max_retries=0)
"""Made before all that answers it, and for its own host."""


def ask(client: openai.OpenAI = CLIENT, **more: Any) -> str | None:
    done = client.chat.completions.create(model="m", messages=MESSAGES, **more)
    return done.choices[0].message.content


async def ask_later(client: openai.AsyncOpenAI) -> str | None:
    done = await client.chat.completions.create(model="m", messages=MESSAGES)
    return done.choices[0].message.content


def streamed() -> Any:
    return CLIENT.chat.completions.create(model="m", messages=MESSAGES, stream=True)


def endings(provided: Provided) -> list[tuple[str, str]]:
    return [(each.place, each.ending) for each in provided.requests]


def virtually(test: Callable[[], Any]) -> None:
    ran = once(test, Allow())
    if ran.error is not None:
        raise ran.error
    assert (ran.stopped, ran.findings) == ("", ())


# --- in real time


def test_what_a_client_asks_is_answered_from_the_script() -> None:
    with provide(TWO) as provided:
        assert ask() == "One."
        assert provided.used_up is False
        text = "".join([each.choices[0].delta.content or "" for each in streamed()])
        assert text == "Two."
        assert provided.used_up is True
        assert provided.findings() == ()
    assert endings(provided) == [("1.1", "whole"), ("1.2", "whole")]
    assert provided.requests[0].url == "/v1/chat/completions"
    calls = provided.router["provider"].calls
    assert [call.response.status_code for call in calls] == [200, 200]
    assert [entry.task for entry in provided.trace] == ["provider"] * len(provided.trace)
    at = provided.requests[1]
    assert at.answered_at is not None
    assert at.frames > 1
    assert at.bytes > 100


def test_libraries_of_other_providers_are_answered_too() -> None:
    with provide(TWO):
        asked = anthropic.Anthropic(api_key="any").messages
        said = asked.create(model="m", max_tokens=9, messages=MESSAGES).content[0]
        assert getattr(said, "text", "") == "One."
        google = genai.Client(api_key="any")
        assert google.models.generate_content(model="m", contents="Hello").text == "Two."


def test_threads_are_answered_one_by_one() -> None:
    said: list[str | None] = []
    threads = [threading.Thread(target=lambda: said.append(ask())) for _ in range(2)]
    with provide(TWO):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(map(str, said)) == ["One.", "Two."]


def test_a_run_meanwhile_has_a_provider_of_its_own() -> None:
    async def main() -> None:
        client = openai.AsyncOpenAI(api_key="any")
        assert await ask_later(client) == "One."
        assert harness.run(RUN, "turn").ok
        assert await ask_later(client) == "Two."

    google = genai.Client(api_key="any")._api_client
    assert google._use_aiohttp()
    with provide(TWO):
        assert not google._use_aiohttp()
        asyncio.run(main())
    assert google._use_aiohttp()  # all that stood in is lifted


def test_connections_break_as_the_script_says() -> None:
    script = "- {say: One., fault: refused}\n- {say: Two., fault: stream_fails}\n- say: Three.\n"
    with provide(script) as provided:
        with pytest.raises(openai.APIConnectionError):
            ask()
        with pytest.raises(openai.APIConnectionError):
            for _each in streamed():
                pass
        ask()
    assert endings(provided) == [("", "refused"), ("1.2", "reset"), ("1.3", "whole")]


def test_what_was_not_read_to_its_end_is_kept_as_such() -> None:
    script = "- {say: One by one., chunk: 1}\n- {say: One by one., chunk: 1}\n"
    with provide(script) as provided:
        stream = streamed()
        next(stream)
        stream.close()
        left = streamed()
        next(left)
    assert [ending for _place, ending in endings(provided)] == ["gone", "cut"]
    left.close()
    assert [each.kind for each in provided.findings()] == ["left open"]


def test_a_client_may_give_up() -> None:
    async def main() -> None:
        client = openai.AsyncOpenAI(api_key="any", max_retries=0)
        asked = asyncio.create_task(ask_later(client))
        while not provided.requests:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    with provide("- {say: One., takes: 60s}\n") as provided:
        asyncio.run(main())
    assert endings(provided) == [("", "gone")]


def test_who_still_waits_when_it_ends_is_told_so() -> None:
    came: list[BaseException] = []

    def waits() -> None:
        try:
            httpx2.post("https://api.openai.com/v1/chat/completions", json=ASKED, timeout=None)
        except httpx2.HTTPError as error:
            came.append(error)

    def waits_later() -> None:
        async def main() -> None:
            await ask_later(openai.AsyncOpenAI(api_key="any", max_retries=0))

        try:
            asyncio.run(main())
        except openai.APIConnectionError as error:
            came.append(error)

    threads = [threading.Thread(target=each, daemon=True) for each in (waits, waits_later)]
    with provide("- {say: One., takes: 60s}\n- {say: Two., takes: 60s}\n") as provided:
        for number, thread in enumerate(threads, 1):
            thread.start()
            while len(provided.requests) < number:
                pass
    for thread in threads:
        thread.join(5)
    assert [type(error).__name__ for error in came] == ["RemoteProtocolError", "APIConnectionError"]
    assert [ending for _place, ending in endings(provided)] == ["cut", "cut"]


def test_who_comes_when_it_ends_is_told_so_too() -> None:
    async def main() -> None:
        with pytest.raises(Broken, match="nobody answers any more"):
            await apart.there(asyncio.sleep(60))

    apart = _Apart(Journal(lambda: 0))
    apart._over = True
    with apart:
        asyncio.run(main())


def test_what_a_provider_refuses_is_a_finding() -> None:
    alone: Any = [{"role": "tool", "content": "x"}]
    with provide(ONE) as provided:
        with pytest.raises(openai.BadRequestError):
            CLIENT.chat.completions.create(model="m", messages=alone)
        ask()
        with pytest.raises(openai.APIError):
            ask()
    assert [each.kind for each in provided.findings()] == ["refused", "no place"]
    assert provided.requests[0].error


def test_one_protocol_alone_may_be_provided() -> None:
    with (
        provide(ONE, provider="anthropic"),
        pytest.raises(openai.NotFoundError, match="only anthropic is served"),
    ):
        ask()


def test_other_requests_and_those_behind_its_end_go_where_they_went(refused: list[str]) -> None:
    with provide(ONE), pytest.raises(NetworkUsed, match=r"reached for example\.com"):
        httpx2.get("https://example.com/")
    with pytest.raises(NetworkUsed, match=r"reached for api\.openai\.com"):
        ask()
    refused.clear()


def test_all_is_put_back() -> None:
    pool = library("httpx2").core.ConnectionPool
    before = vars(pool)["handle_request"]
    with provide(ONE):
        assert vars(pool)["handle_request"] is not before
        harness.run(RUN, "turn")
        assert vars(pool)["handle_request"] is not before
    assert vars(pool)["handle_request"] is before
    assert router._routes() is None


def test_there_is_one_script_at_a_time() -> None:
    with provide(ONE), pytest.raises(UsageError, match="another script answers"), provide(ONE):
        pass


# --- in virtual time


def test_in_virtual_time_the_script_takes_that() -> None:
    async def test() -> None:
        with provide("- {say: One., takes: 40s}\n- say: Two.\n") as provided:
            began = asyncio.get_running_loop().time()
            assert await ask_later(openai.AsyncOpenAI(api_key="any")) == "One."
            assert 40 <= asyncio.get_running_loop().time() - began < 41
            assert await asyncio.to_thread(ask) == "Two."
            assert endings(provided) == [("1.1", "whole"), ("1.2", "whole")]
            with pytest.raises(UsageError, match="another script answers"), provide(ONE):
                pass

    virtually(test)


def test_a_task_that_blocks_is_told_so() -> None:
    async def test() -> None:
        with provide(ONE):
            ask()

    assert "a blocking call of the env in a task" in once(test, Allow()).stopped
