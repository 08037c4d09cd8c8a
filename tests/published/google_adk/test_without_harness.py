"""What is found is google-adk's: it is there without the simulation, in plain asyncio."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import nullcontext
from typing import Any

import pytest

from tests.published.expected import cases
from tests.published.plain import Say, Seen, faults

cases(__file__)

import httpx2  # noqa: E402
from google.adk.agents import Agent  # noqa: E402
from google.adk.models import Gemini  # noqa: E402
from google.adk.runners import Runner  # noqa: E402
from google.adk.sessions import InMemorySessionService  # noqa: E402
from google.genai import Client  # noqa: E402
from google.genai.types import HttpOptions, Part, UserContent  # noqa: E402

pytestmark = pytest.mark.nightly
CALLS = [
    {"functionCall": {"name": name, "args": {"to": "Vienna"}}} for name in ("trains", "hotels")
]
CERTIFICATES = {"verify": ssl.create_default_context()}


def provider(seen: Seen) -> Client:
    def answer(request: httpx2.Request) -> httpx2.Response:
        parts = CALLS if seen.asked(json.loads(request.content)) else [{"text": "Done."}]
        content = {"role": "model", "parts": parts}
        return httpx2.Response(
            200, json={"candidates": [{"content": content, "finishReason": "STOP"}]}
        )

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    options = HttpOptions(httpx_async_client=client, client_args=CERTIFICATES)
    return Client(api_key="any", http_options=options)


def agent(seen: Seen, breaks: BaseException | None = None) -> Say:
    async def trains(to: str) -> str:
        """When the next train leaves."""
        if breaks is not None:
            raise breaks
        return await seen.runs("trains", 1)

    async def hotels(to: str) -> str:
        """A hotel for the night."""
        return await seen.runs("hotels", 3)

    model = Gemini(model="gemini-3.5-flash", client=provider(seen))
    made = Agent(name="trip", model=model, tools=[trains, hotels])
    sessions = InMemorySessionService()
    runner = Runner(app_name="trip", agent=made, session_service=sessions, auto_create_session=True)

    async def say(text: str) -> None:
        message = UserContent(Part(text=text))
        async for _event in runner.run_async(user_id="u", session_id="s", new_message=message):
            pass

    return say


def test_what_a_cancelled_turn_leaves() -> None:
    def told(seen: Seen, body: Any) -> set[str]:
        return (
            {"a tool's work is lost"} if seen.ended and "functionCall" not in str(body) else set()
        )

    assert faults(agent, told) >= {"a tool's work is lost", "a request after the stop"}


@pytest.mark.parametrize(
    ("error", "comes_out"),
    [
        (RuntimeError("gone"), pytest.raises(RuntimeError)),
        (asyncio.CancelledError(), nullcontext()),
    ],
    ids=repr,
)
def test_of_a_tool_that_breaks_the_model_does_not_hear(
    error: BaseException, comes_out: Any
) -> None:
    seen = Seen()
    say = agent(seen, error)

    async def talk() -> None:
        with comes_out:
            await say("Take me to Vienna.")
        assert len(seen.requests) == 1
        await say("And the weather there?")

    asyncio.run(talk())
    assert "Take me to Vienna." in str(seen.requests[-1])
    assert "functionCall" not in str(seen.requests[-1])
