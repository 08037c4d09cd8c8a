"""Interactions recorded while they go on: the client gets each chunk when it comes.

Nothing of what passes is changed, neither bytes nor errors; what is kept of it is as it came, at
the times at which it came, up to how it ended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from harness.transport.cassettes.decoding import MOST, Codings
from harness.transport.cassettes.form import Chunk, Ended, Interaction
from harness.transport.exchange import Broken, Exchange
from harness.transport.in_memory import Answer
from harness.wire import codec_for
from harness.wire.codec import Garbled, ProviderError
from harness.wire.http import Headers, Request, first

_BEFORE: Final[dict[str, Ended]] = {
    "TimeoutException": "timeout",
    "ConnectError": "refused",
    "ProxyError": "refused",
    "NetworkError": "reset",
    "RemoteProtocolError": "dropped",
}
"""What a client's error says of a connection before there is an answer, by its class or a class
that it is made of; other errors are the client's own, and nothing went out.
"""

_AFTER: Final[dict[str, Ended]] = {
    "TimeoutException": "timeout",
    "NetworkError": "reset",
    "RemoteProtocolError": "torn",
}
"""The same for the body of an answer."""

_BODILESS: Final = (204, 304)
"""Statuses whose answers have no body."""


class Take:
    """One interaction while it is recorded.

    It is kept once, at its first end: `keep` gets it. `now` gives nanoseconds since the session
    began. Nothing of it waits, so any thread and any task may tell of what came.
    """

    def __init__(
        self, request: Request, keep: Callable[[Interaction], None], now: Callable[[], int]
    ) -> None:
        self._request = request
        self._keep = keep
        self._now = now
        self._begun = now()
        self._codec = codec_for(request)
        self._status: int | None = None
        self._reason = ""
        self._headers: Headers = ()
        self._head_at = 0
        self._codings: Codings | None = None
        self._size = 0
        self._raw: list[Chunk] = []
        self._undone: list[Chunk] = []
        self._over = False

    def answered(self, status: int, reason: str, headers: Headers) -> None:
        """The head of an answer is there."""
        self._head_at = self._passed()
        self._status = status
        self._reason = reason
        self._headers = headers
        named = [value for name, value in headers if name == "content-encoding"]
        self._codings = Codings(",".join(named)) if named else None

    def came(self, data: bytes) -> None:
        """A chunk of the body has come. Of more than can be kept there is what came before, as if
        the client had left.
        """
        if self._over or not data:
            return
        self._size += len(data)
        if self._size > MOST:
            self.over("cancelled")
            return
        at = self._passed()
        self._raw.append(Chunk(at, data))
        if self._codings is not None and (undone := self._codings.feed(data)):
            self._undone.append(Chunk(at, undone))

    def failed(self, error: BaseException) -> None:
        """The client is told of an error instead of what it waited for."""
        if isinstance(error, Broken):
            self.over(error.how)
        elif isinstance(error, TimeoutError):
            self.over("timeout")
        elif not isinstance(error, Exception):
            self.left()
        else:
            known = _BEFORE if self._status is None else _AFTER
            named = [known[each.__name__] for each in type(error).__mro__ if each.__name__ in known]
            if named:
                self.over(named[0])
            elif self._status is not None:
                self.left()
            self._over = True

    def left(self) -> None:
        """The client wants no more. Where it has had the whole reply, that is a good end: clients
        do not wait for the end of a stream whose last frame they know.
        """
        if not self._over:
            self.over("complete" if self._whole() else "cancelled", seen=False)

    def over(self, ended: Ended, *, seen: bool = True) -> None:
        """It has ended so; what is told of it after that is not kept. Without `seen`, only the
        client's side of the end is known.
        """
        if self._over:
            return
        self._over = True
        headers, chunks = self._kept(whole=seen and ended == "complete")
        self._keep(
            Interaction(
                request=self._request,
                protocol="" if self._codec is None else self._codec.name,
                begun=self._begun,
                status=self._status,
                reason=self._reason,
                headers=headers,
                chunks=tuple(chunks),
                head_at=self._head_at,
                ended=ended,
                ended_at=self._passed(),
            )
        )

    def _passed(self) -> int:
        return self._now() - self._begun

    def _kept(self, *, whole: bool) -> tuple[Headers, list[Chunk]]:
        """The headers and the chunks to keep: without codings, where that loses nothing. `whole`
        says that the end of the body was there.
        """
        dropped = {"transfer-encoding"}
        length: int | None = None
        chunks = self._raw
        if self._raw and self._codings is not None and self._codings.undone(whole=whole):
            chunks = self._undone
            dropped.add("content-encoding")
            if whole:
                length = sum(len(chunk.data) for chunk in chunks)
            else:
                dropped.add("content-length")  # nobody knows how long it would have been
        headers = [
            (name, str(length) if name == "content-length" and length is not None else value)
            for name, value in self._headers
            if name not in dropped
        ]
        return tuple(headers), chunks

    def _whole(self) -> bool:
        """Whether all of the answer was there, as far as its protocol tells."""
        if self._status is None:
            return False
        if self._request.method == "HEAD" or self._status in _BODILESS:
            return True
        length = first(self._headers, "content-length")
        if length is not None:
            return length == str(self._size)
        return 200 <= self._status < 300 and self._said_all()

    def _said_all(self) -> bool:
        """Whether the frames of a streamed reply came up to the one that ends it."""
        if self._codec is None:
            return False
        decoder = self._codec.decoder()
        _headers, chunks = self._kept(whole=False)
        try:
            for chunk in chunks:
                decoder.feed(chunk.data)
            decoder.end()
        except ProviderError:
            return True  # no client reads on behind that
        except (Garbled, ValueError):
            return False
        return True


class SyncTee:
    """The body of an answer, on its way to a synchronous client."""

    def __init__(self, stream: Any, take: Take) -> None:
        self._stream = stream
        self._take = take

    def __iter__(self) -> Iterator[bytes]:
        try:
            for data in self._stream:
                self._take.came(data)
                yield data
        except BaseException as error:
            self._take.failed(error)
            raise
        self._take.over("complete")

    def close(self) -> None:
        """The client wants no more."""
        self._take.left()
        self._stream.close()


class AsyncTee:
    """The same for asynchronous clients."""

    def __init__(self, stream: Any, take: Take) -> None:
        self._stream = stream
        self._take = take

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._stream:
                self._take.came(data)
                yield data
        except BaseException as error:
            self._take.failed(error)
            raise
        self._take.over("complete")

    async def aclose(self) -> None:
        """The client wants no more."""
        self._take.left()
        await self._stream.aclose()


def recorded(answer: Answer, keep: Callable[[Interaction], None], now: Callable[[], int]) -> Answer:
    """An answer that is recorded on its way: `keep` gets each interaction when it has ended.

    They come in the order of their ends; `begun` has the order in which they were asked for.
    """

    async def ask(request: Request) -> Exchange:
        take = Take(_whole(request), keep, now)
        try:
            exchange = await answer(request)
        except BaseException as error:
            take.failed(error)
            raise
        take.answered(exchange.status, "", exchange.headers)
        return RecordedExchange(exchange, take)

    return ask


def _whole(request: Request) -> Request:
    """A request with its whole address: over a connection goes only what is behind the host."""
    host = request.header("host")
    if host is None or not request.url.startswith("/"):
        return request
    return replace(request, url=f"http://{host}{request.url}")


class RecordedExchange:
    """An answer that is recorded on its way, whoever carries it."""

    def __init__(self, exchange: Exchange, take: Take) -> None:
        self.status = exchange.status
        self.headers = exchange.headers
        self.streamed = exchange.streamed
        self.place = exchange.place
        self.rule = exchange.rule
        self._exchange = exchange
        self._take = take

    def __aiter__(self) -> RecordedExchange:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes."""
        try:
            data = await self._exchange.__anext__()
        except StopAsyncIteration:
            self._take.over("complete")
            raise
        except BaseException as error:
            self._take.failed(error)
            raise
        self._take.came(data)
        return data

    def ready(self) -> bytes | None:
        """The next chunk where it is there already."""
        data = self._exchange.ready()
        if data:
            self._take.came(data)
        elif data is not None:
            self._take.over("complete")
        return data

    async def aclose(self) -> None:
        """The client has gone, or wants no more."""
        self._take.left()
        await self._exchange.aclose()
