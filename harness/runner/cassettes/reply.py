"""A recorded reply on its way to the agent of a run, and the events that tell of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Literal, TypeVar

from msgspec.structs import replace

from harness.core.events import Delta, RequestMissed
from harness.core.messages import Text, Thinking, Usage
from harness.core.reply import ReplyPart, TextDelta, ThinkingDelta, UsageReport
from harness.core.trace import Recorder
from harness.fakes.neutral import neutral
from harness.fakes.place import Placed
from harness.fakes.script import GenerateFails, StreamFails
from harness.fakes.wire_faults import BadJson, ErrorFrame
from harness.runner.cassettes.heard import Heard, cancelled
from harness.runner.cassettes.stage import RecordedStage
from harness.transport.cassettes.playing import Course, Playing
from harness.transport.exchange import Broken
from harness.wire.codec import Answer, Garbled, ProviderError, Truncated
from harness.wire.http import Headers

T = TypeVar("T")

_GONE = (
    "the client left reply {reply} here when it was recorded, and this one goes on; what comes "
    "next is not known: cut the turn in the scenario as it was cut then, or go on from a scenario "
    "that `harness cassette to-scenario` makes"
)
_CUT_OFF = ("length", "filtered")
"""Why a model stops that had more to say."""


class RecordedReply:
    """An Exchange that plays a recorded reply.

    What the reply says is told of with the chunk that says it, and its end with the chunk by which
    it is whole; `refused` is what it was refused for, by which rule of the provider, "" for none.
    """

    def __init__(
        self,
        course: Course,
        heard: Heard,
        placed: Placed,
        stage: RecordedStage,
        recorder: Recorder,
        refused: tuple[str, str] = ("", ""),
    ) -> None:
        self._playing = Playing(course)
        self.status = self._playing.status
        self.headers: Headers = self._playing.headers
        self.streamed = self._playing.streamed
        self.place = placed.label
        self.rule, self._why = refused
        self._heard = heard
        self._placed = placed
        self._stage = stage
        self._recorder = recorder
        self._decoder = heard.codec.decoder() if heard.streamed else None
        self._left = len(heard.interaction.chunks)
        self._silent = heard.interaction.ended == "timeout"
        """Whether nothing comes behind the last chunk, not even an end."""
        self._usage: Usage | None = None
        self._breaks = heard.interaction.ended in ("torn", "reset")
        """Whether the connection breaks at the end, be the reply whole by then or not."""
        self._gone = cancelled(heard)
        """Whether the client went before the end: where that is missed, it is told once."""
        self._done = self._ended = False
        self._waiting = False
        stage.opened(placed, self._abandon)
        placed.given.message = heard.message
        if heard.answer is not None or heard.told is not None:
            stage.expect(placed)

    async def begin(self) -> None:
        """Wait for the head of the answer; Broken where there is none."""
        if self._heard.interaction.status is None and self._silent:
            self._stage.inject(self._placed)
        await self._wait(self._playing.begin())
        if not 200 <= self.status < 300:
            self._failed()

    def __aiter__(self) -> RecordedReply:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes; Broken where the connection breaks."""
        if not self._left and self._silent and not self._ended:
            self._stage.inject(self._placed)
        try:
            data = await self._wait(anext(self._playing))
        except StopAsyncIteration:
            self._failed()
            raise
        self._gave(data)
        return data

    def ready(self) -> None:
        """In a run each chunk is waited for."""

    async def aclose(self) -> None:
        """The client wants no more."""
        await self._playing.aclose()
        self._close("closed")

    async def _wait(self, work: Awaitable[T]) -> T:
        self._waiting = True
        try:
            return await work
        except asyncio.CancelledError:
            self._close("closed")
            raise
        except Broken:
            self._failed()
            raise
        finally:
            self._waiting = False

    def _gave(self, data: bytes) -> None:
        """Tell what a chunk says."""
        self._left -= 1
        if self._ended or self._done:
            return
        if self._decoder is None:
            if not self._left:
                self._said_whole()
            return
        try:
            for part in self._decoder.feed(data):
                self._say(part)
            self._whole(self._decoder.end())
        except Truncated as cut:
            if cut.told is not None and not self._left and self._gone:
                self._whole(cut.told)
        except (ProviderError, Garbled) as error:
            if self._placed.fault is None:  # the client left when it had read this
                told = ErrorFrame() if isinstance(error, ProviderError) else BadJson()
                self._placed = replace(self._placed, fault=told)
            self._failed()

    def _said_whole(self) -> None:
        """Tell what an answer says that is no stream."""
        answer = self._heard.answer
        if answer is None:
            self._failed()
            return
        for block in answer.message.content:
            if isinstance(block, Text):
                self._say(TextDelta(block.text))
            elif isinstance(block, Thinking):
                self._say(ThinkingDelta(block.text))
        self._usage = answer.usage
        self._whole(answer)

    def _say(self, part: ReplyPart) -> None:
        if isinstance(part, UsageReport):
            self._usage = part.usage
        elif isinstance(part, TextDelta) and part.text:
            self._recorder.record(Delta(self.place, "text", part.text))
        elif isinstance(part, ThinkingDelta) and part.text:
            self._recorder.record(Delta(self.place, "thinking", part.text))

    def _whole(self, answer: Answer) -> None:
        self._done = True
        self._stage.delivered(self._placed)
        if answer.stopped in _CUT_OFF:
            self._end("torn", f"the model was cut off: {answer.stopped}")
        elif not self._breaks:
            self._end("complete")

    def _failed(self) -> None:
        """It broke, it told of a failure, or it ended before it was whole; tell of it once."""
        if self._ended:
            if self._done and self._gone:  # it goes on, without what stands behind the end
                self._miss()
            return
        if self.rule:
            self._end("refused", self._why)
            return
        if self._placed.fault is None:
            self._miss()
            self._end("torn")
            return
        self._stage.inject(self._placed)
        self._placed.given.complete = False
        match neutral(self._placed.fault):
            case GenerateFails(message=message) | StreamFails(message=message):
                self._end("failed", message)
            case _:
                self._end("torn")

    def _miss(self) -> None:
        self._gone = False
        self._recorder.record(RequestMissed(_GONE.format(reply=self.place)))

    def _abandon(self) -> None:
        """The turn is over: a task that waits for a chunk is alive and ends the reply itself."""
        if not self._waiting:
            self._close("abandoned")

    def _close(self, unread: Literal["closed", "abandoned"]) -> None:
        if not self._ended:
            self._end("complete" if self._done else unread)

    def _end(
        self,
        end: Literal["complete", "failed", "torn", "closed", "abandoned", "refused"],
        error: str | None = None,
    ) -> None:
        self._ended = True
        message = self._placed.given.message if self._done and end != "torn" else None
        usage = None if self._usage == Usage() else self._usage  # who has not counted says zero
        self._stage.ended(self._placed, end, message, usage, error)
