"""Clients that an agent makes by itself: in a run, what they ask a provider goes to the run's own,
and outside of runs to who has asked for it.

Stand-ins for the methods by which `httpx` and `httpx2` hand a request to their connections see
every client, whenever and by whom it was made. What they take goes through respx, by its extension
point for other libraries. What is no request to a provider goes on to where it went before, and so
does what a test's own routes of respx have an answer for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial
from typing import Any, ClassVar

from harness.sim.boundary import simulation
from harness.sim.hold import kept
from harness.sim.swaps import Swap, Swaps
from harness.sim.when_loaded import swaps_of
from harness.transport import google
from harness.transport.in_memory import (
    Answer,
    AsyncBody,
    Call,
    Carrier,
    SyncBody,
    limits_of,
    response_of,
)
from harness.transport.libraries import CORES, Library, know_machine, library
from harness.transport.loopback import in_memory
from harness.wire import codec_for
from harness.wire.http import Request, headers

_METHODS = (
    ("_async.connection_pool", "AsyncConnectionPool", "handle_async_request"),
    ("_sync.connection_pool", "ConnectionPool", "handle_request"),
)
"""By what requests reach connections: module, class and method; those of proxies inherit it."""


class Routes:
    """Takes the requests of one run that are for a provider, whatever their host.

    `answering` gives what answers them, when it is first needed, and `call` waits where the client
    is synchronous. All that goes to the host of `base_url` is for the provider.
    """

    def __init__(self, answering: Callable[[], Answer], call: Call, base_url: str) -> None:
        self._answering = answering
        self._call = call
        self._host = base_url.partition("://")[2].encode("ascii")

    @cached_property
    def router(self) -> Any:
        """A router of respx; its route ``provider`` has the calls."""
        import respx

        router = respx.Router(assert_all_called=False)
        router.route(name="provider")
        return router

    def takes(self, request: Any) -> bool:
        """Whether a request of httpcore is for a provider."""
        url = request.url
        asked = Request(request.method.decode("ascii"), url.target.decode("ascii"))
        return url.host == self._host or codec_for(asked) is not None

    async def answer(self, ours: Library, request: Any) -> Any:
        """Answer a request of respx, whose body is read, for an asynchronous client."""
        carrier = Carrier(ours.core, limits_of(request))
        response = None
        try:
            exchange = await carrier.fetch(self._answering(), _read(request))
            response = response_of(library("httpx").client, exchange, AsyncBody(carrier, exchange))
        finally:
            self._keep(request, response)
        return response

    def answer_sync(self, ours: Library, request: Any) -> Any:
        """The same for a synchronous one."""
        carrier = Carrier(ours.core, limits_of(request))
        response = None
        try:
            exchange = self._call(lambda: carrier.fetch(self._answering(), _read(request)))
            response = response_of(
                library("httpx").client, exchange, SyncBody(carrier, exchange, self._call)
            )
        finally:
            self._keep(request, response)
        return response

    def _keep(self, request: Any, response: Any) -> None:
        self.router.record(request, response=response, route=self.router["provider"])


def swaps() -> Sequence[Swaps]:
    """The stand-ins for both libraries, as far as they are loaded, and for a client that would take
    another; the rest wait until they are.
    """
    return [*[each for name in CORES for each in swaps_of(name, _stand_ins)], *google.swaps()]


_outside: list[Routes] = []
"""Where requests go that no run makes; the last is the one."""


@contextmanager
def routed(routes: Routes) -> Iterator[None]:
    """Have `routes` take what this process asks a provider outside of runs, in all its threads."""
    placed = swaps()
    _outside.append(routes)
    try:
        for each in placed:
            each.place()
        with kept():  # a run meanwhile leaves in its place what it finds there
            yield
    finally:
        for each in placed:  # what such a run has placed before them is lifted by now
            each.lift()
        _outside.remove(routes)


def _routes() -> Routes | None:
    loop = simulation()
    if loop is None:
        return _outside[-1] if _outside else None
    return loop.routes if isinstance(loop.routes, Routes) else None


@cache
def _stand_ins(client: Any) -> list[Swaps]:
    ours = library(client.__name__)
    know_machine()
    core = ours.core.__name__
    made: list[Swaps] = [
        Swap(
            getattr(sys.modules[f"{core}.{module}"], kind), method, partial(_stand_in, ours, method)
        )
        for module, kind, method in _METHODS
    ]
    transports = sys.modules[f"{client.__name__}._transports.default"]
    return [*made, Swap(transports, "create_ssl_context", _contexts)]


def _stand_in(ours: Library, name: str, real: Mapping[str, Any]) -> Any:
    """What stands in for a method, or for a patch that is found in its place."""
    before = real[name]
    patched = before.__name__ != name
    make = _asynchronous if name == "handle_async_request" else _synchronous
    made = make(ours, before, patched)
    made.__name__ = name  # by its name respx knows what it may patch
    return made


def _asynchronous(ours: Library, before: Any, patched: bool) -> Any:  # noqa: FBT001
    async def handle(pool: Any, request: Any) -> Any:
        routes = _routes()
        if routes is None or in_memory(pool) or not routes.takes(request):
            return await before(pool, request)
        if patched:
            with suppress(_unknown()):
                return await before(pool, request)
        return await _mocked(ours, _asks)(pool, request)

    return handle


def _synchronous(ours: Library, before: Any, patched: bool) -> Any:  # noqa: FBT001
    def handle(pool: Any, request: Any) -> Any:
        routes = _routes()
        if routes is None or in_memory(pool) or not routes.takes(request):
            return before(pool, request)
        if patched:
            with suppress(_unknown()):
                return before(pool, request)
        return _mocked(ours, _asks_sync)(pool, request)

    return handle


async def _asks(pool: Any, request: Any) -> Any:
    """The form of the asynchronous method, for respx."""
    raise AssertionError(f"{request} was not taken, and came to respx for {pool}")


def _asks_sync(pool: Any, request: Any) -> Any:
    """The form of the synchronous one."""
    raise AssertionError(f"{request} was not taken, and came to respx for {pool}")


def _unknown() -> type[Exception]:
    """What respx raises where none of its routes knows a request."""
    from respx.models import AllMockedAssertionError

    return AllMockedAssertionError


@cache
def _mocked(ours: Library, form: Callable[..., Any]) -> Any:
    """A method that takes requests through respx to the routes of the run."""
    from respx.mocks import HTTPCoreMocker

    class RunMocker(HTTPCoreMocker):
        name = f"harness {ours.core.__name__} {form.__name__}"
        targets: ClassVar[list[str]] = []
        target_methods: ClassVar[list[str]] = [form.__name__]

        @classmethod
        def handler(cls, httpx_request: Any) -> Any:
            return _in_run().answer_sync(ours, httpx_request)

        @classmethod
        async def async_handler(cls, httpx_request: Any) -> Any:
            return await _in_run().answer(ours, httpx_request)

        @classmethod
        def from_sync_httpx_response(
            cls,
            httpx_response: Any,
            target: Any,  # noqa: ARG003
            **kwargs: Any,  # noqa: ARG003
        ) -> Any:
            return ours.core.Response(
                httpx_response.status_code,
                headers=httpx_response.headers.raw,
                content=httpx_response.stream,
                extensions=httpx_response.extensions,
            )

    return RunMocker.mock(form)  # type: ignore[no-untyped-call]


def _in_run() -> Routes:
    routes = _routes()
    assert routes is not None, "only requests of a run come here"
    return routes


def _read(request: Any) -> Request:
    return Request(request.method, str(request.url), headers(request.headers), request.content)


def _contexts(real: Mapping[str, Any]) -> Any:
    """Makes what clients need for TLS, which takes long; in a run they share one and use none."""
    make = real["create_ssl_context"]
    shared = cache(make)

    def create_ssl_context(*args: Any, **options: Any) -> Any:
        plain = all(value in (True, None) for value in (*args, *options.values()))
        return (shared if plain and simulation() is not None else make)(*args, **options)

    return create_ssl_context
