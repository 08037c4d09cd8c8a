"""pydantic-ai, stopped by a token of its own; what was said until then is kept."""

import asyncio
import os

from pydantic_ai import Agent, CancellationToken, RunCancelled

from harness import Cancelled

os.environ.setdefault("OPENAI_API_KEY", "any")


class Trip:
    def __init__(self, env):
        scripted = env.tools.functions()
        self.agent = Agent("openai:gpt-5.5", instructions="Be brief.")
        self.history = []
        self.stop = CancellationToken()

        @self.agent.tool_plain
        async def trains(to: str) -> str:
            """When the next train leaves."""
            return await scripted["trains"](to=to)

        @self.agent.tool_plain
        async def hotels(city: str) -> str:
            """A hotel for the night."""
            return await scripted["hotels"](city=city)

    async def turn(self, text):
        run = self.agent.run(text, message_history=self.history, cancellation_token=self.stop)
        try:
            result = await run
        except RunCancelled as stopped:
            self.history = stopped.all_messages()
            return Cancelled()
        except asyncio.CancelledError as error:
            if stopped := RunCancelled.from_cancellation(error):
                self.history = stopped.all_messages()
            raise
        finally:
            self.stop = CancellationToken()  # one serves one run
        self.history = result.all_messages()
        return result.output

    def cancel(self):
        self.stop.cancel()
