"""A loop as people write it by hand: it knows the ports, and nothing of the reference loops."""

import asyncio

from harness.core.json_text import dumps
from harness.core.messages import Message, ModelRequest, ToolCall, tool_result, user
from harness.core.ports import Env
from harness.core.reply import ReplyDone


class HandLoop:
    """Ask, run the tools that the reply asks for side by side, ask again.

    Its bug is the classic one: a cancel while tools run leaves their calls without results.
    """

    def __init__(self, env: Env) -> None:
        self.env = env
        self.messages: list[Message] = []

    async def turn(self, text: str | None) -> None:
        if text is not None:
            self.messages.append(user(text))
        while True:
            reply = await self.ask()
            self.messages.append(reply)
            if not reply.calls:
                return
            self.messages += await self.run_tools(reply.calls)

    def request(self) -> ModelRequest:
        tools = tuple(self.env.tools.schemas())
        return ModelRequest("some-model", "Be brief.", tuple(self.messages), tools)

    async def ask(self) -> Message:
        async for part in await self.env.model.generate(self.request()):
            if isinstance(part, ReplyDone):
                return part.message
        raise ConnectionError("the stream ended before the reply was whole")

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        return await asyncio.gather(*(self.run_tool(call) for call in calls))

    async def run_tool(self, call: ToolCall) -> Message:
        try:
            value = await self.env.tools.call(call.name, call.args, call.id)
        except Exception as error:  # whatever a tool raises, the model should hear of it
            return tool_result(call.id, f"Error: {error}", is_error=True)
        return tool_result(call.id, dumps(value))


class MendedHandLoop(HandLoop):
    """The same loop without the bug: what was cut off is answered before the cancel goes on."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        tasks = [asyncio.ensure_future(self.run_tool(call)) for call in calls]
        try:
            return await asyncio.gather(*tasks)
        except asyncio.CancelledError:
            for call, task in zip(calls, tasks, strict=True):
                whole = task.done() and not task.cancelled()
                cut_off = tool_result(call.id, "Error: cancelled", is_error=True)
                self.messages.append(task.result() if whole else cut_off)
            raise
