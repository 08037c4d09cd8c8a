"""Other ways of using the agent of the recipe: streamed, stopped, and without asyncio."""

from agents import Agent, Runner, function_tool

from docs.recipes.openai_agents import Trip
from harness import Cancelled


class Streamed(Trip):
    """What the model says is read as it comes."""

    result = None

    async def turn(self, text):
        self.result = Runner.run_streamed(self.agent, text or [], session=self.session)
        async for _event in self.result.stream_events():
            pass
        return self.result.final_output


class Stopped(Streamed):
    """The same, stopped by the result's own cancel()."""

    stopped = False

    async def turn(self, text):
        value = None if self.stopped else await super().turn(text)
        stopped, self.stopped = self.stopped, False
        return Cancelled() if stopped else value

    def cancel(self):
        self.stopped = True
        if self.result:
            self.result.cancel()


class Synchronous(Trip):
    """Without asyncio; the tools are plain functions, which run in threads."""

    def __init__(self, env):
        super().__init__(env)

        @function_tool
        def trains(to: str) -> str:
            """When the next train leaves."""
            return env.tools.call_sync("trains", {"to": to})

        @function_tool
        def hotels(city: str) -> str:
            """A hotel for the night."""
            return env.tools.call_sync("hotels", {"city": city})

        self.agent = Agent(name="Trip", instructions="Be brief.", tools=[trains, hotels])

    def turn(self, text):
        return Runner.run_sync(self.agent, text or [], session=self.session).final_output
