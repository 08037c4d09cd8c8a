"""What a simulated run knows of a pool of threads: its workers, and the jobs that are theirs."""

from __future__ import annotations

from asyncio import CancelledError, Future, InvalidStateError
from collections import deque
from collections.abc import Callable
from concurrent import futures
from concurrent.futures.thread import BrokenThreadPool
from contextvars import Context
from functools import partial
from typing import Any

from harness.sim.watchdog import Stuck
from harness.sim.where import Line

Begin = Callable[[], object] | None
"""What each worker of a pool calls before its first job."""


class Crew:
    """The workers of one pool.

    They share what a thread has of its own: its context and, since none of them is a thread, what
    a `threading.local` holds.
    """

    __slots__ = ("begin", "broken", "context", "idle", "pending", "unmade", "waiting")

    def __init__(self, workers: int, begin: Begin) -> None:
        self.begin = begin
        self.broken: Exception | None = None
        self.context = Context()
        self.idle = 0
        self.unmade = workers
        """How many workers there may be yet; one is made where none is idle."""
        self.pending: dict[Job, None] = {}
        """The jobs that have not been begun, in order."""
        self.waiting: deque[Job] = deque()
        """Those of them that no worker has taken."""

    def take(self, job: Job) -> bool:
        """Have a worker take a new job, and say whether there was one; else it waits."""
        self.pending[job] = None
        if self.idle:
            self.idle -= 1
        elif self.unmade:
            self.unmade -= 1
            job.first = True
        else:
            self.waiting.append(job)
            return False
        return True

    def make_worker(self) -> None:
        """Have a worker begin; the pool is broken where it cannot."""
        if self.begin is None:
            return
        try:
            self.context.run(self.begin)
        except Exception as error:
            self.broken = error

    def check(self) -> None:
        """BrokenThreadPool where the pool is broken."""
        if self.broken is not None:
            raise BrokenThreadPool(
                "A thread initializer failed, the thread pool is not usable anymore"
            ) from self.broken


class Job:
    """A function on its way through a pool; `future` gets what it returns or raises.

    `line` asked for it. `first` says that it is the first of its worker, `ran` that it was not
    cancelled before.
    """

    __slots__ = ("crew", "error", "first", "function", "future", "line", "path", "ran", "result")

    def __init__(
        self,
        path: str,
        function: Callable[[], Any],
        future: Future[Any],
        crew: Crew,
        line: Line | None,
    ) -> None:
        self.path = path
        self.line = line
        self.function = function
        self.future = future
        self.crew = crew
        self.first = self.ran = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Call the function, unless it was cancelled before."""
        crew = self.crew
        if self.first:
            crew.make_worker()
        if self.future.cancelled():
            return
        self.ran = True
        try:
            crew.check()
            self.result = crew.context.run(self.function)
        except (KeyboardInterrupt, Stuck):
            raise  # of the run itself
        except BaseException as error:
            self.error = _as_asyncio_has_it(error)

    def tell(self) -> None:
        """Give the future what came of the function, if anybody still waits for it, and let go.

        The error has the frames that called the function, and they have the job: a circle, in which
        the collector alone would see that nobody asks for the error.
        """
        future, error = self.future, self.error
        del self.future, self.error
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(self.result)


def _as_asyncio_has_it(error: BaseException) -> BaseException:
    """The errors of concurrent futures are others than asyncio's, and StopIteration is none."""
    match error:
        case StopIteration():
            return RuntimeError(f"a job raised StopIteration: {error}")
        case futures.CancelledError():
            return CancelledError(*error.args)
        case futures.InvalidStateError():
            return InvalidStateError(*error.args)
    return error


def begin_of(pool: Any) -> Begin:
    """What each worker of a pool of threads calls before its first job."""
    make_context = getattr(pool, "_create_worker_context", None)  # from Python 3.14 on
    if make_context is not None:
        return lambda: make_context().initialize()
    return None if pool._initializer is None else partial(pool._initializer, *pool._initargs)
