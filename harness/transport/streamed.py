"""A scripted reply as the body of an answer, frame by frame."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from msgspec.structs import replace

from harness.core.ports import ProviderFailed
from harness.core.reply import ReplyDone, ReplyFailed, ReplyInterrupted, TextDelta, ThinkingDelta
from harness.fakes.model import ReplyStream
from harness.fakes.wire_faults import BadJson, BadUtf8, CutAt, CutLine, ErrorFrame
from harness.transport.exchange import Broken
from harness.transport.faults import (
    BARE,
    altering,
    broken_by,
    failure_of,
    flattened,
    framing_for,
    spoiled,
)
from harness.transport.framing import PLAIN, Framing, dressed, pieces
from harness.wire.codec import QUIET, Answer, Asked, Codec, Encoder
from harness.wire.http import Headers

_SAID = (TextDelta, ThinkingDelta)


class Streamed:
    """A reply as it comes, with what goes wrong with it on the wire.

    The reply is over for the script with the frame that tells why the model stopped: what comes
    behind it may be lost.
    """

    streamed = True
    status = 200
    rule = ""

    def __init__(
        self,
        headers: Headers,
        codec: Codec,
        asked: Asked,
        answer: Answer,
        stream: ReplyStream,
        framing: Framing,
    ) -> None:
        self.headers: Headers = (("content-type", codec.stream_type()), *headers)
        self.place = stream.placed.label
        self._stream = stream
        self._fault = stream.placed.fault
        self._framing = framing_for(self._fault, framing)
        self._alter = altering(self._fault)
        self._as_they_are = self._alter is None and replace(self._framing, noise=QUIET) == PLAIN
        """Whether each frame is a chunk, as nearly always."""
        self._left = self._fault.byte if isinstance(self._fault, CutAt) else None
        """How many bytes may still go out, where they are counted."""
        self._answer = answer
        self._encoder: Encoder = codec.encoder(asked, answer, cut=stream.cut, noise=framing.noise)
        self._chunks: deque[tuple[bytes, bool]] = deque()
        """Chunks that are to go out, each with whether the script's part ends with it."""
        self._broken: Broken | None = None
        """How the connection breaks behind the chunks."""
        self._over = False
        self._behind_end = False
        self._unsaid = False
        """Whether a part of the reply has been waited for that none of the chunks has ended yet."""

    def __aiter__(self) -> Streamed:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes; Broken where the connection breaks."""
        waited = False
        while not self._chunks:
            if self._over:
                await self._stream.aclose()
                if self._broken is not None:
                    raise self._broken
                raise StopAsyncIteration
            waited = True
            await self._more()
            if self._framing.size is None:
                while self._goes_on:
                    await self._more()
                self._chunks = _as_one(self._chunks)
        chunk, ends = self._chunks.popleft()
        if self._left is not None:
            chunk, ends = await self._counted(chunk, ends=ends)
            if not chunk:
                return await anext(self)
        if ends and not self._unsaid:
            await anext(self._stream)
        elif not waited:
            await self._moment()
        if ends and self._unsaid:
            self._unsaid = False
            self._stream.take()
        return chunk

    def ready(self) -> bytes | None:
        """The next chunk of text where it is there already, b"" where there are no more; None
        where only waiting tells.
        """
        if not self._as_they_are or self._left is not None:
            return None  # how the reply is cut is to be seen
        stream = self._stream
        while not self._chunks:
            if self._over and self._broken is None:
                return b""
            if not stream.ready or not isinstance(stream.next_part(), _SAID):
                return None
            frames = [*self._encoder.part(stream.take())]
            if len(frames) == 1:
                return frames[0]
            self._put(frames)
        chunk, ends = self._chunks[0]
        if ends:
            return None
        self._chunks.popleft()
        return chunk

    @property
    def _goes_on(self) -> bool:
        """Whether more comes before the end signal goes out."""
        return not self._over and not self._behind_end

    async def aclose(self) -> None:
        """The client wants no more."""
        self._over = True
        self._chunks.clear()
        await self._stream.aclose()

    async def _more(self) -> None:
        """Wait for the next part, and write it."""
        part = self._stream.next_part()
        if isinstance(part, ReplyDone | ReplyInterrupted):
            self._behind_end = self._stream.breaks_after_end
            self._put([*self._encoder.part(ReplyDone(self._answer.message))], ends=True)
            if not self._behind_end:
                self._put([*self._encoder.end()])
                self._over = True
            return
        try:
            part = await self._stream.coming()
        except StopAsyncIteration:
            self._over = True
            self._spoil()
            return
        except ProviderFailed as error:
            self._over = True
            if not self._spoil():
                self._broken = broken_by(self._fault, str(error))
            return
        if isinstance(part, ReplyFailed):
            self._over = True
            self._stream.take()
            self._fail(part.message)
            return
        frames = [*self._encoder.part(part)]
        self._unsaid = bool(frames) and self._framing.size is not None
        if not self._unsaid:
            self._stream.take()
        self._put(frames, ends=self._unsaid)

    def _fail(self, message: str) -> None:
        """Write what tells of a failure."""
        frames = [*self._encoder.failure(failure_of(self._fault, message))]
        if isinstance(self._fault, ErrorFrame) and self._fault.flat:
            frames = [flattened(frame) for frame in frames]
        self._put(frames)

    def _spoil(self) -> bool:
        """Write the frame that would come next, spoiled; False where the fault spoils none."""
        fault = self._fault
        if not isinstance(fault, BadJson | BadUtf8 | CutLine):
            return False
        held = self._stream.held_part()
        # A client that reads a bad byte all the same must not take it for the end signal.
        bare = held is None or (isinstance(fault, BadUtf8) and isinstance(held, ReplyDone))
        frames = [] if bare or held is None else [*self._encoder.part(held)]
        self._put([spoiled(fault, frames[0] if frames else BARE)])
        return True

    async def _counted(self, chunk: bytes, *, ends: bool) -> tuple[bytes, bool]:
        """What of a chunk still goes out; the reply is cut where that is not all."""
        fault = self._fault
        assert isinstance(fault, CutAt)
        assert self._left is not None
        if len(chunk) <= self._left:
            self._left -= len(chunk)
            return chunk, ends
        self._over = True
        self._chunks.clear()
        if ends and chunk[self._left - 1 :] == b"\r\n":  # the carriage return alone ends a line
            await anext(self._stream)
        if fault.how == "end":
            self._stream.break_off("torn")
        else:
            self._broken = broken_by(fault, f"the connection broke after {fault.byte} bytes")
            self._stream.break_off("failed", str(self._broken))
        return chunk[: self._left], False

    def _put(self, frames: list[bytes], *, ends: bool = False) -> None:
        chunks = frames if self._as_they_are else [*self._cut(frames)]
        self._chunks += [(chunk, ends and at == len(chunks)) for at, chunk in enumerate(chunks, 1)]

    def _cut(self, frames: list[bytes]) -> Iterator[bytes]:
        for frame in frames:
            for each in [frame] if self._alter is None else self._alter(frame):
                yield from pieces(dressed(each, self._framing), self._framing.size or 0)

    async def _moment(self) -> None:
        """Chunks come one by one: others go on between two of them."""
        try:
            await self._stream.moment()
        except asyncio.CancelledError:
            await self.aclose()
            raise


def _as_one(chunks: deque[tuple[bytes, bool]]) -> deque[tuple[bytes, bool]]:
    """All chunks as one, which ends what any of them does."""
    whole = b"".join([chunk for chunk, _ends in chunks])
    return deque([(whole, any(ends for _chunk, ends in chunks))] if whole else [])
