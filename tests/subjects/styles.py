"""Loops that are right, each in another style: what an invariant must not take for a fault."""

import asyncio

from harness.core.json_text import dumps
from harness.core.messages import (
    Block,
    Message,
    ModelRequest,
    ToolCall,
    assistant,
    tool_result,
    user,
)
from harness.core.ports import Env, ProviderFailed
from harness.core.reply import ReplyDone, ReplyFailed
from tests.subjects.hand_loop import MendedHandLoop


class CarefulLoop(MendedHandLoop):
    """Runs only what can be run: known tools, on objects; refuses the rest in words."""

    async def run_tool(self, call: ToolCall) -> Message:
        if call.name not in {schema.name for schema in self.env.tools.schemas()}:
            return tool_result(call.id, f"There is no tool called {call.name}.", is_error=True)
        if call.raw is not None or not isinstance(call.args, dict | None):
            return tool_result(call.id, "Error: the arguments are not an object", is_error=True)
        return await super().run_tool(call)


class ReadsToTheEnd(CarefulLoop):
    """Reads each reply to the end of its stream, and takes the last whole message."""

    async def ask(self) -> Message:
        tools = tuple(self.env.tools.schemas())
        request = ModelRequest("some-model", "Be brief.", tuple(self.messages), tools)
        whole = None
        async for part in await self.env.model.generate(request):
            if isinstance(part, ReplyDone):
                whole = part.message
            elif isinstance(part, ReplyFailed):
                raise ProviderFailed(part.message)
        if whole is None:
            raise ConnectionError("the stream ended before the reply was whole")
        return whole


class OneByOne(CarefulLoop):
    """Runs tools one after the other, and writes each call beside its own result."""

    async def turn(self, text: str | None) -> None:
        if text is not None:
            self.messages.append(user(text))
        while True:
            reply = await self.ask()
            calls = reply.calls
            if not calls:
                self.messages.append(reply)
                return
            for at, call in enumerate(calls):
                said = reply.text if at == 0 else ""
                self.messages += [assistant(said, call), tool_result(call.id, "Error: cancelled")]
                self.messages[-1] = await self.run_tool(call)


class WritesPlainText(CarefulLoop):
    """Knows no form for calls and results: it writes both as text, as loops with a protocol of
    their own do.
    """

    async def turn(self, text: str | None) -> None:
        if text is not None:
            self.messages.append(user(text))
        for _step in range(20):
            reply = await self.ask()
            if not reply.calls:
                self.messages.append(reply)
                return
            asked = "; ".join(f"{call.name}({dumps(call.args)})" for call in reply.calls)
            results = await asyncio.gather(*map(self.run_tool, reply.calls))
            seen = "\n".join(result.text for result in results)
            self.messages += [assistant(f"{reply.text} [{asked}]"), user(f"Observed: {seen}")]


class GivesItsOwnIds(CarefulLoop):
    """Knows tools as functions and gives every call an id of its own, as some frameworks do."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.given = 0

    async def ask(self) -> Message:
        reply = await super().ask()
        return Message("assistant", tuple(map(self.renamed, reply.content)))

    def renamed(self, block: Block) -> Block:
        if not isinstance(block, ToolCall):
            return block
        self.given += 1
        return ToolCall(f"id-{self.given}", block.name, block.args, block.raw)

    async def run_tool(self, call: ToolCall) -> Message:
        function = self.env.tools.functions().get(call.name)
        if function is None or not isinstance(call.args, dict):
            return tool_result(call.id, "Error: this cannot be run", is_error=True)
        try:
            return tool_result(call.id, repr(await function(**call.args)))
        except Exception as error:
            return tool_result(call.id, repr(error))


class ForgetsOldTurns(CarefulLoop):
    """Begins every turn with an empty history."""

    async def turn(self, text: str | None) -> None:
        if text is not None:
            self.messages.clear()
        await super().turn(text)


class UndoesACutTurn(CarefulLoop):
    """Takes a turn that does not complete out of its history, as if it had never been."""

    async def turn(self, text: str | None) -> None:
        before = len(self.messages)
        try:
            await super().turn(text)
        except BaseException:
            del self.messages[before:]
            raise


class AsksAgain(CarefulLoop):
    """Sends a request again when its provider fails."""

    async def ask(self) -> Message:
        for _attempt in range(2):
            try:
                return await super().ask()
            except (ProviderFailed, ConnectionError) as error:
                failed = error
        raise failed


class SortsItsHistory(CarefulLoop):
    """Keeps only the last few messages, from a user's on, so that its history changes under way."""

    async def ask(self) -> Message:
        starts = [at for at, message in enumerate(self.messages) if message.role == "user"]
        if len(self.messages) > 4 and starts:
            del self.messages[: starts[-1]]
        return await super().ask()


class SpeaksBetween(CarefulLoop):
    """Adds a word of its own after the results of every batch."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        return [*await super().run_tools(calls), user("(Remember to be brief.)")]


STYLES = (
    CarefulLoop,
    ReadsToTheEnd,
    OneByOne,
    WritesPlainText,
    GivesItsOwnIds,
    ForgetsOldTurns,
    UndoesACutTurn,
    AsksAgain,
    SortsItsHistory,
    SpeaksBetween,
)
