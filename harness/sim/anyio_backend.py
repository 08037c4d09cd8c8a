"""What anyio's asyncio backend is given while a run lasts: ordered sets, and no threads."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from harness.sim.jobs import Jobs
from harness.sim.order import OrderedSet
from harness.sim.swaps import Swap, Swaps
from harness.sim.when_loaded import swaps_of

_BACKEND = "anyio._backends._asyncio"
_ANYIO = "anyio's workers"
"""The pool of anyio's jobs; it has as many workers as there are jobs, since anyio limits them."""


def swaps() -> Sequence[Swaps]:
    """The stand-ins for names of the backend; it may not be loaded yet, and be so in a run.

    It keeps scopes in sets, by address, and cancels them in that order; and it runs functions in
    threads of its own.
    """
    return swaps_of(_BACKEND, _stand_ins)


@cache
def _stand_ins(backend: Any) -> list[Swaps]:
    return [
        Swap(backend, "set", lambda _real: OrderedSet),
        Swap(backend, "WorkerThread", partial(_workers, backend)),
    ]


def _workers(backend: Any, real: Mapping[str, Any]) -> Any:
    def worker(root_task: Any, workers: Any, idle: Any) -> Any:
        """A worker of anyio; in a run it has no thread, and what it is given becomes a job."""
        made = real["WorkerThread"](root_task, workers, idle)
        loop = root_task.get_loop()
        if isinstance(loop, Jobs):
            made.queue = _Queue(backend, made, loop)
            made.start = _nothing
        return made

    # anyio asks the class
    worker.MAX_IDLE_TIME = backend.WorkerThread.MAX_IDLE_TIME  # type: ignore[attr-defined]
    return worker


class _Queue:
    """Takes what a worker is to do."""

    def __init__(self, backend: Any, worker: Any, loop: Jobs) -> None:
        self._backend = backend
        self._worker = worker
        self._loop = loop

    def put_nowait(self, item: tuple[Any, ...] | None) -> None:
        """Start a job; None tells a worker to end, and it has nothing to end."""
        if item is None:
            return
        context, function, args, future, scope = item

        def job() -> Any:
            with _at_work(self._backend, self._loop, scope):
                return context.run(function, *args)

        future.add_done_callback(self._rest)
        self._loop.start_job(job, future, pool=_ANYIO, workers=sys.maxsize)

    def _rest(self, _done: object) -> None:
        worker = self._worker
        worker.idle_since = self._loop.time()
        if not worker.stopping:
            worker.idle_workers.append(worker)


@contextmanager
def _at_work(backend: Any, loop: Jobs, scope: Any) -> Iterator[None]:
    """Have `anyio.from_thread` know that a worker of this loop is at work, and in which scope.

    The thread may be a worker of somebody else's loop already.
    """
    known = vars(backend.threadlocals)
    before = dict(known)
    try:
        with backend.claim_worker_thread(backend.AsyncIOBackend, loop):
            known["current_cancel_scope"] = scope
            yield
    finally:
        known.clear()
        known.update(before)


def _nothing() -> None:
    """Start no thread."""
