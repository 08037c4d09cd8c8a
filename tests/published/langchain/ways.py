"""Other ways of using the agent of the recipe: streamed, with plain functions, without asyncio."""

import os
from typing import Annotated

from langchain.agents import create_agent
from langchain.tools import InjectedToolCallId
from langgraph.checkpoint.memory import InMemorySaver

os.environ.setdefault("OPENAI_API_KEY", "any")


class Way:
    def __init__(self, *tools):
        self.agent = create_agent("openai:gpt-5.5", [*tools], checkpointer=InMemorySaver())
        self.thread = {"configurable": {"thread_id": "trip"}}

    def said(self, text):
        return text and {"messages": [{"role": "user", "content": text}]}


class Streamed(Way):
    """What the model says is read as it comes."""

    def __init__(self, env):
        async def trains(to: str, call: Annotated[str, InjectedToolCallId]) -> str:
            """When the next train leaves."""
            return await env.tools.call("trains", {"to": to}, call)

        async def hotels(city: str, call: Annotated[str, InjectedToolCallId]) -> str:
            """A hotel for the night."""
            return await env.tools.call("hotels", {"city": city}, call)

        super().__init__(trains, hotels)

    async def turn(self, text):
        parts = self.agent.astream(self.said(text), self.thread, stream_mode="messages")
        return "".join([part.text async for part, _about in parts])


class Threads(Way):
    """Tools that are plain functions, which run in threads."""

    def __init__(self, env):
        def trains(to: str) -> str:
            """When the next train leaves."""
            return env.tools.call_sync("trains", {"to": to})

        def hotels(city: str) -> str:
            """A hotel for the night."""
            return env.tools.call_sync("hotels", {"city": city})

        super().__init__(trains, hotels)

    async def turn(self, text):
        return await self.agent.ainvoke(self.said(text), self.thread)


class Synchronous(Threads):
    """The same without asyncio."""

    def turn(self, text):
        return self.agent.invoke(self.said(text), self.thread)
