"""Other ways of using the agent of the recipe: streamed, with plain functions, without asyncio."""

import os

from pydantic_ai import Agent

from docs.recipes.pydantic_ai import Trip

os.environ.setdefault("OPENAI_API_KEY", "any")


class Streamed(Trip):
    """What the model says is read as it comes."""

    async def turn(self, text):
        async with self.agent.run_stream_events(text, message_history=self.history) as events:
            async for event in events:
                last = event
        self.history = last.result.all_messages()


class Threads:
    """Tools that are plain functions, which run in threads."""

    def __init__(self, env):
        self.agent = Agent("openai:gpt-5.5", instructions="Be brief.")
        self.history = []

        @self.agent.tool_plain
        def trains(to: str) -> str:
            """When the next train leaves."""
            return env.tools.call_sync("trains", {"to": to})

        @self.agent.tool_plain
        def hotels(city: str) -> str:
            """A hotel for the night."""
            return env.tools.call_sync("hotels", {"city": city})

    async def turn(self, text):
        self.history = (await self.agent.run(text, message_history=self.history)).all_messages()


class Synchronous(Threads):
    """The same without asyncio."""

    def turn(self, text):
        self.history = self.agent.run_sync(text, message_history=self.history).all_messages()
