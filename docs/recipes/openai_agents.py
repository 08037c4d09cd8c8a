"""openai-agents, with a session that remembers the conversation."""

import os

from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled

os.environ.setdefault("OPENAI_API_KEY", "any")
set_tracing_disabled(True)  # else each run is told to OpenAI, from a thread that outlives it


class Trip:
    def __init__(self, env):
        scripted = env.tools.functions()

        @function_tool
        async def trains(to: str) -> str:
            """When the next train leaves."""
            return await scripted["trains"](to=to)

        @function_tool
        async def hotels(city: str) -> str:
            """A hotel for the night."""
            return await scripted["hotels"](city=city)

        self.agent = Agent(name="Trip", instructions="Be brief.", tools=[trains, hotels])
        self.session = SQLiteSession("trip")

    async def turn(self, text):
        result = await Runner.run(self.agent, text or [], session=self.session)
        return result.final_output
