"""What anyio's asyncio backend is given while a run lasts: ordered sets, and no threads."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from harness.sim.jobs import Jobs
from harness.sim.order import OrderedSet
from harness.sim.swaps import Swap, Swaps

_BACKEND = "anyio._backends._asyncio"
_ANYIO = "anyio's workers"
"""The pool of anyio's jobs; it has as many workers as there are jobs, since anyio limits them."""


def swaps() -> list[Swaps]:
    """The stand-ins for names of the backend; none where anyio is not used.

    It keeps scopes in sets, by address, and cancels them in that order; and it runs functions in
    threads of its own.
    """
    if "anyio" not in sys.modules:
        return []
    return _stand_ins(sys.modules.get(_BACKEND) or importlib.import_module(_BACKEND))


@cache
def _stand_ins(backend: Any) -> list[Swaps]:
    return [
        Swap(backend, "set", lambda _real: OrderedSet),
        Swap(backend, "WorkerThread", partial(_workers, backend.WorkerThread.MAX_IDLE_TIME)),
    ]


def _workers(idle_at_most: float, real: Mapping[str, Any]) -> Any:
    def worker(root_task: Any, workers: Any, idle: Any) -> Any:
        """A worker of anyio; in a run it has no thread, and what it is given becomes a job."""
        made = real["WorkerThread"](root_task, workers, idle)
        loop = root_task.get_loop()
        if isinstance(loop, Jobs):
            made.queue = _Queue(made, loop)
            made.start = _nothing
        return made

    worker.MAX_IDLE_TIME = idle_at_most  # type: ignore[attr-defined] # anyio asks the class
    return worker


class _Queue:
    """Takes what a worker is to do."""

    def __init__(self, worker: Any, loop: Jobs) -> None:
        self._worker = worker
        self._loop = loop

    def put_nowait(self, item: tuple[Any, ...] | None) -> None:
        """Start a job; None tells a worker to end, and it has nothing to end."""
        if item is None:
            return
        context, function, args, future, _scope = item
        future.add_done_callback(self._rest)
        self._loop.start_job(
            lambda: context.run(function, *args), future, pool=_ANYIO, workers=sys.maxsize
        )

    def _rest(self, _done: object) -> None:
        worker = self._worker
        worker.idle_since = self._loop.time()
        if not worker.stopping:
            worker.idle_workers.append(worker)


def _nothing() -> None:
    """Start no thread."""
