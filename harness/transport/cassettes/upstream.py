"""The way to real providers: requests that come here go on to them, and their answers come back.

Served on this machine it is a reverse proxy, which programs in any language can be pointed at. What
a client asks the provider `openai` for begins with ``/openai`` here, and so on; a request without
that goes by its protocol. Keys pass from the client to the provider, and stay nowhere.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

import httpx2

from harness.core.errors import HarnessError
from harness.core.json_text import Json
from harness.transport import redact
from harness.transport.exchange import Break, Broken, Exchange, Whole
from harness.transport.homes import Home, home_of
from harness.transport.model import TIMEOUT
from harness.wire import codec_for
from harness.wire.http import Headers, Request, Response, first, json_response, should_retry

_OF_CONNECTIONS = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that say something of one connection only."""
_OWN = frozenset({"host", "content-length", "accept-encoding", "expect"})
"""Headers of a request that are said anew."""
_PLAIN = (("accept-encoding", "identity"),)
"""Bodies that are not compressed come in the pieces in which the provider sends them, and can be
read in a cassette.
"""


class Upstream:
    """Asks the providers at `homes` by `client`; `told` hears, in words, of what went wrong.

    What the client raises as an error of ours, as a cassette does that does not have what is asked
    for, is answered as an error that is not to be tried again, and kept in `errors`.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        homes: Sequence[Home],
        told: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self.errors: list[HarnessError] = []
        self._client = client
        self._homes = homes
        self._told = told

    async def answer(self, request: Request) -> Exchange:
        """A provider's answer to a request of a client of ours; see `send`."""
        sent = forwarded(request, self._homes)
        return Whole(_unknown(request, self._homes)) if sent is None else await self.send(sent)

    async def send(self, request: Request) -> Exchange:
        """The answer to a request as it goes out; Broken where the connection breaks, TimeoutError
        where nothing comes.
        """
        try:
            response = await self._client.send(_native(request), stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            self._told(f"{request.method} {redact.text(request.url)}: {_said(error)}")
            raise _broken(error, within=False) from error
        except HarnessError as error:
            self.errors.append(error)
            told: dict[str, Json] = {"error": {"message": str(error)}}
            return Whole(json_response(404, told, should_retry(flag=False)))
        return Forwarded(response)


class Forwarded:
    """A provider's answer, whose chunks go on as they come."""

    place = ""
    rule = ""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        raw = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in response.headers.raw
        ]
        self.headers = end_to_end(tuple(raw))
        kind = first(self.headers, "content-type") or ""
        sized = first(self.headers, "content-length") is not None or self.status in (204, 304)
        self.streamed = not sized or kind.startswith("text/event-stream")
        if self.streamed:
            self.headers = tuple([each for each in self.headers if each[0] != "content-length"])
        self._response = response
        self._chunks: AsyncGenerator[bytes, None] = response.aiter_raw()

    def __aiter__(self) -> Forwarded:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes."""
        try:
            return await anext(self._chunks)
        except httpx2.HTTPError as error:
            raise _broken(error, within=True) from error

    def ready(self) -> None:
        """Only waiting tells."""

    async def aclose(self) -> None:
        """The client wants no more: neither does the provider's connection stay."""
        await self._chunks.aclose()
        await self._response.aclose()


def outgoing() -> httpx2.AsyncClient:
    """A client that reaches providers, as many at a time as are asked for."""
    return httpx2.AsyncClient(timeout=TIMEOUT, limits=httpx2.Limits(max_connections=None))


def proxied(url: str, homes: Sequence[Home]) -> dict[str, str]:
    """The variables that point clients to the server at `url`, instead of to the providers."""
    return {home.variable: f"{url}/{home.name}{home.under}" for home in homes}


def forwarded(request: Request, homes: Sequence[Home]) -> Request | None:
    """A request to a proxy as it goes on; None where it is for no provider that is known."""
    path = request.path
    for home in homes:
        if path == f"/{home.name}" or path.startswith(f"/{home.name}/"):
            path = path.removeprefix(f"/{home.name}")
            break
    else:
        codec = codec_for(request)
        if codec is None:
            return None
        home = home_of(codec.name, homes)
    query = request.url.partition("#")[0].partition("?")[2]
    if f"{path}/".startswith(f"{home.under}/"):  # what only begins like it could name another host
        path = path.removeprefix(home.under)
    url = home.base + path + (f"?{query}" if query else "")
    kept = [each for each in end_to_end(request.headers) if each[0] not in _OWN]
    return Request(request.method, url, (*kept, *_PLAIN), request.body)


def end_to_end(headers: Headers) -> Headers:
    """Headers without those that say something of one connection only.

    >>> end_to_end((("connection", "close, x-hop"), ("x-hop", "1"), ("x-id", "2")))
    (('x-id', '2'),)
    """
    named = ",".join([value for name, value in headers if name == "connection"]).lower()
    hops = _OF_CONNECTIONS | {word.strip() for word in named.split(",")}
    return tuple([each for each in headers if each[0] not in hops])


def _native(request: Request) -> httpx2.Request:
    """A request with the very bytes of its headers, of whatever characters."""
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers]
    return httpx2.Request(
        request.method,
        request.url,
        headers=headers,
        content=request.body or None,
        extensions={"timeout": TIMEOUT.as_dict()},
    )


def _broken(error: httpx2.HTTPError | httpx2.InvalidURL, *, within: bool) -> Broken | TimeoutError:
    """How a connection broke, before there was an answer or within one."""
    how: Break
    match error:
        case (
            httpx2.ConnectError()
            | httpx2.ConnectTimeout()
            | httpx2.ProxyError()
            | httpx2.InvalidURL()
        ):
            how = "refused"
        case httpx2.TimeoutException():
            return TimeoutError(_said(error))
        case httpx2.RemoteProtocolError():
            how = "torn" if within else "dropped"
        case _:
            how = "reset"
    return Broken(how, _said(error))


def _said(error: Exception) -> str:
    return redact.text(str(error)) or type(error).__name__


def _unknown(request: Request, homes: Sequence[Home]) -> Response:
    known = ", ".join([f"/{home.name}{home.under}" for home in homes])
    message = (
        f"{request.method} {redact.path(request)} is for no provider that is known here; give the "
        f"client an address of this server that ends with one of {known}"
    )
    return json_response(404, {"error": {"message": message}}, should_retry(flag=False))
