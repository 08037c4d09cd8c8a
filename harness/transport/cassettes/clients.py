"""Stand-ins for the methods by which `httpx` and `httpx2` send requests: they play, or record.

Transports that send nothing, as those of tests and of applications in process, stay as they are.
A client gets what its library would give it: the same classes, errors and chunks. What is played
without its times takes none, and needs no event loop.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias

from harness.sim.boundary import simulation
from harness.transport.cassettes.form import Interaction
from harness.transport.cassettes.playback import AsyncPlayed, Playback, SyncPlayed, pause
from harness.transport.cassettes.playing import Course
from harness.transport.cassettes.recording import AsyncTee, SyncTee, Take
from harness.transport.in_memory import limits_of, native
from harness.transport.libraries import CORES
from harness.wire.http import Headers, Request, headers

Patch: TypeAlias = tuple[Any, str, Callable[..., Any]]
"""A class, the name of one of its methods, and what stands in for it."""

_asking: ContextVar[bool] = ContextVar("asking", default=False)
"""Whether a request is on its way through a stand-in: what it goes through on that is the same
request.
"""


class Desk(Protocol):
    """Decides what becomes of requests."""

    def ignores(self, host: str) -> bool:
        """Whether requests to a host are nothing to it."""
        ...

    def find(self, request: Request) -> Course | None:
        """What to play; None where the request is to go out, CassetteMiss where it is not to."""
        ...

    def begin(self, request: Request) -> Take:
        """What records a request that goes out now."""
        ...

    def now(self) -> int:
        """Nanoseconds since the session began."""
        ...


def patches(desk: Desk) -> tuple[Patch, ...]:
    """What stands in for the methods of both libraries, as far as they are loaded."""
    loaded = [sys.modules[name] for name in CORES if name in sys.modules]
    made: list[Patch] = []
    for module in loaded:
        kinds = module.AsyncHTTPTransport, module.HTTPTransport
        made.append((kinds[0], "handle_async_request", _asynchronous(module, desk)))
        made.append((kinds[1], "handle_request", _synchronous(module, desk)))
    return tuple(made)


def _asynchronous(module: Any, desk: Desk) -> Callable[..., Any]:
    before = module.AsyncHTTPTransport.handle_async_request
    tee = native(AsyncTee, module.AsyncByteStream)
    body = native(AsyncPlayed, module.AsyncByteStream)

    async def handle_async_request(transport: Any, request: Any) -> Any:
        if _passes(desk, request):
            return await before(transport, request)
        asked = _read(request, await request.aread())
        found = desk.find(asked)
        if found is not None:
            playback = Playback(found, module, limits_of(request), desk.now)
            for seconds in playback.head():
                await pause(seconds)
            return _response(module, found.given, body(playback))
        take = desk.begin(asked)
        token = _asking.set(True)
        try:
            response = await before(transport, request)
        except BaseException as error:
            take.failed(error)
            raise
        finally:
            _asking.reset(token)
        return _teed(response, tee, take)

    return handle_async_request


def _synchronous(module: Any, desk: Desk) -> Callable[..., Any]:
    before = module.HTTPTransport.handle_request
    tee = native(SyncTee, module.SyncByteStream)
    body = native(SyncPlayed, module.SyncByteStream)

    def handle_request(transport: Any, request: Any) -> Any:
        if _passes(desk, request):
            return before(transport, request)
        asked = _read(request, request.read())
        found = desk.find(asked)
        if found is not None:
            playback = Playback(found, module, limits_of(request), desk.now)
            for seconds in playback.head():
                time.sleep(seconds)
            return _response(module, found.given, body(playback))
        take = desk.begin(asked)
        token = _asking.set(True)
        try:
            response = before(transport, request)
        except BaseException as error:
            take.failed(error)
            raise
        finally:
            _asking.reset(token)
        return _teed(response, tee, take)

    return handle_request


def _passes(desk: Desk, request: Any) -> bool:
    """Whether a request goes on to where it went before; in a run with a scripted provider the
    script answers.
    """
    if _asking.get() or desk.ignores(request.url.host):
        return True
    loop = simulation()
    return loop is not None and loop.routes is not None


def _read(request: Any, body: bytes) -> Request:
    return Request(request.method, str(request.url), _headers(request.headers), body)


def _teed(response: Any, tee: Callable[[Any, Take], Any], take: Take) -> Any:
    """A response of a library whose body is recorded on its way."""
    reason = response.extensions.get("reason_phrase", b"").decode("ascii", "replace")
    take.answered(response.status_code, reason, _headers(response.headers))
    if response.is_closed:  # whoever made it had its body whole
        take.came(b"".join(response.stream))
        take.over("complete")
    else:
        response.stream = tee(response.stream, take)
    return response


def _response(module: Any, found: Interaction, stream: Any) -> Any:
    """A recorded answer as a response of a library."""
    extensions: dict[str, Any] = {"http_version": b"HTTP/1.1"}
    if found.reason:
        extensions["reason_phrase"] = found.reason.encode("ascii", "replace")
    head = [(name.encode("latin-1"), _raw(value)) for name, value in found.headers]
    return module.Response(found.status, headers=head, stream=stream, extensions=extensions)


def _raw(value: str) -> bytes:
    """The bytes of a header; others keep what is more than latin-1 as the text that it is."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace")


def _headers(given: Any) -> Headers:
    """Headers of a library, each as it came: latin-1 has a character for each byte."""
    return headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in given.raw])
