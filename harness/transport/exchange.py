"""One answer on its way to a client, whoever carries it."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from harness.wire.http import Headers, Response

Break: TypeAlias = Literal["refused", "dropped", "reset", "torn"]
"""How a connection breaks: none is made, it is closed before an answer, it is reset, or it is
closed before the body has ended.
"""


class Broken(Exception):
    """The connection breaks here; what carries the answer makes of it what its client knows."""

    def __init__(self, how: Break, message: str) -> None:
        self.how: Break = how
        super().__init__(message)


class Exchange(Protocol):
    """An answer: its head, and the chunks of its body as an asynchronous iterator.

    `streamed` says that the length of the body is not known before its end; then each chunk goes
    out by itself, when it comes. `place` is the place in the script that answers, and `rule` what a
    provider refuses the request for, "" for none. The iterator raises Broken where the connection
    breaks.
    """

    status: int
    headers: Headers
    streamed: bool
    place: str
    rule: str

    def __aiter__(self) -> Exchange:
        """The chunks."""
        ...

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes."""
        ...

    def ready(self) -> bytes | None:
        """The next chunk where it is there already, b"" where there are no more; None where only
        waiting tells. Who sends to real clients reads so what goes out together: nobody else goes
        on between two chunks.
        """
        ...

    async def aclose(self) -> None:
        """The client has gone, or wants no more; takes no time, harmless after the end."""
        ...


class Whole:
    """An answer that is there at once."""

    streamed = False

    def __init__(self, response: Response, place: str = "", rule: str = "") -> None:
        self.status = response.status
        self.headers = response.headers
        self.place = place
        self.rule = rule
        self._body = [response.body] if response.body else []

    def __aiter__(self) -> Whole:
        return self

    async def __anext__(self) -> bytes:
        """The body, once."""
        if not self._body:
            raise StopAsyncIteration
        return self._body.pop()

    def ready(self) -> None:
        """What is whole comes at once."""

    async def aclose(self) -> None:
        """There is nothing to close."""


class Breaking:
    """An answer whose connection breaks behind what there is of its body."""

    streamed = False

    def __init__(self, whole: Whole, broken: Broken) -> None:
        self.status = whole.status
        self.headers = whole.headers
        self.place = whole.place
        self.rule = whole.rule
        self._whole = whole
        self._broken = broken

    def __aiter__(self) -> Breaking:
        return self

    async def __anext__(self) -> bytes:
        """What there is, once; then Broken."""
        async for piece in self._whole:
            return piece
        raise self._broken

    def ready(self) -> None:
        """What is whole comes at once."""

    async def aclose(self) -> None:
        """There is nothing to close."""
