"""Bugs of agents that take a tool's cancel for their own, and that leave a stream open."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from harness.core.messages import Message, ToolCall, tool_result
from harness.core.reply import ReplyDone, ReplyFailed, ReplyPart
from harness.fakes.script import Reply, StreamFails
from harness.fakes.tool_spec import Behaviour, CancelsItself, ToolSpec
from harness.runner.scenario import Turn
from tests.bugs.planting import MS, QUICK, Planted, asks_for, scenario
from tests.subjects.hand_loop import MendedHandLoop

GIVES_UP = ToolSpec("gives_up", Behaviour(CancelsItself(), takes=20 * MS))


class TakesAToolsCancelForItsOwn(MendedHandLoop):
    """Ends its turn as cancelled where a tool has cancelled itself."""


class HearsOfAToolsCancel(MendedHandLoop):
    """Tells the model of a tool that has cancelled itself, and ends for its own cancel only."""

    async def run_tool(self, call: ToolCall) -> Message:
        try:
            return await super().run_tool(call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return tool_result(call.id, "Error: the tool was cancelled", is_error=True)


class LeavesAStreamOpen(MendedHandLoop):
    """Reads no further where a reply tells that it failed, and leaves its stream as it is."""

    async def ask(self) -> Message:
        stream: Any = await self.env.model.generate(self.request())
        async for part in stream:
            if isinstance(part, ReplyDone):
                return part.message
            if isinstance(part, ReplyFailed):
                await self.leave(stream)
                break
        raise ConnectionError("the reply failed")

    async def leave(self, stream: AsyncIterator[ReplyPart]) -> None:
        pass


class ClosesItsStream(LeavesAStreamOpen):
    async def leave(self, stream: Any) -> None:
        await stream.aclose()


CANCELS: tuple[Planted, ...] = (
    Planted(
        "TERMINAL-TRUTH",
        TakesAToolsCancelForItsOwn,
        scenario(asks_for("gives_up", "quick"), tools=(GIVES_UP, QUICK)),
        HearsOfAToolsCancel,
    ),
    Planted(
        "QUIESCE",
        LeavesAStreamOpen,
        scenario(Turn("Go.", (Reply("Gone.", fault=StreamFails(1, reported=True)),))),
        ClosesItsStream,
        soft=True,
    ),
)
