"""Planted bugs in what becomes of a reply's calls: order, wholeness, identity, refusals, words."""

import asyncio

from harness.core.events import LogRow
from harness.core.json_text import dumps
from harness.core.messages import (
    Message,
    ModelRequest,
    ToolCall,
    assistant,
    tool_result,
)
from harness.core.ports import ProviderFailed
from harness.core.reply import ReplyDone
from harness.core.rows import ToolCallRow, ToolResultRow
from harness.fakes.script import Reply, ScriptedCall, StreamFails
from harness.fakes.tool_spec import Behaviour, Returns, ToolSpec
from harness.runner.scenario import Turn
from tests.bugs.planting import ANSWERS, MS, QUICK, SLOW, Planted, asks_for, scenario
from tests.subjects.hand_loop import MendedHandLoop
from tests.subjects.styles import CarefulLoop, ReadsToTheEnd

# --- order


class AnswersAsToolsFinish(MendedHandLoop):
    """Sends results in the order in which tools end, so that equal runs make unequal requests."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        work = [asyncio.ensure_future(self.run_tool(call)) for call in calls]
        return [await done for done in asyncio.as_completed(work)]


class LogsCalls(MendedHandLoop):
    """Reports each call before its tool runs, and the result when it has run."""

    async def run_tool(self, call: ToolCall) -> Message:
        self.env.observe(LogRow(ToolCallRow(call.id, call.name, call.args)))
        result = await super().run_tool(call)
        self.env.observe(LogRow(ToolResultRow(call.id, result.text)))
        return result


class LogsACallWithItsResult(LogsCalls):
    """Reports a call only when its tool has come back, so that a watcher sees nothing happen."""

    async def run_tool(self, call: ToolCall) -> Message:
        result = await MendedHandLoop.run_tool(self, call)
        self.env.observe(LogRow(ToolCallRow(call.id, call.name, call.args)))
        self.env.observe(LogRow(ToolResultRow(call.id, result.text)))
        return result


# --- whole replies, and the whole of them


class TakesABrokenReply(ReadsToTheEnd):
    """Is content with a message that it has got, though the stream fails right after it."""

    async def ask(self) -> Message:
        whole = None
        request = ModelRequest("some-model", "Be brief.", tuple(self.messages))
        try:
            async for part in await self.env.model.generate(request):
                if isinstance(part, ReplyDone):
                    whole = part.message
        except ProviderFailed:
            if whole is None:
                raise
        assert whole is not None
        return whole


class KeepsTheLastCall(MendedHandLoop):
    """Holds one pending call, so that of several in a reply only the last is left."""

    async def ask(self) -> Message:
        reply = await super().ask()
        return assistant(reply.text, *reply.calls[-1:])


class DropsTextBesideCalls(MendedHandLoop):
    """Writes down either what the model says or what it asks for."""

    async def ask(self) -> Message:
        reply = await super().ask()
        return assistant("", *reply.calls) if reply.calls else reply


# --- single calls


class KnowsCallsById(MendedHandLoop):
    """Keeps its running calls by id, so that of two with one id the last is run for both."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        by_id = {call.id: call for call in calls}
        results = dict(
            zip(by_id, await asyncio.gather(*map(self.run_tool, by_id.values())), strict=True)
        )
        return [results[call.id] for call in calls]


class MatchesResultsAsTheyCome(MendedHandLoop):
    """Gives the first call the first result that comes in."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        work = [asyncio.ensure_future(self.run_tool(call)) for call in calls]
        texts = [(await done).text for done in asyncio.as_completed(work)]
        return [tool_result(call.id, text) for call, text in zip(calls, texts, strict=True)]


class LooksUpEveryTool(MendedHandLoop):
    """Looks up the tools of a reply before anything else, and breaks where there is none."""

    async def ask(self) -> Message:
        reply = await super().ask()
        known = {schema.name: schema for schema in self.env.tools.schemas()}
        for call in reply.calls:
            known[call.name]
        return reply


class GuessesUnknownTools(MendedHandLoop):
    """Takes a tool that it does not know for one that has nothing to say."""

    async def run_tool(self, call: ToolCall) -> Message:
        if call.name not in {schema.name for schema in self.env.tools.schemas()}:
            return tool_result(call.id, "null")
        return await super().run_tool(call)


class RepairsArguments(CarefulLoop):
    """Makes JSON of what was cut off, and so runs half of an action."""

    async def run_tool(self, call: ToolCall) -> Message:
        if call.raw is not None:
            call = ToolCall(call.id, call.name, {"text": call.raw.rpartition('"')[2]})
        return await super().run_tool(call)


class RefusesAWholeReply(CarefulLoop):
    """Refuses all calls of a reply for the arguments of one."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        if any(call.raw is not None for call in calls):
            return [tool_result(c.id, "Error: bad arguments", is_error=True) for c in calls]
        return await super().run_tools(calls)


class SendsArgumentsBackChanged(MendedHandLoop):
    """Keeps the arguments of a call as it validated them, and not as the model wrote them."""

    async def ask(self) -> Message:
        reply = await super().ask()
        calls = [ToolCall(call.id, call.name, {**call.args, "limit": 10}) for call in reply.calls]
        return assistant(reply.text, *calls)

    async def run_tool(self, call: ToolCall) -> Message:
        args = {key: value for key, value in call.args.items() if key != "limit"}
        return await super().run_tool(ToolCall(call.id, call.name, args))


class SaysNothingOfNothing(MendedHandLoop):
    """Makes an empty result of an empty value."""

    async def run_tool(self, call: ToolCall) -> Message:
        value = await self.env.tools.call(call.name, call.args, call.id)
        return tool_result(call.id, str(value or ""))


class TakesNothingForAnError(MendedHandLoop):
    """Tells a value from an error by whether there is one."""

    async def run_tool(self, call: ToolCall) -> Message:
        value = await self.env.tools.call(call.name, call.args, call.id)
        if not value:
            return tool_result(call.id, "Error: the tool gave no result", is_error=True)
        return tool_result(call.id, dumps(value))


class HidesFailures(MendedHandLoop):
    """Swallows whatever a tool raises."""

    async def run_tool(self, call: ToolCall) -> Message:
        try:
            value = await self.env.tools.call(call.name, call.args, call.id)
        except Exception:
            value = None
        return tool_result(call.id, dumps(value))


NOTHING = ToolSpec("nothing", Behaviour(Returns(None)))
WRITE = ToolSpec("write", Behaviour(Returns("written")))
HERE = ToolSpec("here", Behaviour(Returns("Paris"), takes=50 * MS))
NOW = ToolSpec("now", Behaviour(Returns("14:05"), takes=10 * MS))

BROKEN_OFF = Turn(
    "Go.",
    (
        Reply(calls=(ScriptedCall("quick"),), fault=StreamFails(1), fault_times=None),
        Reply(say="Gone."),
    ),
)
CUT_OFF = ScriptedCall("write", None, '{"text": "half')


def asks_in(*calls: ScriptedCall, say: str = "") -> Turn:
    """One reply with these calls."""
    return Turn("Go.", (Reply(say=say, calls=calls), Reply(say="Gone.")))


CALLS: tuple[Planted, ...] = (
    Planted(
        "ORDER",
        AnswersAsToolsFinish,
        scenario(asks_for("slow", "quick"), tools=(SLOW, QUICK)),
    ),
    Planted("ORDER", LogsACallWithItsResult, scenario(asks_for("slow"), tools=(SLOW,)), LogsCalls),
    Planted(
        "COMPLETE-ONLY", TakesABrokenReply, scenario(BROKEN_OFF, tools=(QUICK,)), ReadsToTheEnd
    ),
    Planted(
        "NO-SILENT-DROP",
        KeepsTheLastCall,
        scenario(asks_for("slow", "quick"), tools=(SLOW, QUICK)),
    ),
    Planted(
        "NO-SILENT-DROP",
        DropsTextBesideCalls,
        scenario(asks_in(ScriptedCall("quick"), say="Let me look."), tools=(QUICK,)),
    ),
    Planted(
        "SLOT",
        KnowsCallsById,
        scenario(
            asks_in(ScriptedCall("write", {"n": 1}, id=""), ScriptedCall("write", {"n": 2}, id="")),
            tools=(WRITE,),
        ),
    ),
    Planted("SLOT", MatchesResultsAsTheyCome, scenario(asks_for("here", "now"), tools=(HERE, NOW))),
    Planted("CALL-TRUTH", SendsArgumentsBackChanged, scenario(asks_for("quick"), tools=(QUICK,))),
    Planted("UNKNOWN-TOOL", LooksUpEveryTool, scenario(asks_for("magic"), tools=(QUICK,))),
    Planted("UNKNOWN-TOOL", GuessesUnknownTools, scenario(asks_for("magic"), tools=(QUICK,))),
    Planted("BAD-ARGS", RepairsArguments, scenario(asks_in(CUT_OFF), tools=(WRITE,)), CarefulLoop),
    Planted(
        "BAD-ARGS",
        RefusesAWholeReply,
        scenario(asks_in(CUT_OFF, ScriptedCall("quick")), tools=(WRITE, QUICK)),
        CarefulLoop,
    ),
    Planted("RESULT-TOTAL", SaysNothingOfNothing, scenario(asks_for("nothing"), tools=(NOTHING,))),
    Planted(
        "RESULT-TOTAL", TakesNothingForAnError, scenario(asks_for("nothing"), tools=(NOTHING,))
    ),
    Planted("FAIL-VISIBLE", HidesFailures, scenario(asks_for("no"), tools=(ANSWERS,))),
)
