"""Answers by hand: each chunk after a time, and connections that break."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from harness.transport.exchange import Break, Broken
from harness.wire.http import Request

ERRORS = {
    "refused": ("ConnectError", "All connection attempts failed"),
    "dropped": ("RemoteProtocolError", "Server disconnected without sending a response"),
    "reset": ("ReadError", "Connection reset by peer"),
    "torn": ("RemoteProtocolError", "peer closed connection without sending complete"),
}


class Slow:
    """An answer in pieces, each after a time; at last the connection may break."""

    status = 200
    headers = (("x-name", "value"),)
    streamed = True
    place = rule = ""

    def __init__(self, *pauses: float, breaks: Break | None = None) -> None:
        self.pauses = list(pauses)
        self.breaks = breaks
        self.closed = False

    def __aiter__(self) -> Slow:
        return self

    async def __anext__(self) -> bytes:
        if self.pauses:
            await asyncio.sleep(self.pauses.pop(0))
            return b"chunk"
        if self.breaks:
            raise Broken(self.breaks, "it breaks")
        raise StopAsyncIteration

    def ready(self) -> None:
        pass

    async def aclose(self) -> None:
        self.closed = True


def giving(exchange: Any, *, after: float = 0) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Any:
        await asyncio.sleep(after)
        if isinstance(exchange, Broken):
            raise exchange
        return exchange

    return answer
