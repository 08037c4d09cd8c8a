"""Bugs in what a loop remembers: shapes, truths, what is kept, what is cut away."""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from harness.core.events import Estimated, LogRow, LoopEvent, Trimmed
from harness.core.json_text import dumps
from harness.core.messages import (
    Message,
    ModelRequest,
    Text,
    ToolCall,
    assistant,
    tool_result,
)
from harness.core.rows import AssistantRow, ToolCallRow
from harness.core.tokens import message_tokens
from harness.fakes.script import Reply, ScriptedCall
from harness.fakes.tool_spec import Behaviour, Raises, ToolSpec
from harness.runner.scenario import Cancel, Turn
from tests.bugs.planting import MS, QUICK, SLOW, Planted, asks_for, scenario
from tests.subjects.hand_loop import MendedHandLoop


class ForgetsItsReasoning(MendedHandLoop):
    """Keeps the text and the calls of a reply, and not the signed reasoning before them."""

    async def ask(self) -> Message:
        reply = await super().ask()
        return assistant(reply.text, *reply.calls)


class SaysItsReasoningLast(MendedHandLoop):
    """Puts what a reply asks for before the reasoning that led to it."""

    async def ask(self) -> Message:
        reply = await super().ask()
        return Message("assistant", tuple(reversed(reply.content)))


class TakesNothingForAResult(MendedHandLoop):
    """Looks up what its tools returned, and writes what it finds for those that never did."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        results: dict[str, Message] = {}

        async def run(call: ToolCall) -> None:
            results[call.id] = await self.run_tool(call)

        try:
            await asyncio.gather(*map(run, calls))
        finally:
            shown = [results.get(call.id) or tool_result(call.id, dumps(None)) for call in calls]
            self.messages += shown
        return []


class LetsOneFailureSpeakForAll(MendedHandLoop):
    """Answers all calls of a reply with the error of the one that failed."""

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        tools = self.env.tools
        try:
            values = await asyncio.gather(*(tools.call(c.name, c.args, c.id) for c in calls))
        except RuntimeError as error:
            return [tool_result(call.id, f"Error: {error}", is_error=True) for call in calls]
        return [
            tool_result(call.id, dumps(value)) for call, value in zip(calls, values, strict=True)
        ]


class RollsBackACutTurn(MendedHandLoop):
    """Forgets a turn that was cut short, with all that its tools have done."""

    async def turn(self, text: str | None) -> None:
        before = len(self.messages)
        try:
            await super().turn(text)
        except asyncio.CancelledError:
            del self.messages[before:]
            raise


class LosesItsAnswer(MendedHandLoop):
    """Writes its answer down in a task that the end of the turn cancels."""

    async def turn(self, text: str | None) -> None:
        await super().turn(text)
        answer = self.messages.pop()

        async def write() -> None:
            await asyncio.sleep(0)
            self.messages.append(answer)

        writing = asyncio.ensure_future(write())
        await asyncio.sleep(0)
        writing.cancel()


class WritesLessThanItTells(MendedHandLoop):
    """Tells its consumer each reply whole, and writes no text that stands beside calls."""

    async def ask(self) -> Message:
        reply = await super().ask()
        calls = [{"id": call.id, "name": call.name, "args": call.args} for call in reply.calls]
        self.env.observe(LoopEvent("done", {"text": reply.text, "tool_calls": calls}))
        for call in reply.calls:
            self.env.observe(LogRow(ToolCallRow(call.id, call.name, call.args)))
        if not reply.calls:
            self.env.observe(LogRow(AssistantRow(reply.text)))
        return reply


class CutsItsHistory(MendedHandLoop):
    """Sends what `cut` leaves of its messages."""

    def request(self) -> ModelRequest:
        whole = super().request()
        return replace(whole, messages=tuple(self.cut(whole.messages)))

    def cut(self, messages: Sequence[Message]) -> Sequence[Message]:
        raise NotImplementedError


class CutsItsInstructions(CutsItsHistory):
    """Sends the last three messages, whatever they are; the first one says how to behave."""

    def cut(self, messages: Sequence[Message]) -> Sequence[Message]:
        return [Message("system", (Text("Never curse."),)), *messages][-3:]


class CutsTheQuestion(CutsItsHistory):
    """Sends the last two steps of a long turn, and not what the turn is about."""

    def cut(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages[-4:]


class CutsFromTheMiddle(CutsItsHistory):
    """Sends how the turn began and its last step, and forgets the steps between."""

    def cut(self, messages: Sequence[Message]) -> Sequence[Message]:
        return messages if len(messages) <= 5 else [*messages[:3], *messages[-2:]]


BUDGET = 60


class CutsOnlyOnce(CutsItsHistory):
    """Where its history is too large, it drops the oldest question and answer, and looks no more
    whether that was enough.
    """

    cuts_at_most = 1

    def cut(self, messages: Sequence[Message]) -> Sequence[Message]:
        left = list(messages)
        for _cut in range(self.cuts_at_most):
            if size(left) > BUDGET and len(left) > 2:
                del left[:2]
        if len(left) < len(messages):
            gone = messages[: len(messages) - len(left)]
            self.env.observe(Trimmed(len(gone), size(gone), len(left), BUDGET))
        self.env.observe(Estimated(size(left)))
        return left


class CutsUntilItFits(CutsOnlyOnce):
    """The same loop without the bug."""

    cuts_at_most = 100


def size(messages: Sequence[Message]) -> int:
    return round(sum(map(message_tokens, messages)))


class CountsCharacters(MendedHandLoop):
    """Takes four characters for a token, in any language."""

    def request(self) -> ModelRequest:
        whole = super().request()
        self.env.observe(Estimated(sum(len(each.text) for each in whole.messages) // 4))
        return whole


BREAKS = ToolSpec("breaks", Behaviour(Raises("out of paper"), takes=20 * MS))
ON_QUICK_DONE = Cancel(after="tool_ended", name="quick")
STEPS = tuple(Reply(calls=(ScriptedCall("quick", {"n": n}),)) for n in range(4))
LONG_TURN = Turn("Go.", (*STEPS, Reply(say="Gone.")))
THINKS = scenario(
    Turn(
        "Go.",
        (
            Reply(think="Hm.", signature="c2ln", calls=(ScriptedCall("quick"),)),
            Reply(say="Gone."),
        ),
    ),
    tools=(QUICK,),
)
STORY = "Once upon a time there was a test that nobody had ever seen fail. " * 2


def talk(*said: str) -> tuple[Turn, ...]:
    return tuple(Turn(text, (Reply(say=f"You said: {text}"),)) for text in said)


HISTORIES: tuple[Planted, ...] = (
    Planted("SHAPE", SaysItsReasoningLast, THINKS),
    Planted("ROUNDTRIP", ForgetsItsReasoning, THINKS),
    Planted(
        "OUTCOME-TRUTH",
        TakesNothingForAResult,
        scenario(asks_for("quick", "slow", cancel=ON_QUICK_DONE), tools=(QUICK, SLOW)),
    ),
    Planted(
        "SIBLING",
        LetsOneFailureSpeakForAll,
        scenario(asks_for("quick", "breaks"), tools=(QUICK, BREAKS)),
    ),
    Planted(
        "EFFECT-KEPT",
        RollsBackACutTurn,
        scenario(asks_for("quick", "slow", cancel=ON_QUICK_DONE), tools=(QUICK, SLOW)),
    ),
    Planted("DURABLE", LosesItsAnswer, scenario(*talk("Hello.", "Again?"))),
    Planted(
        "LOG-HISTORY",
        WritesLessThanItTells,
        scenario(
            Turn(
                "Go.", (Reply(say="Off I go.", calls=(ScriptedCall("quick"),)), Reply(say="Gone."))
            ),
            tools=(QUICK,),
        ),
    ),
    Planted("PINNED", CutsItsInstructions, scenario(*talk("One.", "Two.", "Three."))),
    Planted("TASK-KEPT", CutsTheQuestion, scenario(LONG_TURN, tools=(QUICK,))),
    Planted("TRIM", CutsFromTheMiddle, scenario(LONG_TURN, tools=(QUICK,))),
    Planted(
        "BOUND",
        CutsOnlyOnce,
        scenario(*talk("One.", "Two.", STORY, "Four.")),
        CutsUntilItFits,
    ),
    Planted("ESTIMATE", CountsCharacters, scenario(*talk("\u6c49\u5b57" * 150))),
)
