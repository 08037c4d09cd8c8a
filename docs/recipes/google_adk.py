"""google-adk, with its session kept in memory."""

import os

from google.adk.agents import Agent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai.types import Part, UserContent

os.environ.setdefault("GOOGLE_API_KEY", "any")


class Trip:
    def __init__(self, env):
        scripted = env.tools.functions()

        async def trains(to: str) -> str:
            """When the next train leaves."""
            return await scripted["trains"](to=to)

        async def hotels(city: str) -> str:
            """A hotel for the night."""
            return await scripted["hotels"](city=city)

        agent = Agent(
            name="trip", model="gemini-3.5-flash", instruction="Be brief.", tools=[trains, hotels]
        )
        sessions = InMemorySessionService()
        self.runner = Runner(
            app_name="trip", agent=agent, session_service=sessions, auto_create_session=True
        )

    async def turn(self, text):
        events = self.runner.run_async(
            user_id="user", session_id="session", new_message=UserContent(Part(text=text))
        )
        async for event in events:
            last = event
        return last.content
