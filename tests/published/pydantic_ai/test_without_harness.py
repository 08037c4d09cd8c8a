"""What is found is pydantic-ai's: it is there without the simulation, in plain asyncio."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.published.expected import cases
from tests.published.plain import Say, Seen, faults

cases(__file__)

import httpx2  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from pydantic_ai import Agent, RunCancelled  # noqa: E402
from pydantic_ai.exceptions import UserError  # noqa: E402
from pydantic_ai.models.openai import OpenAIResponsesModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402

pytestmark = pytest.mark.nightly
CALLS = [
    {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": name,
        "name": name,
        "arguments": '{"to": "Vienna"}',
        "status": "completed",
    }
    for name in ("trains", "hotels")
]
DONE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}


def provider(seen: Seen) -> OpenAIProvider:
    def answer(request: httpx2.Request) -> httpx2.Response:
        first = seen.asked(json.loads(request.content))
        about = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
        rest = {"status": "completed", "tools": [], "tool_choice": "auto"}
        more = {"parallel_tool_calls": True, "output": CALLS if first else [DONE]}
        return httpx2.Response(200, json={**about, **rest, **more})

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return OpenAIProvider(openai_client=AsyncOpenAI(api_key="any", http_client=client))


def agent(seen: Seen, breaks: BaseException | None = None) -> Say:
    made = Agent(OpenAIResponsesModel("m", provider=provider(seen)))
    history: list[Any] = []

    @made.tool_plain
    async def trains(to: str) -> str:
        if breaks is not None:
            raise breaks
        return await seen.runs("trains", 1)

    @made.tool_plain
    async def hotels(to: str) -> str:
        return await seen.runs("hotels", 3)

    async def say(text: str) -> None:
        try:
            run = await made.run(text, message_history=history)
        except asyncio.CancelledError as error:
            if stopped := RunCancelled.from_cancellation(error):
                history[:] = stopped.all_messages()
            raise
        history[:] = run.all_messages()

    return say


def test_what_a_cancelled_turn_leaves() -> None:
    def told(_seen: Seen, next_turn: Any) -> set[str]:
        return {"no new prompt"} if isinstance(next_turn, UserError) else set()

    assert faults(agent, told) >= {"no new prompt", "a task is left"}


def test_a_tool_that_cancels_itself_looks_like_a_user_who_did() -> None:
    say = agent(Seen(), asyncio.CancelledError())

    async def talk() -> None:
        with pytest.raises(asyncio.CancelledError):
            await say("Take me to Vienna.")

    asyncio.run(talk())
