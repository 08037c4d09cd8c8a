"""LangChain's create_agent, whose conversation LangGraph keeps in a checkpointer."""

import os

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

os.environ.setdefault("OPENAI_API_KEY", "any")


class Trip:
    def __init__(self, env):
        scripted = env.tools.functions()

        async def trains(to: str) -> str:
            """When the next train leaves."""
            return await scripted["trains"](to=to)

        async def hotels(city: str) -> str:
            """A hotel for the night."""
            return await scripted["hotels"](city=city)

        self.agent = create_agent(
            "openai:gpt-5.5",
            [trains, hotels],
            system_prompt="Be brief.",
            checkpointer=InMemorySaver(),
        )
        self.thread = {"configurable": {"thread_id": "trip"}}

    async def turn(self, text):
        said = text and {"messages": [{"role": "user", "content": text}]}
        state = await self.agent.ainvoke(said, self.thread)
        return state["messages"][-1].text
