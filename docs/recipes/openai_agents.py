"""openai-agents, with a session: as it is, with a stream, and with a stream that can be stopped."""

import os

from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled

from harness import Cancelled

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


class Streamed(Trip):
    result = None

    async def turn(self, text):
        self.result = Runner.run_streamed(self.agent, text or [], session=self.session)
        async for _event in self.result.stream_events():
            pass
        return self.result.final_output


class Stopped(Streamed):
    stopped = False

    async def turn(self, text):
        value = None if self.stopped else await super().turn(text)
        stopped, self.stopped = self.stopped, False
        return Cancelled() if stopped else value

    def cancel(self):
        self.stopped = True
        if self.result:
            self.result.cancel()
