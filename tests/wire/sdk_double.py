"""A provider in memory that a vendor's own library speaks to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import httpx2

from harness.core.json_text import Json, loads
from harness.wire import sse
from harness.wire.codec import QUIET, Answer, Asked, Codec, Failure, Noise
from harness.wire.http import Headers, Request, Response, headers

Framing = Callable[[list[bytes]], Sequence[bytes]]

FRAMINGS: dict[str, tuple[Noise, Framing]] = {
    "whole": (QUIET, lambda frames: [b"".join(frames)]),
    "per frame": (QUIET, list),
    "per byte": (QUIET, lambda frames: [bytes([byte]) for byte in b"".join(frames)]),
    "noisy": (Noise(obfuscation=True, pings=True, unknown=True), list),
    "comments": (QUIET, lambda frames: [sse.comment("still here") + each for each in frames]),
    "CRLF": (QUIET, lambda frames: [each.replace(b"\n", b"\r\n") for each in frames]),
}
"""Ways in which the same reply goes over the wire."""


class SdkDouble:
    """Answers what a library sends, and keeps what was sent and how it was read.

    `frames` gives the frames of a streamed reply; `judge` may refuse a request. What is in
    `instead` is answered first.
    """

    def __init__(
        self,
        codec: Codec,
        answer: Answer,
        frames: Callable[[Asked], Sequence[bytes]],
        *,
        noise: Noise = QUIET,
        framing: Framing = list,
        judge: Callable[[Request, Asked], Failure | None] = lambda _sent, _asked: None,
        read: Callable[[Request], Asked] | None = None,
    ) -> None:
        self.codec = codec
        self.answer = answer
        self.noise = noise
        self.instead: list[Response] = []
        self.sent: list[Request] = []
        self.asked: list[Asked] = []
        self._frames = frames
        self._framing = framing
        self._judge = judge
        self._read = read or codec.read

    @property
    def bodies(self) -> list[Json]:
        """The bodies of what was sent."""
        return [loads(each.body) for each in self.sent]

    def http(self) -> httpx2.Client:
        """What a library is to send through."""
        return httpx2.Client(transport=httpx2.MockTransport(self._now))

    def async_http(self) -> httpx2.AsyncClient:
        """What an asynchronous library is to send through."""
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._later))

    def _now(self, request: httpx2.Request) -> httpx2.Response:
        status, told, pieces = self._respond(request)
        return httpx2.Response(status, headers=list(told), content=iter(pieces))

    async def _later(self, request: httpx2.Request) -> httpx2.Response:
        async def content(pieces: Sequence[bytes]) -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        status, told, pieces = self._respond(request)
        return httpx2.Response(status, headers=list(told), content=content(pieces))

    def _respond(self, given: httpx2.Request) -> tuple[int, Headers, Sequence[bytes]]:
        pairs = headers(given.headers.multi_items())
        request = Request(given.method, str(given.url), pairs, given.read())
        assert self.codec.is_for(request)
        asked = self._read(request)
        self.sent.append(request)
        self.asked.append(asked)
        refused = self._judge(request, asked)
        told = self.codec.headers("req_1")
        if refused is not None:
            response = self.codec.failure(refused)
        elif self.instead:
            response = self.instead.pop(0)
        elif asked.stream:
            kind = ("content-type", self.codec.stream_type())
            return 200, (kind, *told), self._framing(list(self._frames(asked)))
        else:
            response = self.codec.answer(asked, self.answer, self.noise)
        own = {name for name, _ in response.headers}
        more = [each for each in told if each[0] not in own]
        return response.status, (*response.headers, *more), [response.body]
