"""Jobs: functions that a loop hands to a pool of threads, run in the simulation without one.

A job is in one of three states, as in a pool: not started, so that a cancel keeps it from running
at all; running, so that what it does has been done and nobody gets its result; finished. It starts
when a worker is free, and finishes a little later; both are steps of the run, at which a cancel can
land. All that the function does, it does when the job starts.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple

from harness.core.durations import SECOND
from harness.sim.boundary import job_of
from harness.sim.task_tree import TaskTree

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")

TAKES = (SECOND // 1_000, 0, 10 * SECOND)
"""How long a job runs, in virtual nanoseconds: ordinarily a millisecond; or no time, or longer than
anything that it may race with. The choice is of the source `job`."""

WORKERS = 32
"""The threads of a loop's own pool; asyncio has so many where there are cores enough."""


class _Workers:
    """The workers of one pool, and the jobs that wait for one."""

    __slots__ = ("free", "waiting")

    def __init__(self, count: int) -> None:
        self.free = count
        self.waiting: deque[_Job] = deque()


class _Job:
    """A function on its way through a pool; `future` gets what it returns or raises."""

    __slots__ = ("error", "function", "future", "path", "result", "workers")

    def __init__(
        self, path: str, function: Callable[[], Any], future: Future[Any], workers: _Workers
    ) -> None:
        self.path = path
        self.function = function
        self.future = future
        self.workers = workers
        self.result: Any = None
        self.error: Exception | None = None

    def run(self) -> None:
        """Call the function."""
        try:
            self.result = self.function()
        except StopIteration as error:  # which a future does not take
            self.error = RuntimeError(f"a job raised StopIteration: {error}")
        except Exception as error:
            self.error = error

    def tell(self) -> None:
        """Give the future what came of the function, if anybody still waits for it."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Jobs(TaskTree):
    """The part of an event loop that runs functions in pools of threads."""

    _default_executor: Executor | None

    def __init__(self) -> None:
        super().__init__()
        self._pools: dict[int, tuple[object, _Workers]] = {}
        """By identity; a pool that has been used lives as long as the loop."""
        self._jobs = 0
        self._job = ""
        """The path of the job whose function runs now."""

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*_Args], _T], *args: *_Args
    ) -> Future[_T]:
        """Have `func` called as a job of a pool of threads (None: the loop's own).

        A pool of another kind is asked to do it itself.
        """
        self._check_closed()
        if executor is None:
            executor = self._default_executor
        if executor is not None:
            if not isinstance(executor, ThreadPoolExecutor):
                return asyncio.wrap_future(executor.submit(func, *args), loop=self)
            if executor._shutdown:
                raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[_T] = self.create_future()
        width = WORKERS if executor is None else executor._max_workers
        self.start_job(lambda: func(*args), future, pool=executor, workers=width)
        return future

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - asyncio's own
    ) -> None:
        """Do nothing: no job of the loop has a thread."""

    def start_job(
        self, function: Callable[[], Any], future: Future[Any], *, pool: object, workers: int
    ) -> None:
        """Have `function` called as a job of `pool`, which has so many workers, and `future` told
        what came of it.
        """
        crew = self._pools.setdefault(id(pool), (pool, _Workers(workers)))[1]
        self._jobs += 1
        maker = self.current_path()
        path = f"{maker}.job{self._jobs}" if maker else f"job{self._jobs}"
        job = _Job(path, function, future, crew)
        if crew.free:
            crew.free -= 1
            self.call_later(0, self._start, job)
        else:
            crew.waiting.append(job)

    def current_path(self) -> str:
        """The path of the task or job that runs, "" outside of any."""
        return self._job or super().current_path()

    def _start(self, job: _Job) -> None:
        if job.future.cancelled():  # before a worker took it: it never runs
            self._free(job.workers)
            return
        self._job = job.path
        try:
            with job_of(self):
                job.run()
        finally:
            self._job = ""
        takes = 0 if self.choices is None else self.choices.choose("job", job.path, len(TAKES))
        self.call_later(TAKES[takes] / SECOND, self._finish, job)
        self.note_other_step()

    def _finish(self, job: _Job) -> None:
        job.tell()
        self._free(job.workers)
        self.note_other_step()

    def _free(self, workers: _Workers) -> None:
        """Have the next job take the worker."""
        if workers.waiting:
            self.call_later(0, self._start, workers.waiting.popleft())
        else:
            workers.free += 1
