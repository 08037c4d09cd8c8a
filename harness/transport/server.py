"""A server on this machine: its connections, their bytes as they are, and how they break."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from msgspec import Struct

from harness.core.errors import UsageError
from harness.core.wording import counted
from harness.transport import http1
from harness.transport.exchange import Break, Broken, Exchange
from harness.transport.http1 import CONTINUE, Malformed, Reader, Received, Sending, refusal
from harness.transport.journal import Ending, Journal, Record
from harness.wire.http import Request

Answer: TypeAlias = Callable[[Request], Awaitable[Exchange]]
"""Answers a request; Broken where the connection breaks before there is an answer."""

LOOPBACK = ("127.0.0.1", "::1")
"""The addresses that only this machine reaches: a fake provider is for nobody else."""
_LINGER = 1.0
"""How many seconds a client that was refused has to read why."""
_SETTLING = 20
"""How many rounds of the event loop an answer takes to its end, when its client has all of it."""
_TOGETHER = 64
"""How many pieces go out in one write, at most: behind each the server hears of its clients."""
_RESET = struct.pack("ii", 1, 0)
"""Linger for no time: closing resets the connection."""


class Limits(Struct, frozen=True):
    """What a server takes: connections at a time, requests in all, seconds in which a request must
    come whole, or a client read something, and the largest request.
    """

    connections: int = 256
    requests: int = 100_000
    idle: float = 120
    request: http1.Limits = http1.Limits()


USUAL = Limits()


class Server:
    """Answers requests on a socket of this machine; for one event loop, use it once.

    Each chunk of a stream goes out at once; chunks that come at once go out together, some in a
    write. A client that goes away is noticed between two writes, and its exchange is closed.
    `ended` is called whenever an answer is over.
    """

    def __init__(
        self,
        answer: Answer,
        journal: Journal,
        *,
        limits: Limits = USUAL,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.answer = answer
        self.journal = journal
        self.limits = limits
        self.ended = ended
        self.errors: list[Exception] = []
        """What broke in the code that answers: never a client's doing."""
        self.connections: set[Connection] = set()
        self._made = 0
        self._listener: asyncio.Server | None = None
        self.url = ""
        """Where it listens, such as ``http://127.0.0.1:8080``."""

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 is one that is free. UsageError where that cannot be, or `host` is no
        address of this machine alone.
        """
        if host not in LOOPBACK:
            raise UsageError(
                f"the address {host!r} is not one of {' and '.join(LOOPBACK)}: the server takes no "
                "requests from other machines"
            )
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(self._connection, host, port)
        except (OSError, OverflowError) as error:
            raise UsageError(f"port {port} of {host} cannot be had: {error}") from error
        bound = self._listener.sockets[0].getsockname()[1]
        self.url = f"http://[{host}]:{bound}" if ":" in host else f"http://{host}:{bound}"

    async def close(self, grace: float = 0) -> None:
        """Take no more requests, give the answers that are going out `grace` seconds to end, then
        cut them off. Raises what broke in the code that answers.
        """
        assert self._listener is not None
        self._listener.close()
        tasks = [each.task for each in self.connections if each.task is not None]
        for each in [*self.connections]:
            each.stop()
        await self.settle()
        if tasks and grace:
            await asyncio.wait(tasks, timeout=grace)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._listener.wait_closed()
        if self.errors:
            raise self.errors[0]

    async def settle(self) -> None:
        """Let what a client has read to its end, or left, come to its end here too."""
        for _round in range(_SETTLING):
            await asyncio.sleep(0)

    def _connection(self) -> Connection:
        self._made += 1
        return Connection(self, self._made)


class Connection(asyncio.Protocol):
    """One connection: a task answers its requests, one after the other."""

    transport: asyncio.Transport

    def __init__(self, server: Server, number: int) -> None:
        self.task: asyncio.Task[None] | None = None
        self._server = server
        self._number = number
        self._reader = Reader(server.limits.request)
        self._record: Record | None = None
        """What is being answered now."""
        self._waiting: asyncio.Future[bool] | None = None
        """Waits for bytes from the client, or for room to write; False: there will be none."""
        self._full = False
        self._over = False
        """Nothing is read any more."""

    # --- what asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(0)
        limits = self._server.limits
        self._server.connections.add(self)
        self.task = asyncio.get_running_loop().create_task(self._serve())
        if len(self._server.connections) > limits.connections:
            self._over = True
            most = counted(limits.connections, "connection")
            self._refuse(Malformed(503, f"there are {most} already, and no more are taken"))

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._over:
            return
        self._reader.feed(data)
        if self._record is None:
            self._wake(go_on=True)
        elif self._reader.held > self._server.limits.request.head:
            self._over = True  # who sends that much ahead of its turn is no client

    def eof_received(self) -> None:
        """The client has closed its side: it is gone."""
        self._gone()

    def connection_lost(self, _error: Exception | None) -> None:
        """There is no connection any more."""
        self._server.connections.discard(self)
        self._gone()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is written."""
        self._full = True

    def resume_writing(self) -> None:
        """All that was written is on its way."""
        self._full = False
        if self._record is not None:
            self._wake(go_on=True)

    # --- for the server

    def stop(self) -> None:
        """Take no more requests."""
        self._over = True
        if self._record is None:
            self._wake(go_on=False)

    # --- requests

    async def _serve(self) -> None:
        try:
            while (received := await self._next()) is not None:
                if not await self._answer(received):
                    break
        except Malformed as error:
            self._server.journal.malformed(self._number, error)
            self._refuse(error)
            await self._wait(_LINGER)  # else a client that still writes would not read why
        finally:
            self.transport.close()

    async def _next(self) -> Received | None:
        """The next request; None where there is none, Malformed where there is something else."""
        loop, limits = asyncio.get_running_loop(), self._server.limits
        deadline = loop.time() + limits.idle
        while not self._over:
            received = self._reader.take()
            if received is not None:
                if len(self._server.journal.records) >= limits.requests:
                    raise Malformed(
                        503, f"{limits.requests} requests were answered, and that is all"
                    )
                return received
            if self._reader.asks_to_continue():
                self.transport.write(CONTINUE)
            began = self._reader.begun
            if not await self._wait(deadline - loop.time()):
                if began and not self._over:
                    raise Malformed(408, f"a request has not come whole in {limits.idle:g} seconds")
                return None
            if not began:
                deadline = loop.time() + limits.idle
        return None

    async def _answer(self, received: Received) -> bool:
        """Answer a request; whether the connection can take another."""
        journal = self._server.journal
        record = self._record = journal.begin(self._number, received.request)
        ending: Ending = "whole"
        try:
            keep = await self._send(received, record)
        except Broken as error:
            ending, keep = error.how, False
            await self._break(error.how)
        except TimeoutError:
            ending, keep = "stalled", False
            self._reset()
        except asyncio.CancelledError:
            ending = "cut" if record.client_gone_at is None else "gone"
            self.transport.abort()
            raise
        except Exception as error:
            self._server.errors.append(error)
            ending, keep = "dropped", False
        finally:
            self._record = None
            journal.end(record, ending)
            self._server.ended()
        return keep

    async def _send(self, received: Received, record: Record) -> bool:
        exchange = await self._server.answer(received.request)
        sending = Sending(exchange, received)
        record.status, record.answered = exchange.status, exchange.headers
        record.place, record.rule = exchange.place, exchange.rule
        record.answered_at = self._server.journal.now()
        try:
            async for first in sending:
                piece = _together(first, sending)
                self.transport.write(piece)
                record.bytes += len(piece)
                record.frames = sending.frames
                if record.status >= 400 and sending.frames == 1:
                    self._server.journal.tell(record, piece)
                if self._full:
                    await self._room()
        finally:
            await exchange.aclose()
        return sending.keep

    async def _room(self) -> None:
        """Wait until all that was written is on its way; TimeoutError where it stays here."""
        while self._full:
            if not await self._wait(self._server.limits.idle):
                raise TimeoutError

    async def _break(self, how: Break) -> None:
        """Break the connection; what was written before goes out first."""
        if how in ("torn", "dropped"):
            self.transport.close()
            return
        with suppress(TimeoutError):
            await self._room()
        self._reset()

    def _reset(self) -> None:
        sock: socket.socket = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    def _refuse(self, error: Malformed) -> None:
        self._over = True
        self.transport.write(refusal(error))
        self.transport.write_eof()

    def _gone(self) -> None:
        self._over = True
        if self._record is None:
            self._wake(go_on=False)
        elif self.task is not None and self._record.client_gone_at is None:
            self._record.client_gone_at = self._server.journal.now()
            self.task.cancel()

    async def _wait(self, seconds: float) -> bool:
        """Wait to be woken; False where nothing comes, or not in time."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_later(seconds, self._wake)
        try:
            return await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def _wake(self, *, go_on: bool = False) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(go_on)


def _together(piece: bytes, sending: Sending) -> bytes:
    """A piece with those behind it that are there already."""
    pieces = [piece]
    while len(pieces) < _TOGETHER and (more := sending.ready()) is not None:
        pieces.append(more)
    return b"".join(pieces)
