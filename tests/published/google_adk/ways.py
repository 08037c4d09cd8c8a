"""Other ways of using the agent of the recipe: streamed, with plain functions, without asyncio."""

import os

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode, ToolThreadPoolConfig
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai.types import Part, UserContent

from docs.recipes.google_adk import Trip

os.environ.setdefault("GOOGLE_API_KEY", "any")


def asked(text, config):
    message = UserContent(Part(text=text))
    return {"user_id": "user", "session_id": "s", "new_message": message, "run_config": config}


class Streamed(Trip):
    """What the model says is read as it comes."""

    async def turn(self, text):
        config = RunConfig(streaming_mode=StreamingMode.SSE)
        async for event in self.runner.run_async(**asked(text, config)):
            last = event
        return last.content


class Threads:
    """Tools that are plain functions, in a pool; without one they block the event loop."""

    def __init__(self, env):
        def trains(to: str) -> str:
            """When the next train leaves."""
            return env.tools.call_sync("trains", {"to": to})

        def hotels(city: str) -> str:
            """A hotel for the night."""
            return env.tools.call_sync("hotels", {"city": city})

        agent = Agent(name="trip", model="gemini-3.5-flash", tools=[trains, hotels])
        sessions = InMemorySessionService()
        self.runner = Runner(
            app_name="trip", agent=agent, session_service=sessions, auto_create_session=True
        )
        self.config = RunConfig(tool_thread_pool_config=ToolThreadPoolConfig())

    async def turn(self, text):
        async for event in self.runner.run_async(**asked(text, self.config)):
            last = event
        return last.content


class Synchronous(Threads):
    """The same without asyncio."""

    def turn(self, text):
        return [event.content for event in self.runner.run(**asked(text, self.config))]
