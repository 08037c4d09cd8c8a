"""Planted bugs in what a turn spends and what is counted, and one in the fakes themselves."""

import asyncio

from msgspec.structs import replace

from harness.core.budget import Budget
from harness.core.events import UsageCounted
from harness.core.messages import Message, ModelRequest, ToolCall, Usage, tool_result
from harness.core.outcome import STEP_LIMIT, StepLimit
from harness.core.ports import Agent, Env, ProviderFailed
from harness.core.reply import ReplyDone, TextDelta, UsageReport
from harness.fakes.model import FakeModel, ReplyStream
from harness.fakes.script import Reply, ScriptedCall, StreamFails
from harness.runner.scenario import Turn
from tests.bugs.planting import QUICK, SLOW, Planted, asks_for, scenario
from tests.subjects.hand_loop import MendedHandLoop


class StopsAtTwoSteps(MendedHandLoop):
    """Asks at most twice a turn."""

    most = 2

    async def turn(self, text: str | None) -> StepLimit | None:
        self.taken = 0
        try:
            await super().turn(text)
        except OverflowError:
            return STEP_LIMIT
        return None

    async def ask(self) -> Message:
        if self.taken == self.most:
            raise OverflowError
        self.taken += 1
        return await super().ask()


class CountsFromNought(StopsAtTwoSteps):
    """Is off by one."""

    most = 3


class RunsTwoTools(MendedHandLoop):
    """Runs at most two tools a turn, and says so to the rest."""

    ran = 0

    async def run_tool(self, call: ToolCall) -> Message:
        if self.ran == 2:
            return tool_result(call.id, "Error: no tool calls are left", is_error=True)
        self.ran += 1
        return await super().run_tool(call)


class CountsToolsThatAreDone(RunsTwoTools):
    """Counts a tool when it has come back, so that any number of them may start at once."""

    async def run_tool(self, call: ToolCall) -> Message:
        if self.ran == 2:
            return tool_result(call.id, "Error: no tool calls are left", is_error=True)
        result = await MendedHandLoop.run_tool(self, call)
        self.ran += 1
        return result


class RunsTwoAtOnce(MendedHandLoop):
    """Runs at most two tools at the same time."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.room = asyncio.Semaphore(2)

    async def run_tool(self, call: ToolCall) -> Message:
        async with self.room:
            return await super().run_tool(call)


class MakesRoomForEachTool(RunsTwoAtOnce):
    """Has a limit for every call, where there should be one for all."""

    async def run_tool(self, call: ToolCall) -> Message:
        self.room = asyncio.Semaphore(2)
        return await super().run_tool(call)


class RunsOneAtATime(MendedHandLoop):
    """Runs tools one after the other."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        return [await self.run_tool(call) for call in calls]


class ForgetsToRunOneAtATime(RunsOneAtATime):
    """Runs tools side by side although it was told not to."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        return await asyncio.gather(*map(self.run_tool, calls))


class SeesThatNothingChanges(MendedHandLoop):
    """Gives up when the same calls came to the same results five times in a row."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.seen: list[list[object]] = []

    async def turn(self, text: str | None) -> StepLimit | None:
        try:
            await super().turn(text)
        except OverflowError:
            return STEP_LIMIT
        return None

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        results = await super().run_tools(calls)
        self.seen.append([self.seen_in(*each) for each in zip(calls, results, strict=True)])
        if len(self.seen) >= 5 and self.seen[-5:] == self.seen[-1:] * 5:
            self.messages += results
            raise OverflowError
        return results

    def seen_in(self, call: ToolCall, result: Message) -> object:
        return call.name, call.args, result.text


class ComparesIdsToo(SeesThatNothingChanges):
    """Compares calls as they are, and since each has an id of its own, no two are ever equal."""

    def seen_in(self, call: ToolCall, result: Message) -> object:
        return call, result


# --- counts


class CountsUsage(MendedHandLoop):
    """Adds up what replies report, and tells after every turn."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.total = Usage()

    async def turn(self, text: str | None) -> None:
        try:
            await super().turn(text)
        finally:
            self.env.observe(UsageCounted(self.total))

    async def ask(self) -> Message:
        request = ModelRequest("some-model", "Be brief.", tuple(self.messages))
        async for part in await self.env.model.generate(request):
            if isinstance(part, UsageReport):
                self.total += part.usage
            if isinstance(part, ReplyDone):
                return part.message
        raise ConnectionError("the stream ended before the reply was whole")


class CountsWholeRepliesOnly(CountsUsage):
    """Adds a reply's report when the reply is whole, so that a broken one seems to cost nothing."""

    async def ask(self) -> Message:
        before = self.total
        try:
            return await super().ask()
        except ProviderFailed:
            self.total = before
            raise


# --- the fakes themselves


class CutsTheLastLetter(FakeModel):
    """A fake model that loses the end of the last delta."""

    async def generate(self, request: ModelRequest) -> ReplyStream:
        stream = await super().generate(request)
        stream._parts = [
            TextDelta(part.text[:-1]) if isinstance(part, TextDelta) else part
            for part in stream._parts
        ]
        return stream


def on_a_broken_fake(env: Env) -> Agent:
    """The mended loop, with a fake model that is not right."""
    model = env.model
    assert isinstance(model, FakeModel)
    env.model = CutsTheLastLetter(  # type: ignore[misc]
        model._stage, model._recorder, model.choices, model._refuse
    )
    return MendedHandLoop(env)


USED = Usage(12, 3, 15)


def again_and_again(times: int) -> Turn:
    """The same call in every reply."""
    return Turn("Go.", (*[Reply(calls=(ScriptedCall("quick"),))] * times, Reply(say="Gone.")))


SPENDING: tuple[Planted, ...] = (
    Planted(
        "LIMIT",
        CountsFromNought,
        replace(scenario(again_and_again(4), tools=(QUICK,)), budget=Budget(steps=2)),
        StopsAtTwoSteps,
    ),
    Planted(
        "COUNT",
        CountsToolsThatAreDone,
        replace(
            scenario(asks_for("quick", "slow", "quick"), tools=(QUICK, SLOW)),
            budget=Budget(tool_calls=2),
        ),
        RunsTwoTools,
    ),
    Planted(
        "CAP",
        MakesRoomForEachTool,
        replace(
            scenario(asks_for("quick", "slow", "quick"), tools=(QUICK, SLOW)),
            budget=Budget(parallel_tools=2),
        ),
        RunsTwoAtOnce,
    ),
    Planted(
        "SERIAL",
        ForgetsToRunOneAtATime,
        replace(
            scenario(asks_for("quick", "slow"), tools=(QUICK, SLOW)),
            budget=Budget(parallel_tools=1),
        ),
        RunsOneAtATime,
    ),
    Planted(
        "LOOP-DETECT",
        ComparesIdsToo,
        scenario(again_and_again(12), tools=(QUICK,)),
        SeesThatNothingChanges,
        exotic="the same call more than ten times in a row",
    ),
    Planted(
        "USAGE",
        CountsWholeRepliesOnly,
        scenario(
            Turn("Go.", (Reply(say="Half", usage=USED, fault=StreamFails(2)),)),
            Turn("Again.", (Reply(say="Whole.", usage=USED),)),
        ),
        CountsUsage,
    ),
    Planted(
        "FAKE",
        on_a_broken_fake,
        scenario(Turn("Go.", (Reply(say="Gone."),))),
        exotic="a broken fake",
    ),
)
