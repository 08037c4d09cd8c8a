"""Clients that reach a provider without a network: what their library sends through is ours.

Chunks come when the provider has them, and each wait is as long as the client's own time limit for
a read allows, on the clock of the loop that runs it. A connection takes no time to make, and there
are as many as are wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeVar

from harness.transport.exchange import Broken, Exchange
from harness.transport.libraries import error_of, know_machine, library
from harness.wire.http import Request, headers

T = TypeVar("T")
Answer: TypeAlias = Callable[[Request], Awaitable[Exchange]]
"""What answers requests, as `Provider.answer` does."""


class Call(Protocol):
    """Does what is asynchronous for code that is not, and waits for it."""

    def __call__(self, work: Callable[[], Awaitable[T]], /) -> T:
        """Do `work`, and give what it gives; raises what it raises."""
        ...


class Carrier:
    """Carries one request and its answer, with the errors and the time limit of a client.

    `errors` is the module that has the errors; `limits` are the client's limits in seconds, by
    what they are for.
    """

    def __init__(self, errors: Any, limits: dict[str, float | None]) -> None:
        self._errors = errors
        self._limit = limits.get("read")

    async def fetch(self, answer: Answer, request: Request) -> Exchange:
        """Ask, and wait until there is an answer."""
        return await self._wait(answer(request))

    async def chunk(self, exchange: Exchange) -> bytes:
        """Wait for the next chunk; StopAsyncIteration at the end."""
        return await self._wait(exchange.__anext__())

    async def _wait(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._limit):
                return await work
        except Broken as error:
            raise error_of(error, self._errors) from error
        except TimeoutError as error:
            raise self._errors.ReadTimeout("timed out") from error


class AsyncBody:
    """The body of an answer, chunk by chunk."""

    def __init__(self, carrier: Carrier, exchange: Exchange) -> None:
        self._carrier = carrier
        self._exchange = exchange

    def __aiter__(self) -> AsyncBody:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes."""
        return await self._carrier.chunk(self._exchange)

    async def aclose(self) -> None:
        """The client wants no more."""
        await self._exchange.aclose()


class SyncBody:
    """The same for synchronous clients."""

    def __init__(self, carrier: Carrier, exchange: Exchange, call: Call) -> None:
        self._carrier = carrier
        self._exchange = exchange
        self._call = call

    def __iter__(self) -> SyncBody:
        return self

    def __next__(self) -> bytes:
        """The next chunk, when it comes."""
        try:
            return self._call(lambda: self._carrier.chunk(self._exchange))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        """The client wants no more; this takes no time, and no cancel can come between."""
        with suppress(StopIteration):
            self._exchange.aclose().send(None)


class AsyncTransport:
    """What an asynchronous client of a library sends through."""

    def __init__(self, name: str, answer: Answer) -> None:
        self._library = library(name)
        self._answer = answer

    async def handle_async_request(self, request: Any) -> Any:
        """Answer a request of the library with a response of the library."""
        carrier = Carrier(self._library.client, limits_of(request))
        read = Request(
            request.method, str(request.url), headers(request.headers), await request.aread()
        )
        exchange = await carrier.fetch(self._answer, read)
        stream = native(AsyncBody, self._library.client.AsyncByteStream)(carrier, exchange)
        return response_of(self._library.client, exchange, stream)


class SyncTransport:
    """What a synchronous client of a library sends through; it waits by `call`."""

    def __init__(self, name: str, answer: Answer, call: Call) -> None:
        self._library = library(name)
        self._answer = answer
        self._call = call

    def handle_request(self, request: Any) -> Any:
        """Answer a request of the library with a response of the library."""
        carrier = Carrier(self._library.client, limits_of(request))
        read = Request(request.method, str(request.url), headers(request.headers), request.read())
        exchange = self._call(lambda: carrier.fetch(self._answer, read))
        kind = native(SyncBody, self._library.client.SyncByteStream)
        stream = kind(carrier, exchange, self._call)
        return response_of(self._library.client, exchange, stream)


def client(name: str, answer: Answer, base_url: str, call: Call | None = None) -> Any:
    """A client of a library whose requests are answered here, whatever their host.

    With `call` it is a synchronous one. It reads no settings of the environment, and makes
    nothing that it would need to speak TLS.
    """
    module = library(name).client
    know_machine()
    if call is None:
        transport = native(AsyncTransport, module.AsyncBaseTransport)(name, answer)
        return module.AsyncClient(transport=transport, base_url=base_url, trust_env=False)
    transport = native(SyncTransport, module.BaseTransport)(name, answer, call)
    return module.Client(transport=transport, base_url=base_url, trust_env=False)


def limits_of(request: Any) -> dict[str, float | None]:
    """The client's time limits for a request, in seconds."""
    limits: dict[str, float | None] = request.extensions.get("timeout", {})
    return limits


def response_of(module: Any, exchange: Exchange, stream: Any) -> Any:
    """An answer as a response of a library, whose body is to come."""
    head = [(name.encode("ascii"), value.encode("latin-1")) for name, value in exchange.headers]
    return module.Response(
        exchange.status,
        headers=head,
        stream=stream,
        extensions={"http_version": b"HTTP/1.1"},
    )


@cache
def native(ours: type, theirs: type) -> Any:
    """Our class as one of a library's own kind, for which it looks."""
    return type(ours.__name__, (ours, theirs), {})
