"""A script that answers clients in their own process, without a socket."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from harness.core.durations import SECOND
from harness.core.errors import UsageError
from harness.core.trace import Trace
from harness.fakes.script import Reply
from harness.runner.blocking import Blocking
from harness.runner.env import RunEnv
from harness.runner.scenario import Scenario
from harness.runner.serving import Scripted
from harness.sim.boundary import simulation
from harness.sim.hold import swap_also
from harness.sim.kernel import Kernel
from harness.sim.virtual import BEGINNING
from harness.transport.exchange import Broken, Exchange
from harness.transport.findings import Finding
from harness.transport.journal import Ending, Journal, Record
from harness.transport.router import Routes, routed, swaps
from harness.wire.http import Request

swap_also(swaps)

T = TypeVar("T")
Script: TypeAlias = Scenario | Sequence[Reply] | str | os.PathLike[str]
Wait: TypeAlias = Callable[[Coroutine[Any, Any, T]], Awaitable[T]]
"""Has something done where the script is, and waits for it."""


class Provided:
    """A script that answers what this process asks a provider, for as long as `provide` says.

    It sees each client of httpx and httpx2, and so those of openai, anthropic and google-genai,
    whatever their host and whenever they were made. Other requests go where they went before.
    """

    def __init__(self, scripted: Scripted, routes: Routes) -> None:
        self._scripted = scripted
        self._routes = routes

    @property
    def router(self) -> Any:
        """A router of respx; the calls of its route ``provider`` are the requests and responses."""
        return self._routes.router

    @property
    def requests(self) -> tuple[Record, ...]:
        """What has come so far, and what became of it."""
        return self._scripted.requests

    @property
    def trace(self) -> Trace:
        """What has happened so far, in the words of traces."""
        return self._scripted.trace

    @property
    def used_up(self) -> bool:
        """Whether all of the script was given."""
        return self._scripted.done

    def findings(self) -> tuple[Finding, ...]:
        """What the client has done wrong so far; replies still to be asked for count as unused."""
        return self._scripted.findings()


@contextmanager
def provide(script: Script, **options: Any) -> Iterator[Provided]:
    """Answer what this process asks a provider from a script, while the block runs.

    `script` and the options are as for `harness.serve`, without `port`. In code that runs in
    virtual time, the script takes that; elsewhere it takes real time, in a thread of its own.
    UsageError where another script answers already.
    """
    kernel = simulation()
    if isinstance(kernel, Kernel):
        with _virtual(kernel, script, options) as provided:
            yield provided
    else:
        with _real(script, options) as provided:
            yield provided


@contextmanager
def _virtual(kernel: Kernel, script: Script, options: dict[str, Any]) -> Iterator[Provided]:
    """Within a run of a function: all is answered where it is asked for."""
    if kernel.routes is not None:
        raise UsageError(_TAKEN)
    blocking = Blocking(kernel)
    scripted = Scripted(
        script,
        kernel.now,
        lambda: (BEGINNING + kernel.now()) / SECOND,
        blocking.path,
        **options,
    )
    answer = partial(_heard, scripted, _here)
    routes = kernel.routes = Routes(lambda: answer, blocking.call, RunEnv.base_url)
    try:
        yield Provided(scripted, routes)
    finally:
        kernel.routes = None
        _end(scripted.journal)


@contextmanager
def _real(script: Script, options: dict[str, Any]) -> Iterator[Provided]:
    """Outside of runs: clients of all threads are answered by one loop."""
    if _open:
        raise UsageError(_TAKEN)
    began = time.monotonic_ns()
    scripted = Scripted(
        script,
        lambda: time.monotonic_ns() - began,
        lambda: time.time_ns() / SECOND,
        lambda: "provider",
        **options,
    )
    apart = _Apart(scripted.journal)
    answer = partial(_heard, scripted, apart.there)
    routes = Routes(lambda: answer, apart.call, RunEnv.base_url)
    _open.append(routes)
    try:
        with apart, routed(routes):
            yield Provided(scripted, routes)
    finally:
        _open.clear()


class _Apart:
    """A loop in a thread of its own, where a script answers while the block runs; who waits there
    when it ends is told that the connection broke.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="harness provider", daemon=True)
        self._answering: set[asyncio.Task[Any]] = set()
        self._over = False

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Have something done there, and block until it is."""

        async def done() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    def there(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Have something answered there, for a task of any loop."""
        return asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._answered(work), self._loop)
        )

    async def _answered(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None, "it is run by a loop"
        self._answering.add(task)
        try:
            if self._over:  # it came when no more is answered
                raise asyncio.CancelledError
            return await work
        except asyncio.CancelledError:
            if not self._over:
                raise  # the client waits no more
            raise Broken("dropped", "nobody answers any more: the provider has ended") from None
        finally:
            work.close()
            self._answering.discard(task)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        _end(self._journal)
        self._over = True
        for task in self._answering:
            task.cancel()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*rest, return_exceptions=True)


_open: list[Routes] = []
_TAKEN = "another script answers what is asked of a provider; put all replies into one"


async def _here(work: Coroutine[Any, Any, T]) -> T:
    return await work


async def _heard(scripted: Scripted, wait: Wait[Any], request: Request) -> Exchange:
    """Answer a request, and keep what becomes of it."""
    journal = scripted.journal
    record = journal.begin(1, request)
    try:
        exchange = await wait(scripted.answer(request))
    except Broken as error:
        _ended(journal, record, error.how)
        raise
    except BaseException:  # the client does not wait for it any more
        _ended(journal, record, "gone")
        raise
    return Heard(exchange, wait, journal, record)


class Heard:
    """An answer of which is kept how much of it was taken."""

    def __init__(
        self, exchange: Exchange, wait: Wait[Any], journal: Journal, record: Record
    ) -> None:
        self.status = record.status = exchange.status
        self.headers = record.answered = exchange.headers
        self.streamed = exchange.streamed
        self.place = record.place = exchange.place
        self.rule = record.rule = exchange.rule
        record.answered_at = journal.now()
        self._exchange = exchange
        self._wait = wait
        self._journal = journal
        self._record = record

    def __aiter__(self) -> Heard:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk, when it comes."""
        record = self._record
        try:
            piece: bytes = await self._wait(_next(self._exchange))
        except StopAsyncIteration:
            _ended(self._journal, record, "whole")
            raise
        except Broken as error:
            _ended(self._journal, record, error.how)
            raise
        record.frames += 1
        record.bytes += len(piece)
        if self.status >= 400 and record.frames == 1:
            self._journal.tell(record, piece)
        return piece

    def ready(self) -> None:
        """Only waiting tells."""

    async def aclose(self) -> None:
        """The client wants no more; some do not ask for the end when they have all there is."""
        ending: Ending = "whole" if self._exchange.ready() == b"" else "gone"
        _ended(self._journal, self._record, ending)
        await self._exchange.aclose()


async def _next(exchange: Exchange) -> bytes:
    return await anext(exchange)


def _ended(journal: Journal, record: Record, ending: Ending) -> None:
    """Keep how an answer ended, unless that was known before."""
    if not record.ending:
        journal.end(record, ending)


def _end(journal: Journal) -> None:
    """Nobody reads any more what was not read to its end by now."""
    for record in journal.records:
        _ended(journal, record, "cut")
