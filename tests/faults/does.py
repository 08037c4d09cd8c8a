"""Loops that do, end or tell what they should not: one fault a class, as public reports tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from harness.core.events import InsideEvent, LogRow, LoopEvent, UsageCounted
from harness.core.json_text import Json
from harness.core.messages import Message, ModelRequest, ToolCall, Usage, assistant
from harness.core.outcome import CANCELLED, COMPLETED, Cancelled, Error, Outcome, StepLimit
from harness.core.ports import ToolFailed
from harness.core.reply import ReplyDone, ReplyPart
from harness.core.rows import ThinkingRow
from harness.loops.turn.policy import SAFE
from harness.loops.turn.tokens import message_tokens, text_tokens
from tests.faults.seams import Sound

# --- tools


class HoldsAFailedTurn(Sound):
    """Once a turn has failed, its calls count as running for ever."""

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        value = await super().uses(name, args, call_id)
        if isinstance(self.last, Error):
            raise ToolFailed("another call is running")
        return value


class RunsToolsAgain(Sound):
    """Taken up again, it runs the calls of the last step once more."""

    async def turn(self, text: str | None) -> Outcome:
        calls = [call for message in self.history() for call in message.calls]
        for call in calls if text is None else []:
            await self.uses(call.name, call.args, call.id)
        return await super().turn(text)


class ShieldsItsTools(Sound):
    """Lets no cancel through to its tools."""

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        return await asyncio.shield(asyncio.ensure_future(super().uses(name, args, call_id)))


class WaitsForItsTools(Sound):
    """Hears of a stop only between two tools."""

    def __init__(self, env: Any, settings: dict[str, Any]) -> None:
        super().__init__(env, settings)
        self.running = 0

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        self.running += 1
        try:
            return await super().uses(name, args, call_id)
        finally:
            self.running -= 1

    def cancel(self) -> None:
        if not self.running:
            super().cancel()


class GoesOnAfterAResult(Sound):
    """Hears of a stop only where no tool of the batch has finished."""

    def __init__(self, env: Any, settings: dict[str, Any]) -> None:
        super().__init__(env, settings)
        self.finished = False

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        self.finished = True
        return await super().uses(name, args, call_id)

    def cancel(self) -> None:
        if not self.finished:
            super().cancel()


class FailsAsAWhole(Sound):
    """Ends the turn where one tool breaks."""

    async def turn(self, text: str | None) -> Outcome:
        self.task, self.broken = asyncio.current_task(), ""
        try:
            return await super().turn(text)
        except asyncio.CancelledError:
            if self.broken:
                return Error("tool", self.broken)
            raise

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        try:
            return await super().uses(name, args, call_id)
        except Exception as error:
            self.broken = str(error)
            assert self.task is not None
            self.task.cancel()
            raise


class DiesOfACancelInside(Sound):
    """Takes a cancellation that comes out of a tool for its own."""

    async def turn(self, text: str | None) -> Outcome:
        self.task = asyncio.current_task()
        return await super().turn(text)

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        try:
            return await super().uses(name, args, call_id)
        except asyncio.CancelledError:
            assert self.task is not None
            self.task.cancel()
            raise


class TakesNothingForAnError(Sound):
    """Says that a tool which gave nothing has failed."""

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        value = await super().uses(name, args, call_id)
        if not value:
            raise ToolFailed("no result")
        return value


class AnswersWithAnError(Sound):
    """Gives the text of a tool's error as the answer, and asks the model no more."""

    error = ""

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        try:
            return await super().uses(name, args, call_id)
        except ToolFailed as failed:
            self.error = str(failed)
            raise

    async def generate(self, request: ModelRequest) -> AsyncIterator[ReplyPart]:
        return self.answer() if self.error else await super().generate(request)

    async def answer(self) -> AsyncIterator[ReplyPart]:
        yield ReplyDone(assistant(self.error))


class RunsAllAtOnce(Sound):
    """Knows no limit of tools at a time."""

    def set(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, "max_parallel_tool_calls": 100}


# --- replies


def with_calls(part: ReplyPart, calls: Iterable[ToolCall]) -> ReplyPart:
    assert isinstance(part, ReplyDone)
    others = [block for block in part.message.content if not isinstance(block, ToolCall)]
    return ReplyDone(Message("assistant", (*others, *calls)))


class TakesWhatCame(Sound):
    """Takes what came of a reply for the whole of it."""

    def ends(self) -> Iterator[ReplyPart]:
        if not self.done:
            yield ReplyDone(assistant(self.text))


class StopsAtTheEndSignal(Sound):
    """Reads nothing after the end signal."""

    def gets(self, part: ReplyPart) -> Iterable[ReplyPart]:
        return [] if self.done else [part]


class MendsArguments(Sound):
    """Makes arguments of what is none."""

    def gets(self, part: ReplyPart) -> Iterable[ReplyPart]:
        if not isinstance(part, ReplyDone):
            return [part]
        mended = [replace(call, args=call.args or {}, raw=None) for call in part.message.calls]
        return [with_calls(part, mended)]


class DropsBrokenCalls(Sound):
    """Says nothing of a call whose arguments it cannot read."""

    def gets(self, part: ReplyPart) -> Iterable[ReplyPart]:
        if not isinstance(part, ReplyDone):
            return [part]
        return [with_calls(part, [call for call in part.message.calls if call.raw is None])]


class KeepsTheLastCall(Sound):
    """Of several calls in one reply it sees the last."""

    def gets(self, part: ReplyPart) -> Iterable[ReplyPart]:
        if not isinstance(part, ReplyDone):
            return [part]
        return [with_calls(part, part.message.calls[-1:])]


class DiesOfUnknownTools(Sound):
    """Breaks where the model makes up a tool."""

    def gets(self, part: ReplyPart) -> Iterable[ReplyPart]:
        known = {schema.name for schema in self.outer.tools.schemas()}
        if isinstance(part, ReplyDone):
            for call in part.message.calls:
                if call.name not in known:
                    raise KeyError(call.name)
        return [part]


class NeverCloses(Sound):
    """Leaves a stream open that it does not read on."""

    async def leaves(self, stream: Any) -> None:
        pass


class TakesBothEnds(Sound):
    """Takes a reply whose end signal comes twice for two."""

    policy = replace(SAFE, last_done_counts=False)


class AsksAgainAfterACut(Sound):
    """Asks for a summary, and then once more, where the request is too large."""

    async def generate(self, request: ModelRequest) -> AsyncIterator[ReplyPart]:
        size = text_tokens(request.system) + sum(map(message_tokens, request.messages))
        if size > self.settings.context_window_tokens:
            async for _part in await super().generate(request):
                pass
        return await super().generate(request)


# --- ends


class TakesOneStepMore(Sound):
    """Counts its steps from the wrong end."""

    def set(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, "max_steps": settings["max_steps"] + 1}


class CallsALimitAnAnswer(Sound):
    """Says completed where the budget was spent."""

    async def turn(self, text: str | None) -> Outcome:
        outcome = await super().turn(text)
        return COMPLETED if isinstance(outcome, StepLimit) else outcome


class LosesAFinishedSibling(Sound):
    """Gives a batch up as a whole."""

    policy = replace(SAFE, results_per_call=False)


class FailsWhereItWorked(Sound):
    """Says failed where it was stopped at work, cancelled where it had not begun."""

    worked = False

    async def turn(self, text: str | None) -> Outcome:
        outcome = await super().turn(text)
        failed = isinstance(outcome, Cancelled) and self.worked
        return Error("tool", "cancelled") if failed else outcome

    async def uses(self, name: str, args: Json, call_id: str | None) -> Json:
        self.worked = True
        return await super().uses(name, args, call_id)


class CallsACancelAnAnswer(Sound):
    """Says completed where a later step was stopped, for the first one had said something."""

    async def turn(self, text: str | None) -> Outcome:
        outcome = await super().turn(text)
        return COMPLETED if isinstance(outcome, Cancelled) else outcome


class TakesALateCancel(Sound):
    """Says cancelled where the stop came when all was written."""

    async def turn(self, text: str | None) -> Outcome:
        self.late = False
        outcome = await super().turn(text)
        return CANCELLED if self.late else outcome

    def cancel(self) -> None:
        self.late = True
        super().cancel()


class SwallowsCancels(Sound):
    """Ends a turn whose task was cancelled as if nothing had happened."""

    async def turn(self, text: str | None) -> Outcome:
        try:
            return await super().turn(text)
        except asyncio.CancelledError:
            return COMPLETED


class BreaksWhenLeft(Sound):
    """Breaks where its consumer goes away."""

    async def turn(self, text: str | None) -> Outcome:
        try:
            return await super().turn(text)
        except asyncio.CancelledError:
            raise RuntimeError("the scope was left in another task") from None


# --- what is told


class SaysItsEndAtOnce(Sound):
    """Tells its end when it is asked for, not when it is there."""

    def cancel(self) -> None:
        self.outer.observe(LoopEvent("turn_end", {"error": None, "outcome": "cancelled"}))
        super().cancel()


class EndsInSilence(Sound):
    """Tells nobody that it was stopped."""

    def tells(self, event: InsideEvent) -> Iterable[InsideEvent]:
        ended = isinstance(event, LoopEvent) and event.name == "turn_end"
        return [] if ended and self.stopped else [event]


class WritesNothingWhenCut(Sound):
    """Writes down nothing of a reply that was cut off."""

    def tells(self, event: InsideEvent) -> Iterable[InsideEvent]:
        thought = isinstance(event, LogRow) and isinstance(event.row, ThinkingRow)
        return [] if thought and self.stopped else [event]


class TellsAnEndAStep(Sound):
    """Tells the turn's end at the end of each step."""

    def tells(self, event: InsideEvent) -> Iterator[InsideEvent]:
        yield event
        if isinstance(event, LoopEvent) and event.name == "done":
            yield LoopEvent("turn_end", {"error": None, "outcome": "completed"})


class TellsCallsWithTheirResults(Sound):
    """Tells a call when it has come back."""

    def __init__(self, env: Any, settings: dict[str, Any]) -> None:
        super().__init__(env, settings)
        self.held: list[InsideEvent] = []

    def tells(self, event: InsideEvent) -> Iterator[InsideEvent]:
        name = event.name if isinstance(event, LoopEvent) else ""
        if name == "tool":
            self.held.append(event)
            return
        if name == "tool_result":
            yield from self.held
            self.held = []
        yield event


class TellsNoContent(Sound):
    """Tells that a result came, and not what is in it."""

    def tells(self, event: InsideEvent) -> Iterator[InsideEvent]:
        if isinstance(event, LoopEvent) and event.name == "tool_result":
            assert isinstance(event.payload, dict)
            event = LoopEvent(event.name, {**event.payload, "value": None})
        yield event


# --- what is counted


class ForgetsUsageWhenCut(Sound):
    """Counts nothing for a reply that was cut off."""

    def tells(self, event: InsideEvent) -> Iterable[InsideEvent]:
        return [] if isinstance(event, UsageCounted) and self.stopped else [event]


class MakesUsageUp(Sound):
    """Puts a guess in the place of a count that never came."""

    async def turn(self, text: str | None) -> Outcome:
        outcome = await super().turn(text)
        if isinstance(outcome, Cancelled):
            self.outer.observe(UsageCounted(Usage(completion_tokens=len(self.text) // 4)))
        return outcome


class CountsTwice(Sound):
    """Counts each report and their sum."""

    def tells(self, event: InsideEvent) -> Iterator[InsideEvent]:
        counted = isinstance(event, UsageCounted)
        yield UsageCounted(event.total + event.total) if counted else event
