"""Connections in memory: clients that speak whole HTTP/1.1 with a provider, without sockets.

The client's library makes its connections here and does all the rest as it would: it writes its
requests as bytes, parses heads and chunks, keeps connections for the next request. What is written
is answered when the client reads, in the client's own task, so that nothing runs beside it. Whether
a connection is refused is only known with a request, so that this is told by the first read.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Self, TypeVar

from harness.sim.actors import current
from harness.transport.exchange import Broken, Exchange
from harness.transport.http1 import CONTINUE, Malformed, Reader, Sending, refusal
from harness.transport.in_memory import Answer, Call
from harness.transport.libraries import error_of, library

T = TypeVar("T")


class Connection:
    """One connection: the bytes that a client writes, and those that it reads in return.

    `errors` is the module that has the errors of the client's library.
    """

    def __init__(self, answer: Answer, errors: Any) -> None:
        self._answer = answer
        self._errors = errors
        self._reader = Reader()
        self._sending: Sending | None = None
        self._exchange: Exchange | None = None
        self._waiting = bytearray()
        """Bytes that the client can read now."""
        self._closed = False
        """Whether nothing comes behind those."""

    @property
    def ended(self) -> bool:
        """Whether a client that reads now finds the end."""
        return self._closed and not self._waiting

    def write(self, data: bytes) -> None:
        """Take what a client has written; the library's WriteError where nobody reads any more."""
        if self._closed:
            raise self._errors.WriteError("Broken pipe")
        self._reader.feed(data)

    async def read(self, most: int, limit: float | None) -> bytes:
        """What comes next, up to `most` bytes; none at the end. `limit` is in seconds."""
        try:
            async with asyncio.timeout(limit):
                while not self._waiting and not self._closed:
                    await self._more()
        except TimeoutError as error:
            raise self._errors.ReadTimeout("timed out") from error
        data = bytes(self._waiting[:most])
        del self._waiting[:most]
        return data

    async def close(self) -> None:
        """The client closes the connection, which takes no time."""
        self._closed = True
        self._waiting.clear()
        await self._leave()

    async def _more(self) -> None:
        """Have more to read, or the end."""
        try:
            if self._sending is None:
                await self._begin()
            else:
                self._waiting += await anext(self._sending)
        except StopAsyncIteration:
            assert self._sending is not None, "only an answer has an end"
            self._closed = not self._sending.keep
            self._sending = self._exchange = None
        except Broken as error:
            self._closed = True
            await self._leave()
            if error.how in ("refused", "reset"):
                raise error_of(error, self._errors) from error

    async def _begin(self) -> None:
        """Answer the next request, when all of it is there."""
        try:
            received = self._reader.take()
        except Malformed as error:
            self._waiting += refusal(error)
            self._closed = True
            return
        if received is not None:
            self._exchange = await self._answer(received.request)
            self._sending = Sending(self._exchange, received)
        elif self._reader.asks_to_continue():
            self._waiting += CONTINUE
        else:
            await asyncio.Event().wait()  # both wait for the other

    async def _leave(self) -> None:
        exchange, self._exchange, self._sending = self._exchange, None, None
        if exchange is not None:
            await exchange.aclose()


class AsyncStream:
    """A connection as asynchronous clients use it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """What comes next."""
        return await self._connection.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109
        """Send bytes, which takes no time."""
        self._connection.write(buffer)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def start_tls(self, *_how: Any, **_more: Any) -> AsyncStream:
        """Nobody listens, so that nothing needs to be encrypted."""
        return self

    def get_extra_info(self, info: str) -> Any:
        """What a pool asks of a connection that waits for its next request."""
        return self._connection.ended if info == "is_readable" else None


class SyncStream:
    """A connection as synchronous clients use it; they wait by `call`."""

    def __init__(self, connection: Connection, call: Call) -> None:
        self._connection = connection
        self._call = call

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What comes next."""
        return self._call(lambda: self._connection.read(max_bytes, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        """Send bytes, which takes no time."""
        self._connection.write(buffer)

    def close(self) -> None:
        """Close the connection; this takes no time, and no cancel can come between."""
        at_once(self._connection.close())

    def start_tls(self, *_how: Any, **_more: Any) -> SyncStream:
        """Nobody listens, so that nothing needs to be encrypted."""
        return self

    def get_extra_info(self, info: str) -> Any:
        """What a pool asks of a connection that waits for its next request."""
        return self._connection.ended if info == "is_readable" else None


class AsyncBackend:
    """What an asynchronous client's library makes its connections with."""

    def __init__(self, answer: Answer, errors: Any) -> None:
        self._answer = answer
        self._errors = errors

    async def connect_tcp(self, *_where: Any, **_how: Any) -> AsyncStream:
        """A connection, whatever the host; it takes no time to make."""
        return AsyncStream(Connection(self._answer, self._errors))

    async def sleep(self, seconds: float) -> None:
        """Wait before another try."""
        await asyncio.sleep(seconds)


class SyncBackend:
    """The same for synchronous clients."""

    def __init__(self, answer: Answer, errors: Any, call: Call) -> None:
        self._answer = answer
        self._errors = errors
        self._call = call

    def connect_tcp(self, *_where: Any, **_how: Any) -> SyncStream:
        """A connection, whatever the host; it takes no time to make."""
        return SyncStream(Connection(self._answer, self._errors), self._call)

    def sleep(self, seconds: float) -> None:
        """Wait before another try."""
        self._call(lambda: asyncio.sleep(seconds))


class OneStep:
    """A synchronous pool for which a request goes out in one step, as at other levels: a stop comes
    before it, or while the answer is waited for. The pool's locks are no places between.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def handle_request(self, request: Any) -> Any:
        """Send a request, and wait for the head of its answer."""
        with _as_one(1):
            return self._pool.handle_request(request)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


@contextmanager
def _as_one(inside: int) -> Iterator[None]:
    """Whether (1) what a thread of a run does here is one step of it, or (0) it may wait."""
    actor = current()
    if actor is None:
        yield
        return
    before, actor.inside = actor.inside, inside
    try:
        yield
    finally:
        actor.inside = before


def _in_turn(call: Call) -> Call:
    """Wait as a thread of the run does, also in the middle of a request."""

    def wait(work: Callable[[], Awaitable[T]], /) -> T:
        with _as_one(0):
            return call(work)

    return wait


def client(name: str, answer: Answer, base_url: str, call: Call | None = None) -> Any:
    """A client of a library that reaches the provider over connections in memory.

    With `call` it is a synchronous one. Connections are kept however long nobody uses them.
    """
    found = library(name)
    module, core = found.client, found.core
    kept = {"max_keepalive_connections": 20, "keepalive_expiry": None}
    transport: Any
    if call is None:
        transport = module.AsyncHTTPTransport(verify=_no_tls(), trust_env=False)
        backend = AsyncBackend(answer, core)
        transport._pool = core.AsyncConnectionPool(network_backend=backend, **kept)
        return module.AsyncClient(transport=transport, base_url=base_url, trust_env=False)
    transport = module.HTTPTransport(verify=_no_tls(), trust_env=False)
    blocking = SyncBackend(answer, core, _in_turn(call))
    transport._pool = OneStep(core.ConnectionPool(network_backend=blocking, **kept))
    return module.Client(transport=transport, base_url=base_url, trust_env=False)


def in_memory(pool: Any) -> bool:
    """Whether a pool of a library makes its connections here."""
    return isinstance(pool._network_backend, AsyncBackend | SyncBackend)


def at_once(work: Awaitable[None]) -> None:
    """Do what takes no time."""
    with suppress(StopIteration):
        work.__await__().__next__()


@cache
def _no_tls() -> ssl.SSLContext:
    """What no connection here uses; reading the certificates of the system takes long."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
