"""Jobs: functions that a loop hands to a pool of threads, run in the simulation without one.

A job is in one of three states, as in a pool: not started, so that a cancel keeps it from running
at all; running, so that what it does has been done and nobody gets its result; finished. It starts
when a worker is free, and finishes a little later; both are steps of the run, at which a cancel can
land. All that the function does, it does when the job starts.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple

from harness.core.durations import SECOND
from harness.sim import where
from harness.sim.boundary import job_of, simulation
from harness.sim.pools import Begin, Crew, Job, begin_of
from harness.sim.swaps import Swap, Swaps
from harness.sim.task_tree import TaskTree

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")

TAKES = (SECOND // 1_000, 0, 10 * SECOND)
"""How long a job runs, in virtual nanoseconds: ordinarily a millisecond; or no time, or longer than
anything that it may race with. The choice is of the source `job`."""

WORKERS = 32
"""The threads of a loop's own pool; asyncio has so many where there are cores enough."""


class Jobs(TaskTree):
    """The part of an event loop that runs functions in pools of threads."""

    _default_executor: Executor | None

    def __init__(self) -> None:
        super().__init__()
        self._pools: dict[int, tuple[object, Crew]] = {}
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
        width, begin = WORKERS, None
        if executor is not None:
            width, begin = executor._max_workers, begin_of(executor)
        self.start_job(lambda: func(*args), future, pool=executor, workers=width, begin=begin)
        return future

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - asyncio's own
    ) -> None:
        """Do nothing: no job of the loop has a thread."""

    def start_job(
        self,
        function: Callable[[], Any],
        future: Future[Any],
        *,
        pool: object,
        workers: int,
        begin: Begin = None,
    ) -> None:
        """Have `function` called as a job of `pool`, and `future` told what came of it.

        The pool has at most so many workers, and each calls `begin` before its first job.
        """
        found = self._pools.get(id(pool))
        if found is None:
            found = self._pools[id(pool)] = (pool, Crew(workers, begin))
        self._jobs += 1
        maker = self.current_path()
        path = f"{maker}.job{self._jobs}" if maker else f"job{self._jobs}"
        job = Job(path, function, future, found[1], where.calling(2))
        if job.crew.take(job):
            self.call_in(0, self._start, job)

    def end_pool(self, pool: object, *, wait: bool, cancel: bool) -> None:
        """A pool is shut down: its jobs are cancelled that wait, or done before it goes on."""
        if id(pool) not in self._pools:
            return
        crew = self._pools[id(pool)][1]
        if cancel:
            for job in crew.waiting:
                job.future.cancel()
        if wait:
            for job in list(crew.pending):
                self._do(job)

    def current_path(self) -> str:
        """The path of the task or job that runs, "" outside of any."""
        return self._job or super().current_path()

    def _start(self, job: Job) -> None:
        self._do(job)
        if not job.ran:
            self._free(job.crew)
            return
        takes = 0 if self.choices is None else self.choices.choose("job", job.path, len(TAKES))
        self.call_in(TAKES[takes], self._finish, job)
        self.note_other_step()

    def _do(self, job: Job) -> None:
        """Do all that the function does, unless that has been done."""
        pending = job.crew.pending
        if job not in pending:
            return
        del pending[job]
        around = self._job, self.job_line
        self._job, self.job_line = job.path, job.line
        try:
            with job_of(self):
                job.run()
        finally:
            self._job, self.job_line = around

    def _finish(self, job: Job) -> None:
        job.tell()
        self._free(job.crew)
        self.note_other_step()

    def _free(self, crew: Crew) -> None:
        """Have the next job take the worker."""
        if crew.waiting:
            self.call_in(0, self._start, crew.waiting.popleft())
        else:
            crew.idle += 1


def _shutdown(real: Mapping[str, Any]) -> Any:
    def shutdown(
        self: ThreadPoolExecutor,
        wait: bool = True,  # noqa: FBT001, FBT002 - as the real one
        *,
        cancel_futures: bool = False,
    ) -> None:
        loop = simulation()
        if isinstance(loop, Jobs):
            loop.end_pool(self, wait=wait, cancel=cancel_futures)
        real["shutdown"](self, wait, cancel_futures=cancel_futures)

    return shutdown


ALWAYS: tuple[Swaps, ...] = (Swap(ThreadPoolExecutor, "shutdown", _shutdown),)
"""What is swapped in every run."""
