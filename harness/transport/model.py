"""A provider's model at the neutral port, over HTTP: in a run, or for real.

    from harness.transport.model import HttpModel
    from harness.wire.anthropic.codec import Anthropic

    model = HttpModel(Anthropic(), "https://api.anthropic.com", key=os.environ["ANTHROPIC_API_KEY"])
    async for part in await model.generate(request):
        ...

Each request is sent once. Who wants it sent again asks again, or uses a client that does; an error
before the first part of a reply says by its status whether that may help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx2

from harness.core.json_text import Json
from harness.core.messages import ModelRequest
from harness.core.ports import ProviderFailed
from harness.core.reply import ReplyPart
from harness.transport.reading import Reading, broken, sayable
from harness.wire import http
from harness.wire.codec import Asked, Codec

TIMEOUT = httpx2.Timeout(600, connect=10)
"""How long a client of ours waits, in seconds: for a connection, for the next bytes of a reply."""

_STREAMED: Mapping[str, Mapping[str, Json]] = {
    "openai_chat": {"stream_options": {"include_usage": True}},
}
"""What a protocol wants to be asked for, that a streamed reply may tell what it cost."""


class _Asking:
    """What asynchronous and synchronous models have in common: requests written, errors told."""

    def __init__(
        self,
        codec: Codec,
        base: str,
        key: str = "",
        *,
        stream: bool = True,
        options: Mapping[str, Json] | None = None,
    ) -> None:
        self._codec = codec
        self._base = base.rstrip("/")
        self._key = key
        self._stream = stream
        self._options = {**(_STREAMED.get(codec.name, {}) if stream else {}), **(options or {})}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._codec.name} at {self._base}>"

    def _request(
        self, client: httpx2.Client | httpx2.AsyncClient, request: ModelRequest
    ) -> httpx2.Request:
        asked = Asked(sayable(request, self._codec), self._stream, self._options)
        written = self._codec.write(asked, base=self._base, key=self._key)
        sent = list(written.headers)
        return client.build_request(written.method, written.url, headers=sent, content=written.body)

    def _reading(self, response: httpx2.Response) -> Reading:
        headers = http.headers(response.headers.multi_items())
        return Reading(self._codec, response.status_code, headers, self._key)

    def _broke(self, error: httpx2.HTTPError) -> ProviderFailed:
        return ProviderFailed(broken(self._codec, error, self._key))


class HttpModel(_Asking):
    """A model of a provider; implements `harness.core.ports.Model`.

    `base` is the provider's address without the path of the protocol, `key` what its requests are
    signed with, which no error shows. `client` sends them, an own one where none is given, which
    `aclose` closes. Without `stream`, a reply comes whole. `options` go into each body as they are.
    """

    def __init__(
        self,
        codec: Codec,
        base: str,
        key: str = "",
        client: httpx2.AsyncClient | None = None,
        *,
        stream: bool = True,
        options: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(codec, base, key, stream=stream, options=options)
        self._owned = client is None
        self._client = client or httpx2.AsyncClient(timeout=TIMEOUT)

    async def generate(self, request: ModelRequest) -> HttpReply:
        """Ask for a reply; ProviderFailed, with the status, where the request comes to nothing."""
        broke: ProviderFailed
        try:
            response = await self._client.send(self._request(self._client, request), stream=True)
        except httpx2.HTTPError as error:
            broke = self._broke(error)
        else:
            reply = HttpReply(response, self._reading(response))
            if reply.refused:
                await reply.read()
            return reply
        raise broke  # out here, since the library's error holds the request with its key

    async def aclose(self) -> None:
        """Close the client, where it is the model's own."""
        if self._owned:
            await self._client.aclose()


class HttpReply:
    """One reply as it comes: an asynchronous iterator over its parts, with `aclose`.

    The end of the iteration without a part that ends the reply says that the stream broke off
    without an error: the reply is none.
    """

    def __init__(self, response: httpx2.Response, reading: Reading) -> None:
        self._response = response
        self._chunks: Any = response.aiter_bytes()
        self._reading = reading
        self._over = False

    def __aiter__(self) -> HttpReply:
        return self

    @property
    def refused(self) -> bool:
        """Whether the status says that there is no reply."""
        return self._reading.refused

    async def __anext__(self) -> ReplyPart:
        while not self._reading.parts:
            if self._over:
                raise StopAsyncIteration
            await self._more()
        return self._reading.parts.popleft()

    async def read(self) -> None:
        """Read all of it; raises ProviderFailed where there is no reply."""
        while not self._over:
            await self._more()

    async def aclose(self) -> None:
        """Read no more; the connection is closed or free for another request."""
        self._over = True
        self._reading.parts.clear()
        await self._leave()

    async def _leave(self) -> None:
        if not self._chunks.ag_running:  # else another task reads, and finds the response closed
            await self._chunks.aclose()
        await self._response.aclose()

    async def _more(self) -> None:
        broke: ProviderFailed | None = None
        try:
            chunk: bytes | None = await anext(self._chunks, None)
            if chunk is None:
                self._over = True
                self._reading.end()
            else:
                self._over = self._reading.feed(chunk)
        except httpx2.HTTPError as error:
            broke = self._reading.broke(error)
        except BaseException:
            await self.aclose()
            raise
        if self._over or broke is not None:
            self._over = True
            await self._leave()
        if broke is not None:
            raise broke


class SyncHttpModel(_Asking):
    """The same for synchronous loops; implements `harness.core.ports.SyncModel`."""

    def __init__(
        self,
        codec: Codec,
        base: str,
        key: str = "",
        client: httpx2.Client | None = None,
        *,
        stream: bool = True,
        options: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(codec, base, key, stream=stream, options=options)
        self._owned = client is None
        self._client = client or httpx2.Client(timeout=TIMEOUT)

    def generate(self, request: ModelRequest) -> SyncHttpReply:
        """Ask for a reply; ProviderFailed, with the status, where the request comes to nothing."""
        broke: ProviderFailed
        try:
            response = self._client.send(self._request(self._client, request), stream=True)
        except httpx2.HTTPError as error:
            broke = self._broke(error)
        else:
            reply = SyncHttpReply(response, self._reading(response))
            if reply.refused:
                reply.read()
            return reply
        raise broke

    def close(self) -> None:
        """Close the client, where it is the model's own."""
        if self._owned:
            self._client.close()


class SyncHttpReply:
    """One reply as it comes: an iterator over its parts, with `close`; see `HttpReply`."""

    def __init__(self, response: httpx2.Response, reading: Reading) -> None:
        self._response = response
        self._chunks: Iterator[bytes] = response.iter_bytes()
        self._reading = reading
        self._over = False

    def __iter__(self) -> SyncHttpReply:
        return self

    @property
    def refused(self) -> bool:
        """Whether the status says that there is no reply."""
        return self._reading.refused

    def __next__(self) -> ReplyPart:
        while not self._reading.parts:
            if self._over:
                raise StopIteration
            self._more()
        return self._reading.parts.popleft()

    def read(self) -> None:
        """Read all of it; raises ProviderFailed where there is no reply."""
        while not self._over:
            self._more()

    def close(self) -> None:
        """Read no more; the connection is closed or free for another request."""
        self._over = True
        self._reading.parts.clear()
        self._response.close()

    def _more(self) -> None:
        broke: ProviderFailed | None = None
        try:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._over = True
                self._reading.end()
            else:
                self._over = self._reading.feed(chunk)
        except httpx2.HTTPError as error:
            broke = self._reading.broke(error)
        except BaseException:
            self.close()
            raise
        if self._over or broke is not None:
            self._over = True
            self._response.close()
        if broke is not None:
            raise broke
