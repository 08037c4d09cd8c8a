"""What is found is openai-agents': it is there without the simulation, in plain asyncio."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.published.expected import cases
from tests.published.plain import Say, Seen

cases(__file__)

import httpx2  # noqa: E402
import openai  # noqa: E402
from agents import (  # noqa: E402
    Agent,
    OpenAIResponsesModel,
    RunHooks,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)

set_tracing_disabled(True)
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ABOUT = {"id": "x", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
MEANT = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
CALLS = [
    {"type": "function_call", "id": name, "call_id": name, "name": name, "arguments": '{"to": "V"}'}
    for name in ("trains", "hotels")
]
SAID = {
    "type": "message",
    "id": "said",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}


def provider(seen: Seen, *, streamed: bool) -> openai.AsyncOpenAI:
    def answer(request: httpx2.Request) -> httpx2.Response:
        output = CALLS if seen.asked(json.loads(request.content)) else [SAID]
        response = {**ABOUT, **MEANT, "output": output}
        if not streamed:
            return httpx2.Response(200, json=response)
        event = {"type": "response.completed", "sequence_number": 1, "response": response}
        head = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=head, content=f"data: {json.dumps(event)}\n\n")

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return openai.AsyncOpenAI(api_key="any", http_client=client)


def agent(seen: Seen, hooks: RunHooks[Any] | None = None) -> Say:
    @function_tool
    async def trains(to: str) -> str:
        """When the next train leaves."""
        return await seen.runs("trains", 1)

    @function_tool
    async def hotels(to: str) -> str:
        """A hotel for the night."""
        return await seen.runs("hotels", 1_000)

    streamed = hooks is not None
    model = OpenAIResponsesModel("m", openai_client=provider(seen, streamed=streamed))
    made = Agent(name="Trip", tools=[trains, hotels], model=model)
    session = SQLiteSession("trip")

    async def say(text: str) -> Any:
        if not streamed:
            return await Runner.run(made, text, session=session)
        result = Runner.run_streamed(made, text, hooks=hooks)
        async for _event in result.stream_events():
            pass
        return result

    return say


def test_what_a_tool_has_done_is_not_in_the_session_of_a_cancelled_turn() -> None:
    async def talk() -> None:
        say = agent(seen)
        turn = asyncio.ensure_future(say("Take me to Vienna."))
        while not seen.ended:  # noqa: ASYNC110 - threads of the session come between
            await asyncio.sleep(0)
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        await say("And the weather there?")

    seen = Seen()
    asyncio.run(talk())
    assert seen.ended == ["trains"]
    assert [each.get("role") for each in seen.requests[-1]["input"]] == ["user", "user"]


def test_a_tool_begins_after_the_reader_of_the_stream_was_cancelled() -> None:
    class Watched(Seen):
        async def runs(self, tool: str, ticks: int) -> str:
            after.append((tool, turns[0].cancelled()))
            return await super().runs(tool, ticks)

    class Stops(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            if tool.name == "trains":
                asyncio.get_running_loop().call_soon(turns[0].cancel)
                await asyncio.sleep(0)

    async def talk() -> None:
        turns.append(asyncio.ensure_future(agent(Watched(), Stops())("Take me to Vienna.")))
        await asyncio.gather(*turns, return_exceptions=True)
        for _ in range(100):
            await asyncio.sleep(0)

    after: list[tuple[str, bool]] = []
    turns: list[asyncio.Future[Any]] = []
    asyncio.run(talk())
    assert after == [("hotels", True)]
