"""The fake model: answers each request with the reply that the script has for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from harness.core.choices import Choices
from harness.core.errors import RequestRefused
from harness.core.events import Delta, GeneratorAbandoned
from harness.core.messages import Message, ModelRequest, Usage
from harness.core.ports import ProviderFailed
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.core.trace import Recorder
from harness.fakes.latency import latency
from harness.fakes.parts import choose_chunking, cut, stream_parts
from harness.fakes.place import Placed, Stage
from harness.fakes.script import GenerateFails, Hang, StreamFails

NS = 1_000_000_000

Refuse = Callable[[tuple[Message, ...]], str | None]
"""Why a provider would refuse these messages, or None."""


class FakeModel:
    """A model at the neutral port; implements `harness.core.ports.Model`.

    Every request and every part of a reply is recorded at the instant it happens, whatever the
    agent makes of it.
    """

    def __init__(
        self, stage: Stage, recorder: Recorder, choices: Choices, refuse: Refuse | None = None
    ) -> None:
        self._stage = stage
        self._recorder = recorder
        self._choices = choices
        self._refuse = refuse

    async def generate(self, request: ModelRequest, refused: str | None = None) -> ReplyStream:
        """Answer `request` after the time that its reply takes; `refused` is why a provider would
        not, where who asks knows that already.

        ScriptError where the script has no reply for it, RequestRefused where the history is not
        valid, ProviderFailed where the scenario says so.
        """
        placed = self._stage.locate(request)
        self._recorder.record_request(placed.conversation, placed.label, request)
        reason = refused
        if reason is None and self._refuse is not None:
            reason = self._refuse(tuple(request.messages))
        takes, chunking = placed.reply.takes, 0
        if not self._choices.plain:
            spans = [reply.takes for reply in placed.given.line.replies]
            takes = latency(self._choices, f"model {placed.label}", spans, placed.step - 1)
            chunking = choose_chunking(self._choices, placed.label, placed.reply, placed.fault)
        stream = ReplyStream(placed, self._stage, self._recorder, chunking)
        await stream.begin(takes, reason)
        return stream


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
        "_fault_at",
        "_hanging",
        "_over",
        "_parts",
        "_placed",
        "_recorder",
        "_stage",
        "_usage",
        "_waiting",
    )

    def __init__(self, placed: Placed, stage: Stage, recorder: Recorder, chunking: int) -> None:
        self._placed = placed
        self._stage = stage
        self._recorder = recorder
        self._parts, self._fault_at = stream_parts(
            placed.reply, placed.given.message, chunking, placed.fault
        )
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

    def cut(self, text: str) -> Sequence[str]:
        """Cut a text as those of the reply are cut."""
        return cut(text, self._chunking, self._placed.reply.chunk)

    def next_part(self) -> ReplyPart | None:
        """The part that comes next, unless something goes wrong first; None where none comes."""
        if self._over or self._at == self._fault_at or self._at == len(self._parts):
            return None
        return self._parts[self._at]

    async def begin(self, takes: int, refused: str | None) -> None:
        """Wait until the reply begins; raise where the request comes to nothing."""
        fault = self._placed.fault if refused is None else None
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
            raise ProviderFailed(fault.message)

    async def __anext__(self) -> ReplyPart:
        if not self._over:
            await self._wait(asyncio.sleep(self._each if self._at and not self._ended else 0))
        if self._over:
            self._stage.closed(self._placed)
            raise StopAsyncIteration
        if self._at == self._fault_at and self._hanging is None:  # a second reader may hang too
            self._stage.inject(self._placed)
        if self._at == len(self._parts):
            await self._stop()
            raise StopAsyncIteration
        part = self._parts[self._at]
        self._at += 1
        self._give(part)
        return part

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
            case ReplyFailed(message=message):
                self._end("failed", message)
                self._stage.opened(self._placed, self._left_open)
        last = self._at == len(self._parts)
        if last and self._done and self._fault_at < self._at and not self._ended:
            self._end("complete")

    async def _stop(self) -> None:
        """What comes after the last part."""
        fault = self._placed.fault if self._at == self._fault_at else None
        if isinstance(fault, Hang):
            await self._until_closed()
        elif isinstance(fault, StreamFails):
            self._end("failed", fault.message)
            raise ProviderFailed(fault.message)
        elif not self._ended:
            self._end("torn")
        self._over = True

    async def _until_closed(self) -> None:
        self._hanging = self._hanging or asyncio.Event()
        await self._wait(self._hanging.wait())

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
    ) -> None:
        self._ended = True
        self._over = self._over or end != "complete"
        message = self._placed.given.message if self._done else None
        self._stage.ended(self._placed, end, message, self._usage, error)
