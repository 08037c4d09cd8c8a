"""Bugs that only several runs of one scenario show, side by side."""

import asyncio

from msgspec.structs import replace

from harness.core.messages import Message, ModelRequest, Thinking, ToolCall, assistant
from harness.core.ports import Env
from harness.core.reply import ReplyDone, TextDelta
from harness.fakes.script import Reply, ScriptedCall
from harness.runner.scenario import Turn
from tests.bugs.planting import QUICK, Planted, asks_for, scenario
from tests.subjects import own_parser
from tests.subjects.hand_loop import MendedHandLoop


class CountsItsSessions(MendedHandLoop):
    """Gives each session a number, from a counter that outlives it."""

    sessions = 0

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        CountsItsSessions.sessions += 1
        self.number = CountsItsSessions.sessions

    def request(self) -> ModelRequest:
        return replace(super().request(), system=f"Be brief. This is session {self.number}.")


class TidiesEachPiece(MendedHandLoop):
    """Puts its answer together from the pieces of the stream, each without the space around it."""

    async def ask(self) -> Message:
        text = ""
        async for part in await self.env.model.generate(self.request()):
            if isinstance(part, TextDelta):
                text += part.text.strip()
            elif isinstance(part, ReplyDone):
                return assistant(text, *part.message.calls)
        raise ConnectionError("the stream ended before the reply was whole")


class KeepsOnlySignedAnswers(MendedHandLoop):
    """Drops what was said after reasoning that nobody has signed, as some protocols have it."""

    async def ask(self) -> Message:
        reply = await super().ask()
        thoughts = [block for block in reply.content if isinstance(block, Thinking)]
        loose = any(thought.signature is None for thought in thoughts)
        return assistant("", *reply.calls) if loose else reply


class RollsBackALateCancel(MendedHandLoop):
    """Answers what a cancel cuts off among its tools, and forgets a turn that it cuts off later."""

    async def turn(self, text: str | None) -> None:
        self.before = len(self.messages)
        await super().turn(text)

    async def ask(self) -> Message:
        try:
            return await super().ask()
        except asyncio.CancelledError:
            del self.messages[self.before + 1 :]
            raise


class ForgetsWhatItBegan(MendedHandLoop):
    """Answers calls that a cancel keeps from beginning, and forgets a reply where it comes later,
    while nothing has come back.
    """

    async def run_tools(self, calls: list[ToolCall]) -> list[Message]:
        self.waits = False
        asked = len(self.messages) - 1
        try:
            return await super().run_tools(calls)
        except asyncio.CancelledError:
            if self.waits:
                del self.messages[asked:]
            raise

    async def run_tool(self, call: ToolCall) -> Message:
        self.waits = True
        answer = await super().run_tool(call)
        self.waits = False
        return answer


WORDS = Turn("Go.", (Reply(say="Off we go, then.", chunk=100),))
THOUGHT = Turn("Go.", (Reply(think="Now?", signature="sig-1", say="Off we go."),))

SEES = Turn(
    "Go.",
    (
        Reply(say="Let me see — twice.", calls=(ScriptedCall("quick"), ScriptedCall("quick"))),
        Reply(say="Gone — for good."),
    ),
)
OVER_HTTP = scenario(SEES, Turn("So?", (Reply(say="Gone."),)), tools=(QUICK,))

SWEPT = Planted("MONOTONIC", ForgetsWhatItBegan, scenario(asks_for("quick"), tools=(QUICK,)))
"""What a sweep finds by holding its runs against each other, and in none of them alone."""

RELATED: tuple[Planted, ...] = (
    Planted("DETERMINISM", CountsItsSessions, scenario(WORDS)),
    Planted("PARITY", TidiesEachPiece, scenario(WORDS, Turn("So?", (Reply(say="Gone."),)))),
    Planted(
        "PARITY", KeepsOnlySignedAnswers, scenario(THOUGHT, Turn("So?", (Reply(say="Gone."),)))
    ),
    Planted("REPLAY", own_parser.skips_tools_on_recordings, OVER_HTTP, own_parser.right),
    Planted("RECHUNK", own_parser.decodes_each_chunk, OVER_HTTP, own_parser.right),
    Planted("NOISE", own_parser.parses_every_line, OVER_HTTP, own_parser.right),
    Planted("ASSEMBLE", own_parser.appends_names, OVER_HTTP, own_parser.right),
    Planted("TOTAL-PARSER", own_parser.takes_what_came, OVER_HTTP, own_parser.right),
    Planted("MONOTONIC", RollsBackALateCancel, scenario(asks_for("quick"), tools=(QUICK,))),
)
