"""What a simulated run knows of a pool of threads: its workers, and the jobs that are theirs."""

from __future__ import annotations

import re
import weakref
from asyncio import CancelledError, Future, InvalidStateError
from collections import deque
from collections.abc import Callable
from concurrent import futures
from concurrent.futures.thread import BrokenThreadPool, ThreadPoolExecutor
from functools import partial
from typing import Any

from harness.sim.actors import Unfinished
from harness.sim.expel import Expelled
from harness.sim.watchdog import Stuck
from harness.sim.where import Line
from harness.sim.workers import Carrier

_USUAL = re.compile(r"(ThreadPoolExecutor|pool)-\d+")
"""How a pool is called by itself."""
Begin = Callable[[], object] | None
"""What each worker of a pool calls before its first job."""


class Crew:
    """The workers of one pool: real threads, made where none is idle, that wait between jobs."""

    def __init__(self, workers: int, begin: Begin, name: str) -> None:
        self.begin = begin
        self.broken: Exception | None = None
        self.busy = 0
        """How many workers are at work, or about to be."""
        self.begun = 0
        """How many jobs have begun whose function is not over."""
        self.waiting: deque[Job] = deque()
        """The jobs that no worker has taken, in order."""
        self.pending: dict[Job, None] = {}
        """The jobs that have not been begun, in order."""
        self.rests: list[Future[None]] = []
        """Who is to be told when all jobs are over."""
        self._width = workers
        self._name = name
        self._made: list[Carrier] = []
        self._idle: deque[Carrier] = deque()

    def take(self, job: Job) -> bool:
        """Have a worker take a new job, and say whether there was one; else it waits."""
        self.pending[job] = None
        if self.busy == self._width:
            self.waiting.append(job)
            return False
        self.busy += 1
        return True

    def carrier(self) -> tuple[Carrier, bool]:
        """The thread of an idle worker, and whether it is new."""
        if self._idle:
            return self._idle.popleft(), False
        self._made.append(Carrier(f"{self._name}_{len(self._made)}"))
        return self._made[-1], True

    def free(self, carrier: Carrier | None) -> Job | None:
        """A worker is free again, which may have a thread: the job that it takes next, if any."""
        if carrier is not None:
            self._idle.append(carrier)
        if self.waiting:
            return self.waiting.popleft()
        self.busy -= 1
        if not self.busy:
            for future in self.rests:
                if not future.done():
                    future.set_result(None)
            self.rests.clear()
        return None

    def dismiss(self) -> None:
        """End the threads."""
        for carrier in self._made:
            carrier.dismiss()

    def make_worker(self) -> None:
        """Have a worker begin; the pool is broken where it cannot."""
        if self.begin is None:
            return
        try:
            self.begin()
        except Exception as error:
            self.broken = error

    def check(self) -> None:
        """BrokenThreadPool where the pool is broken."""
        if self.broken is not None:
            raise BrokenThreadPool(
                "A thread initializer failed, the thread pool is not usable anymore"
            ) from self.broken


class PoolFuture(futures.Future[Any]):
    """A future of a pool, which hashes by its number in the run and not by its address.

    `as_completed` and `wait` keep them in sets, and give them in the order of their hashes.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def __hash__(self) -> int:
        return self._number


PoolFuture.__name__ = "Future"  # what futures are printed as holds the names of their classes


class Job:
    """A function on its way through a pool; `future` gets what it returns or raises.

    A future of asyncio is told by the kernel, when the job is over; one `of_pool`, which
    `submit` gave, by the thread of the job. `line` asked for it.
    """

    __slots__ = (
        "carrier",
        "crew",
        "error",
        "function",
        "future",
        "line",
        "of_pool",
        "path",
        "result",
    )

    def __init__(
        self,
        path: str,
        function: Callable[[], Any],
        future: Future[Any] | futures.Future[Any],
        crew: Crew,
        line: Line | None,
    ) -> None:
        self.path = path
        self.line = line
        self.function = function
        self.future = future
        self.of_pool = isinstance(future, futures.Future)
        self.crew = crew
        self.result: Any = None
        self.error: BaseException | None = None
        self.carrier: Carrier | None = None

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled before it began; a thread finds out for itself `of_pool`."""
        return not self.of_pool and self.future.cancelled()

    def run(self, *, first: bool) -> None:
        """Call the function, in a worker that has a job for the first time or not."""
        if first:
            self.crew.make_worker()
        if self._is_called_off():
            return
        try:
            self.crew.check()
            self.result = self.function()
        except (Unfinished, Expelled, Stuck):
            raise
        except BaseException as error:
            self.error = error
        if self.of_pool:
            self.tell()

    def _is_called_off(self) -> bool:
        """Whether a future of a pool was cancelled; else it cannot be any more."""
        future = self.future
        return isinstance(future, futures.Future) and not future.set_running_or_notify_cancel()

    def tell(self) -> None:
        """Give the future what came of the function, if anybody still waits for it, and let go.

        The error has the frames that called the function, and they have the job: a circle, in which
        the collector alone would see that nobody asks for the error.
        """
        future, error = self.future, self.error
        del self.future, self.error
        if not self.of_pool and future.done():
            return
        if error is None:
            future.set_result(self.result)
        elif isinstance(future, futures.Future):
            future.set_exception(error)
        else:
            future.set_exception(_as_asyncio_has_it(error))


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


def reference(pool: object) -> Callable[[], object]:
    """What gives a pool of threads as long as somebody has it; anything else is there for ever."""
    return weakref.ref(pool) if isinstance(pool, ThreadPoolExecutor) else lambda: pool


def worker_name(pool: Any, number: int) -> str:
    """How the names of the threads of a run's pool with this number begin.

    The number in the name that a pool has by itself counts those of the process.
    """
    if pool is None:
        return "asyncio"
    given = str(getattr(pool, "_thread_name_prefix", "pool-0"))
    return f"{given.rpartition('-')[0]}-{number}" if _USUAL.fullmatch(given) else given


def begin_of(pool: Any) -> Begin:
    """What each worker of a pool of threads calls before its first job."""
    make_context = getattr(pool, "_create_worker_context", None)  # from Python 3.14 on
    if make_context is not None:
        return lambda: make_context().initialize()
    return None if pool._initializer is None else partial(pool._initializer, *pool._initargs)
