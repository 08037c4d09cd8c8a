"""A provider whose replies are scripted: requests as bytes in, answers as bytes out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from hashlib import blake2b

from msgspec.structs import replace

from harness.core.errors import NoPlace, RequestRefused, ScriptError
from harness.core.messages import Message, Thinking
from harness.core.ports import ProviderFailed
from harness.core.reply import ReplyDone, ReplyFailed
from harness.fakes.model import FakeModel, ReplyStream
from harness.fakes.place import Placed, Stage
from harness.transport.exchange import Broken, Exchange, Whole
from harness.transport.framing import PLAIN, Framing, dressed, pieces
from harness.wire import CODECS, asked_by, codec_for, refused_by, remember
from harness.wire.codec import Answer, Asked, Codec, Encoder, Failure, Unreadable
from harness.wire.http import Headers, Request, Response, json_response, should_retry
from harness.wire.strict.rule import Issued


class Provider:
    """Answers requests of every protocol from one script, as a real provider would.

    `model` gives the replies and records what happens; it must not refuse anything by itself.
    `now` gives seconds since 1970. With `strict`, a history that the provider would refuse gets
    the provider's own error; with `pedantic`, also by rules for which there is little evidence.
    """

    def __init__(
        self,
        stage: Stage,
        model: FakeModel,
        now: Callable[[], float],
        *,
        strict: bool = True,
        pedantic: bool = False,
        framing: Framing = PLAIN,
    ) -> None:
        self._stage = stage
        self._model = model
        self._now = now
        self._strict = strict
        self._pedantic = pedantic
        self._framing = framing
        self._issued = {codec.name: Issued() for codec in CODECS}
        self._count = 0

    async def answer(self, request: Request) -> Exchange:
        """Answer a request; Broken where the connection breaks before there is an answer."""
        self._count += 1
        codec = codec_for(request)
        if codec is None:
            return Whole(self._unknown(request))
        issued = self._issued[codec.name]
        try:
            asked = asked_by(codec, request, issued)
        except Unreadable as error:
            return self._whole(codec, codec.failure(error.failure))
        refused = None
        if self._strict:
            refused = refused_by(codec.name, request, issued, pedantic=self._pedantic)
        told = None if refused is None else refused.failure
        try:
            stream = await self._model.generate(
                asked.request, None if told is None else told.message
            )
        except RequestRefused as error:
            failure = told or Failure(400, str(error))
            rule = "" if refused is None else refused.rule.id
            return self._whole(codec, codec.failure(failure), rule=rule)
        except ScriptError as error:
            # Who asks again gets the same error.
            failure = Failure(400, str(error), headers=should_retry(flag=False))
            return self._whole(codec, codec.failure(failure))
        except ProviderFailed as error:
            failure = Failure(500, str(error), headers=should_retry(flag=False))
            return self._whole(codec, codec.failure(failure))
        placed = stream.placed
        answer = self._answer_of(asked, placed)
        remember(codec, request, asked, answer, issued)
        if asked.stream:
            return Streamed(self._headers(codec), codec, asked, answer, stream, self._framing)
        return await self._at_once(codec, asked, answer, stream)

    def _answer_of(self, asked: Asked, placed: Placed) -> Answer:
        reply = placed.reply
        message = _signed(placed.given.message, placed.given.place)
        stopped = "calls" if reply.calls else "end"
        name = f"{placed.label}-{_short(placed.label)}"
        return Answer(
            message,
            reply.usage,
            stopped,  # type: ignore[arg-type]
            id=name,
            model=asked.request.model,
            created=int(self._now()),
        )

    async def _at_once(
        self, codec: Codec, asked: Asked, answer: Answer, stream: ReplyStream
    ) -> Exchange:
        """The whole reply, when all of it is there; one that breaks off breaks the connection."""
        place = stream.placed.label
        done = False
        try:
            async for part in stream:
                done = done or isinstance(part, ReplyDone)
                if isinstance(part, ReplyFailed):
                    await stream.aclose()
                    failure = Failure(500, part.message, headers=should_retry(flag=False))
                    return self._whole(codec, codec.failure(failure), place)
        except ProviderFailed as error:
            raise Broken("reset", str(error)) from error
        if not done:
            raise Broken("dropped", "the reply broke off")
        response = codec.answer(asked, answer, self._framing.noise)
        return self._whole(codec, response, place)

    def _whole(self, codec: Codec, response: Response, place: str = "", rule: str = "") -> Whole:
        more = self._headers(codec)
        had = {name for name, _value in response.headers}
        headers = (*response.headers, *[each for each in more if each[0] not in had])
        return Whole(replace(response, headers=headers), place, rule)

    def _headers(self, codec: Codec) -> Headers:
        return codec.headers(f"req_{self._count:06}", now=self._now())

    def _unknown(self, request: Request) -> Response:
        known = ", ".join([codec.name for codec in CODECS])
        error = NoPlace(
            f"{request.method} {request.path} is no request of a protocol that is known ({known}); "
            "see the address that the client was given"
        )
        self._stage.mismatch(error)
        return json_response(404, {"error": {"message": str(error)}}, should_retry(flag=False))


class Streamed:
    """A reply as it comes, frame by frame.

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
        self._framing = framing
        self._encoder: Encoder = codec.encoder(asked, answer, cut=stream.cut, noise=framing.noise)
        self._chunks: deque[tuple[bytes, bool]] = deque()
        """Chunks that are to go out, each with whether the script's part ends with it."""
        self._over = False

    def __aiter__(self) -> Streamed:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes."""
        waited = False
        while not self._chunks:
            if self._over:
                await self._stream.aclose()
                raise StopAsyncIteration
            waited = True
            await self._more()
            while self._framing.size is None and not self._over:
                await self._more()
        chunk, ends = self._chunks.popleft()
        if ends:
            await anext(self._stream)
        elif not waited:
            await self._moment()
        return chunk

    async def aclose(self) -> None:
        """The client wants no more."""
        self._over = True
        self._chunks.clear()
        await self._stream.aclose()

    async def _more(self) -> None:
        """Wait for the next part, and write it."""
        part = self._stream.next_part()
        if isinstance(part, ReplyDone):
            self._put([*self._encoder.part(part)], ends=True)
            self._put([*self._encoder.end()])
            self._over = True
            return
        try:
            part = await anext(self._stream)
        except StopAsyncIteration:
            self._over = True
            return
        except ProviderFailed as error:
            raise Broken("reset", str(error)) from error
        if isinstance(part, ReplyFailed):
            self._put([*self._encoder.failure(Failure(500, part.message))])
            self._over = True
            return
        self._put([*self._encoder.part(part)])

    def _put(self, frames: list[bytes], *, ends: bool = False) -> None:
        chunks = [*self._cut(frames)]
        new = [(chunk, ends and at == len(chunks)) for at, chunk in enumerate(chunks, 1)]
        if self._framing.size is None:
            new = _as_one([*self._chunks, *new])
            self._chunks.clear()
        self._chunks += new

    def _cut(self, frames: list[bytes]) -> Iterator[bytes]:
        for frame in frames:
            yield from pieces(dressed(frame, self._framing), self._framing.size or 0)

    async def _moment(self) -> None:
        """Chunks come one by one: others go on between two of them."""
        try:
            await self._stream.moment()
        except asyncio.CancelledError:
            await self.aclose()
            raise


def _as_one(chunks: list[tuple[bytes, bool]]) -> list[tuple[bytes, bool]]:
    """All chunks as one, which ends what any of them does."""
    whole = b"".join([chunk for chunk, _ends in chunks])
    return [(whole, any(ends for _chunk, ends in chunks))] if whole else []


def _signed(message: Message, place: str) -> Message:
    """The message with a signature on all reasoning, since a provider signs whatever it thinks."""
    content = [
        replace(block, signature=f"sig_{_short(f'{place}:{at}')}")
        if isinstance(block, Thinking) and block.signature is None
        else block
        for at, block in enumerate(message.content)
    ]
    return replace(message, content=tuple(content))


def _short(text: str) -> str:
    return blake2b(text.encode(), digest_size=9).hexdigest()
