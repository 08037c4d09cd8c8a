"""The fake model: answers each request with the reply that the script has for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from msgspec.structs import replace

from harness.core.choices import Choices
from harness.core.errors import RequestRefused
from harness.core.events import Delta, GeneratorAbandoned, Received
from harness.core.messages import Message, ModelRequest, Thinking, Usage
from harness.core.ports import ProviderFailed
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.core.trace import Recorder
from harness.fakes.latency import latency
from harness.fakes.neutral import HARMLESS, neutral
from harness.fakes.parts import choose_chunking, cut, signed, stream_parts
from harness.fakes.place import Placed, Stage
from harness.fakes.script import DoneTwice, Fault, GenerateFails, Hang, LateThinking, StreamFails
from harness.fakes.wire_faults import CutAt, Stall

NS = 1_000_000_000

Refuse = Callable[[tuple[Message, ...]], str | None]
"""Why a provider would refuse these messages, or None."""


class RequestFailed(ProviderFailed):
    """The script makes a request over HTTP fail: by which fault, and at which place."""

    def __init__(self, message: str, placed: Placed) -> None:
        super().__init__(message)
        self.placed = placed


class FakeModel:
    """A model at the neutral port; implements `harness.core.ports.Model`.

    Every request and every part of a reply is recorded at the instant it happens, whatever the
    agent makes of it. `search` are faults that a search may add to replies by itself.
    """

    def __init__(
        self,
        stage: Stage,
        recorder: Recorder,
        choices: Choices,
        refuse: Refuse | None = None,
        *,
        search: Sequence[Fault] = (),
    ) -> None:
        self._stage = stage
        self._recorder = recorder
        self.choices = choices
        self._refuse = refuse
        self._search = search

    async def generate(self, request: ModelRequest, came: Received | None = None) -> ReplyStream:
        """Answer `request` after the time that its reply takes.

        `came` says how it came, where that was over HTTP, and whether it is to be refused. Then
        who asks counts the bytes of the reply, and breaks it off where a fault on the wire says so;
        else that comes to what `neutral` makes of it. A reply over HTTP is signed.

        ScriptError where the script has no reply for it, RequestRefused where the history is not
        valid, ProviderFailed where the scenario says so, which over HTTP is a RequestFailed.
        """
        placed = self._faulty(self._stage.locate(request))
        self._recorder.record_request(placed.conversation, placed.label, request)
        reason = None
        if came is not None:
            self._recorder.record(replace(came, reply=placed.label))
            reason = came.message if came.rule is not None else None
        elif self._refuse is not None:
            reason = self._refuse(tuple(request.messages))
        takes, chunking = placed.reply.takes, 0
        if not self.choices.plain:
            spans = [reply.takes for reply in placed.given.line.replies]
            takes = latency(self.choices, f"model {placed.label}", spans, placed.step - 1)
            fault = neutral(placed.fault)
            chunking = choose_chunking(self.choices, placed.label, placed.reply, fault)
        stream = ReplyStream(placed, self._stage, self._recorder, chunking, wire=came is not None)
        await stream.begin(takes, reason)
        return stream

    def _faulty(self, placed: Placed) -> Placed:
        """The place with what a search makes go wrong there, where nothing else does."""
        if placed.fault is not None or not self._search or self.choices.plain:
            return placed
        chosen = self.choices.choose("fault", placed.label, len(self._search) + 1)
        return replace(placed, fault=self._search[chosen - 1]) if chosen else placed


class ReplyStream:
    """One reply as it comes: an async iterator over its parts, with `aclose`.

    Each part takes one suspension, and so does the end. A cancel that strikes while a part is
    awaited closes the stream, as it closes an async generator.
    """

    __slots__ = (
        "_at",
        "_chunking",
        "_done",
        "_each",
        "_ended",
        "_fault",
        "_fault_at",
        "_hanging",
        "_over",
        "_parts",
        "_placed",
        "_recorder",
        "_stage",
        "_stall_at",
        "_usage",
        "_waiting",
        "_wire",
        "message",
    )

    def __init__(
        self,
        placed: Placed,
        stage: Stage,
        recorder: Recorder,
        chunking: int,
        *,
        wire: bool = False,
    ) -> None:
        self._placed = placed
        self._stage = stage
        self._recorder = recorder
        given = placed.given
        self.message = signed(given.message, given.place) if wire else given.message
        """What the model means to say."""
        self._wire = wire
        counted = wire and isinstance(placed.fault, CutAt)
        self._fault = None if counted else neutral(placed.fault)
        self._parts, self._fault_at = stream_parts(
            placed.reply, self.message, chunking, self._fault
        )
        self._stall_at = self._fault.after if isinstance(self._fault, Stall) else -1
        self._each = placed.reply.each / NS
        self._chunking = chunking
        self._at = 0
        self._waiting = 0
        self._done = self._ended = self._over = False
        self._usage: Usage | None = None
        self._hanging: asyncio.Event | None = None
        stage.opened(placed, self._abandon)

    def __aiter__(self) -> ReplyStream:
        return self

    @property
    def placed(self) -> Placed:
        """The place in the script that answers."""
        return self._placed

    def sign(self, issued: Message) -> None:
        """Take the reasoning as a provider has issued it: protocols sign it, or cannot."""
        thought = [block for block in issued.content if isinstance(block, Thinking)]
        rest = [block for block in self.message.content if not isinstance(block, Thinking)]
        if len(issued.calls) < len(self.message.calls):  # the provider cannot say them: it stops
            end = ReplyInterrupted()
            self._parts = [end if isinstance(part, ReplyDone) else part for part in self._parts]
        self.message = Message("assistant", (*thought, *rest))

    def cut(self, text: str) -> Sequence[str]:
        """Cut a text as those of the reply are cut."""
        return cut(text, self._chunking, self._placed.reply.chunk)

    def next_part(self) -> ReplyPart | None:
        """The part that comes next, unless something goes wrong first; None where none comes."""
        if self._over or self._at == self._fault_at or self._at == len(self._parts):
            return None
        return self._parts[self._at]

    @property
    def ready(self) -> bool:
        """Whether the next part comes in no time, with nothing that goes wrong before it."""
        waits = (self._at and self._each) or self._at in (self._stall_at, self._fault_at)
        return not (waits or self._over or self._at == len(self._parts))

    def take(self) -> ReplyPart:
        """The next part, which is `ready`, without letting others go on: only for real time."""
        part = self._parts[self._at]
        self._at += 1
        self._give(part)
        return part

    @property
    def breaks_after_end(self) -> bool:
        """Whether something goes wrong right behind the part that comes next, the end signal."""
        late = isinstance(self._fault, DoneTwice | LateThinking)
        return self._fault_at == self._at + 1 and not late

    def held_part(self) -> ReplyPart | None:
        """The part in whose place something went wrong; None where that came after the last."""
        reply, message = self._placed.reply, self._placed.given.message
        parts, _never = stream_parts(reply, message, self._chunking, None)
        return parts[self._fault_at] if self._fault_at < len(parts) else None

    def break_off(self, end: Literal["failed", "torn"], error: str | None = None) -> None:
        """What carries the reply breaks it off here, by the fault that it was told of."""
        self._stage.inject(self._placed)
        if not self._ended:
            self._end(end, error)
        self._over = True

    async def begin(self, takes: int, refused: str | None) -> None:
        """Wait until the reply begins; raise where the request comes to nothing."""
        fault = self._fault if refused is None else None
        if isinstance(fault, Hang) and fault.after is None:
            self._stage.inject(self._placed)
            await self._until_closed()
        await self._wait(asyncio.sleep(takes / NS))
        if refused is not None:
            self._end("refused", refused)
            raise RequestRefused(refused)
        if isinstance(fault, GenerateFails):
            self._stage.inject(self._placed)
            self._end("failed", fault.message)
            if self._wire:
                raise RequestFailed(fault.message, self._placed)
            raise ProviderFailed(fault.message)
        if isinstance(self._placed.fault, HARMLESS):
            self._stage.inject(self._placed)

    async def __anext__(self) -> ReplyPart:
        await self.coming()
        return self.take()

    async def coming(self) -> ReplyPart:
        """Wait until a part comes, and leave it there; StopAsyncIteration where none comes."""
        if not self._over:
            if self._at == self._stall_at:
                await self._stall()
            await self._wait(asyncio.sleep(self._each if self._at and not self._ended else 0))
        if self._over:
            self._stage.closed(self._placed)
            raise StopAsyncIteration
        if self._at == self._fault_at and self._hanging is None:  # a second reader may hang too
            self._stage.inject(self._placed)
        if self._at == len(self._parts):
            await self._stop()
            raise StopAsyncIteration
        return self._parts[self._at]

    async def aclose(self) -> None:
        """Read no more; harmless where the stream has ended."""
        self._close()

    def _give(self, part: ReplyPart) -> None:
        match part:
            case TextDelta(text=text):
                self._recorder.record(Delta(self._placed.label, "text", text))
            case ThinkingDelta(text=text):
                self._recorder.record(Delta(self._placed.label, "thinking", text))
            case UsageReport(usage=usage):
                self._usage = usage
            case ReplyDone():
                if not self._done:
                    self._done = True
                    self._stage.delivered(self._placed)
            case ReplyInterrupted():
                self._stage.delivered(self._placed)
                reply = self._placed.reply
                # Over HTTP a reply that is cut off shows what it has asked for until then.
                asked = self.message if self._wire and reply.cut_off and reply.calls else None
                self._end("torn", f"the model was cut off: {reply.stop or 'filtered'}", asked)
            case ReplyFailed(message=message):
                self._end("failed", message)
                self._stage.opened(self._placed, self._left_open)
        last = self._at == len(self._parts)
        if last and self._done and self._fault_at < self._at and not self._ended:
            self._end("complete")

    async def _stop(self) -> None:
        """What comes after the last part."""
        fault = self._fault if self._at == self._fault_at else None
        if isinstance(fault, Hang):
            await self._until_closed()
        elif isinstance(fault, StreamFails):
            self._end("failed", fault.message)
            raise ProviderFailed(fault.message)
        elif not self._ended:
            self._end("torn")
        self._over = True

    async def _stall(self) -> None:
        assert isinstance(self._fault, Stall)
        self._stall_at = -1
        self._stage.inject(self._placed)
        await self._wait(asyncio.sleep(self._fault.takes / NS))

    async def _until_closed(self) -> None:
        self._hanging = self._hanging or asyncio.Event()
        await self._wait(self._hanging.wait())

    async def moment(self) -> None:
        """Let others go on, between two pieces of one part; who reads is still there."""
        await self._wait(asyncio.sleep(0))

    async def _wait(self, what: Awaitable[object]) -> None:
        self._waiting += 1
        try:
            await what
        except asyncio.CancelledError:
            self._close()
            raise
        finally:
            self._waiting -= 1

    def _abandon(self) -> None:
        """The turn is over: a task that waits for a part is alive and ends the reply itself."""
        if not self._waiting:
            self._close("abandoned")

    def _left_open(self) -> None:
        """The turn is over, and a stream that had said it failed is neither read on nor closed."""
        self._recorder.record(GeneratorAbandoned(f"of reply {self._placed.label}"))
        self._stage.closed(self._placed)

    def _close(self, unread: Literal["closed", "abandoned"] = "closed") -> None:
        self._over = True
        if not self._ended:
            self._end("complete" if self._done else unread)
        self._stage.closed(self._placed)
        if self._hanging is not None:
            self._hanging.set()

    def _end(
        self,
        end: Literal["complete", "failed", "torn", "closed", "abandoned", "refused"],
        error: str | None = None,
        asked: Message | None = None,
    ) -> None:
        self._ended = True
        self._over = self._over or end != "complete"
        message = self.message if self._done else asked
        self._stage.ended(self._placed, end, message, self._usage, error)
