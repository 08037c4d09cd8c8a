"""A script served from a thread, beside the code that asks for it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TextIO

from harness.core.trace import Trace
from harness.fakes.script import Reply
from harness.runner.scenario import Scenario
from harness.runner.serving import ALL, Service
from harness.transport.findings import Finding
from harness.transport.framing import PLAIN, Framing
from harness.transport.journal import Record


class Served:
    """A script that is served from a thread of its own, for as long as `serve` says.

    What has come of it is told when the server has done all that it has to do by then: a client
    that has read an answer finds it ended.
    """

    def __init__(self, service: Service, port: int) -> None:
        self._service = service
        self._port = port
        self._running: Future[asyncio.AbstractEventLoop] = Future()
        self._over: Future[None] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="harness server", daemon=True)

    @property
    def url(self) -> str:
        """Where it is, such as ``http://127.0.0.1:8080``."""
        return self._service.url

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the environment that point popular clients here."""
        return self._service.variables

    @property
    def requests(self) -> tuple[Record, ...]:
        """What has come so far, and what became of it."""
        self._settle()
        return self._service.requests

    @property
    def trace(self) -> Trace:
        """What has happened so far, in the words of traces."""
        self._settle()
        return self._service.trace

    @property
    def used_up(self) -> bool:
        """Whether all of the script was given."""
        self._settle()
        return self._service.used_up.is_set()

    def findings(self) -> tuple[Finding, ...]:
        """What the client has done wrong so far; replies still to be asked for count as unused."""
        self._settle()
        return self._service.findings()

    def begin(self) -> None:
        """Wait until it serves."""
        self._thread.start()
        self._running.result()

    def end(self) -> None:
        """Wait until it has ended; raises what broke in it."""
        self._running.result().call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._over.result()

    def _settle(self) -> None:
        if not self._over.done():
            loop = self._running.result()
            asyncio.run_coroutine_threadsafe(self._service.server.settle(), loop).result()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
            self._over.set_result(None)
        except BaseException as error:
            (self._over if self._running.done() else self._running).set_exception(error)

    async def _serve(self) -> None:
        await self._service.server.start(port=self._port)
        self._running.set_result(asyncio.get_running_loop())
        await self._stop.wait()
        await self._service.server.close()


@contextmanager
def serve(
    script: Scenario | Sequence[Reply] | str | os.PathLike[str],
    *,
    port: int = 0,
    strict: bool | None = None,
    pedantic: bool = False,
    framing: Framing = PLAIN,
    provider: str = ALL,
    journal: TextIO | None = None,
) -> Iterator[Served]:
    r"""Serve a script over HTTP on this machine while the block runs, from a thread of its own.

    `script` is a scenario, its file's path or its text, or plain replies, given one a request. What
    is served has its `url`, the `variables` that point clients there, the `requests` that came, and
    `findings()`, what the client did wrong. With `strict` (None: as the scenario says) a history
    that a real provider refuses is refused, with `pedantic` also by rules of little evidence;
    `provider` is the one protocol to serve, `framing` how streams are cut, `journal` a file that
    gets a line of JSON for each request. UsageError where the port cannot be had.

    >>> with serve("- say: Hello.\n- say: Bye.\n") as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """
    served = Served(
        Service(
            script,
            strict=strict,
            pedantic=pedantic,
            framing=framing,
            provider=provider,
            journal=journal,
        ),
        port,
    )
    served.begin()
    try:
        yield served
    finally:
        served.end()
