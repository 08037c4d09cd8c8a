"""One buggy loop for each invariant: the bug that the invariant is there to catch.

Each is the mended hand-written loop with one thing gone wrong, and the scenario that shows it.
"""

import asyncio

from harness.core.json_text import dumps
from harness.core.messages import Message, ModelRequest, ToolCall, assistant, tool_result
from harness.core.ports import Env
from harness.core.reply import ReplyDone, TextDelta
from harness.fakes.script import Reply, Torn
from harness.runner.scenario import Cancel, Turn
from tests.bugs.planted_calls import CALLS
from tests.bugs.planted_cancels import CANCELS
from tests.bugs.planted_fsm import FSM_HISTORIES
from tests.bugs.planted_fsm_cancels import FSM_CANCELS
from tests.bugs.planted_histories import HISTORIES
from tests.bugs.planted_spending import SPENDING
from tests.bugs.planted_summaries import SUMMARIES
from tests.bugs.planted_wire import WIRE
from tests.bugs.planting import PAYS_THEN_FAILS, QUICK, SLOW, Planted, asks_for, scenario
from tests.subjects.hand_loop import HandLoop, MendedHandLoop


class DropsASecondResult(MendedHandLoop):
    """Keeps the results of parallel calls by tool name, so that two calls of one tool share one."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        results = await super().run_tools(calls)
        return list(
            {call.name: result for call, result in zip(calls, results, strict=True)}.values()
        )


class TakesATornStreamForAnAnswer(MendedHandLoop):
    """Makes its message out of the deltas, so that a stream without an end looks like an answer."""

    async def ask(self) -> Message:
        request = ModelRequest("some-model", "", tuple(self.messages))
        text = ""
        async for part in await self.env.model.generate(request):
            if isinstance(part, ReplyDone):
                return part.message
            if isinstance(part, TextDelta):
                text += part.text
        return assistant(text)


class WaitsForAnEndThatNeverComes(MendedHandLoop):
    """Waits for its stream's end signal outside the stream, and never hears that it broke."""

    async def ask(self) -> Message:
        whole = asyncio.get_running_loop().create_future()
        request = ModelRequest("some-model", "", tuple(self.messages))
        async for part in await self.env.model.generate(request):
            if isinstance(part, ReplyDone):
                whole.set_result(part.message)
        return await whole


class LooksAtItsFlagTooLate(MendedHandLoop):
    """Runs tools one after the other and looks at its stop flag only before it asks again."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.stopped = False

    def cancel(self) -> None:
        self.stopped = True

    async def ask(self) -> Message:
        if self.stopped:
            self.stopped = False
            raise asyncio.CancelledError
        return await super().ask()

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        return [await self.run_tool(call) for call in calls]


class TriesAToolAgain(MendedHandLoop):
    """Runs a tool again after any failure, though the first run had already taken effect."""

    async def run_tool(self, call: ToolCall) -> Message:
        for _attempt in range(2):
            try:
                return tool_result(
                    call.id, dumps(await self.env.tools.call(call.name, call.args, call.id))
                )
            except Exception as error:
                failed = tool_result(call.id, f"Error: {error}", is_error=True)
        return failed


class LeavesItsToolsRunning(MendedHandLoop):
    """Stops waiting for its tools when it is cancelled, and lets them run on."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        tasks = [asyncio.ensure_future(self.run_tool(call)) for call in calls]
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            self.messages += [tool_result(call.id, "Error: cancelled") for call in calls]
            raise
        return [task.result() for task in tasks]


ON_SLOW = Cancel(after="tool_started", name="slow")
TORN = Turn("Go.", (Reply(say="Half an answer", fault=Torn(1)),))

PLANTED: tuple[Planted, ...] = (
    Planted(
        "PAIR",
        DropsASecondResult,
        scenario(asks_for("quick", "quick"), tools=(QUICK,)),
    ),
    Planted(
        "RESUME",
        HandLoop,
        scenario(asks_for("quick", "slow", cancel=ON_SLOW), tools=(QUICK, SLOW)),
    ),
    Planted("ONE-TERMINAL", WaitsForAnEndThatNeverComes, scenario(TORN)),
    Planted("TERMINAL-TRUTH", TakesATornStreamForAnAnswer, scenario(TORN)),
    Planted(
        "CANCEL",
        LooksAtItsFlagTooLate,
        scenario(asks_for("slow", "quick", cancel=ON_SLOW), tools=(QUICK, SLOW)),
    ),
    Planted("EFFECT-ONCE", TriesAToolAgain, scenario(asks_for("pay"), tools=(PAYS_THEN_FAILS,))),
    Planted(
        "QUIESCE",
        LeavesItsToolsRunning,
        scenario(asks_for("slow", cancel=ON_SLOW), tools=(SLOW,)),
    ),
    *CALLS,
    *CANCELS,
    *SPENDING,
    *HISTORIES,
    *FSM_HISTORIES,
    *FSM_CANCELS,
    *SUMMARIES,
    *WIRE,
)
