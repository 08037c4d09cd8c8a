"""What is found is LangChain's: it is there without the simulation, in plain asyncio."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.published.expected import cases
from tests.published.plain import Say, Seen, faults

cases(__file__)

import httpx2  # noqa: E402
from langchain.agents import create_agent  # noqa: E402
from langchain_core.messages import AIMessageChunk  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402

pytestmark = pytest.mark.nightly
CALLS = [
    {"id": name, "type": "function", "function": {"name": name, "arguments": '{"to": "Vienna"}'}}
    for name in ("trains", "hotels")
]


def provider(seen: Seen) -> httpx2.AsyncClient:
    def answer(request: httpx2.Request) -> httpx2.Response:
        first = seen.asked(json.loads(request.content))
        said = {"content": None, "tool_calls": CALLS} if first else {"content": "Done."}
        why = "tool_calls" if first else "stop"
        message = {"role": "assistant", **said}
        choice = {"index": 0, "message": message, "finish_reason": why}
        about = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
        return httpx2.Response(200, json={**about, "choices": [choice]})

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def agent(
    seen: Seen, *, breaks: BaseException | None = None, ticks: tuple[int, int] = (1, 3)
) -> Say:
    async def trains(to: str) -> str:
        """When the next train leaves."""
        if breaks is not None:
            raise breaks
        return await seen.runs("trains", ticks[0])

    async def hotels(to: str) -> str:
        """A hotel for the night."""
        return await seen.runs("hotels", ticks[1])

    model = ChatOpenAI(model="m", api_key="any", http_async_client=provider(seen))
    made = create_agent(model, [trains, hotels], checkpointer=InMemorySaver())

    async def say(text: str) -> Any:
        thread = {"configurable": {"thread_id": "1"}}
        return await made.ainvoke({"messages": [{"role": "user", "content": text}]}, thread)

    return say


def unanswered(body: Any) -> set[str]:
    called = {call["id"] for each in body["messages"] for call in each.get("tool_calls") or ()}
    return called - {each.get("tool_call_id") for each in body["messages"]}


def test_a_turn_that_is_cancelled_leaves_calls_without_results() -> None:
    def told(_seen: Seen, body: Any) -> set[str]:
        return {"calls without results"} if unanswered(body) else set()

    assert faults(agent, told) >= {"calls without results"}


@pytest.mark.parametrize("error", [RuntimeError("gone"), asyncio.CancelledError()], ids=repr)
def test_so_does_a_tool_that_breaks(error: BaseException) -> None:
    seen = Seen()
    say = agent(seen, breaks=error)

    async def talk() -> None:
        with pytest.raises(Exception, match=r"gone|Node 'tools' raised asyncio.CancelledError"):
            await say("Take me to Vienna.")
        await say("And the weather there?")

    asyncio.run(talk())
    assert unanswered(seen.requests[-1]) == {"trains", "hotels"}


def test_half_of_the_arguments_of_a_streamed_call_are_taken_for_all_of_them() -> None:
    half = {"name": "hotels", "args": '{"to": "Vie', "id": "1", "index": 0}
    end = AIMessageChunk("", response_metadata={"finish_reason": "length"}, chunk_position="last")
    said = AIMessageChunk("", tool_call_chunks=[half]) + end
    assert [call["args"] for call in said.tool_calls] == [{"to": "Vie"}]
    assert said.invalid_tool_calls == []


def test_a_second_cancel_leaves_tools_running() -> None:
    async def twice(ticks: int) -> bool:
        seen = Seen()
        turn = asyncio.ensure_future(agent(seen, ticks=(100, 100))("Take me to Vienna."))
        for _ in range(ticks):
            await asyncio.sleep(0)
        for _ in range(2):
            turn.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([turn])
        before = len(seen.ended)
        for _ in range(200):
            await asyncio.sleep(0)
        return before < len(seen.ended)

    assert any(asyncio.run(twice(ticks)) for ticks in range(20, 120))
