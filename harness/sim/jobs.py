"""Jobs: functions that somebody hands to a pool of threads.

A job is in one of three states: not started, so that a cancel keeps it from running at all;
running, so that what it does is done and nobody gets its result; finished. It starts when a worker
is free, and finishes a little after its function has come to its end; both are steps of the run, at
which a cancel can land. A function that waits for nothing does all that it does when the job
starts.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Mapping
from concurrent import futures
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple

from harness.core.durations import SECOND
from harness.sim import where
from harness.sim.actors import current
from harness.sim.boundary import WAIT, simulation
from harness.sim.pools import Begin, Crew, Job, PoolFuture, begin_of, reference, worker_name
from harness.sim.swaps import Swap, Swaps
from harness.sim.tasks import TaskInfo
from harness.sim.threads import Threads

_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")

TAKES = (SECOND // 1_000, 0, 10 * SECOND)
"""How long a job runs, in virtual nanoseconds: ordinarily a millisecond; or no time, or longer than
anything that it may race with. The choice is of the source `job`."""

WORKERS = 32
"""The threads of a loop's own pool; asyncio has so many where there are cores enough."""


class Jobs(Threads):
    """The part of an event loop that runs functions in pools of threads."""

    _default_executor: Executor | None

    def __init__(self) -> None:
        super().__init__()
        self._pools: dict[int, tuple[Callable[[], object], Crew]] = {}
        """By identity, as nobody but its user keeps a pool."""
        self._made: list[tuple[Callable[[], Any], TaskInfo]] = []
        """The pools that were made in the run, and what reports say of each."""
        self._crews: list[Crew] = []
        self._used = self._jobs = 0

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

    def submit(self, pool: Any, function: Callable[[], Any]) -> futures.Future[Any]:
        """Have `function` called as a job of a pool of the user's, which is open."""
        future = PoolFuture(self.number())
        width, begin = pool._max_workers, begin_of(pool)
        self.start_job(function, future, pool=pool, workers=width, begin=begin)
        return future

    async def shutdown_default_executor(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - asyncio's own
    ) -> None:
        """Do nothing: no job of the loop has a thread."""

    def start_job(
        self,
        function: Callable[[], Any],
        future: Future[Any] | futures.Future[Any],
        *,
        pool: object,
        workers: int,
        begin: Begin = None,
    ) -> None:
        """Have `function` called as a job of `pool`, and `future` told what came of it.

        The pool has at most so many workers, and each calls `begin` before its first job.
        """
        crew = self._crew(pool)
        if crew is None:
            self._used += 1
            crew = Crew(workers, begin, worker_name(pool, self._used))
            self._pools[id(pool)] = (reference(pool), crew)
            self._crews.append(crew)
        self._jobs += 1
        maker = self.maker()
        path = f"{maker}.job{self._jobs}" if maker else f"job{self._jobs}"
        job = Job(path, function, future, crew, where.calling(2))
        if job.crew.take(job):
            self.call_in(0, self._start, job)

    def on_their_way(self) -> tuple[str, ...]:
        """The same, with the jobs that have not been begun."""
        pending = [job.path for crew in self._crews for job in crew.pending]
        return (*super().on_their_way(), *pending)

    def note_pool(self, pool: object) -> None:
        """A pool is made in the run."""
        line = where.calling(2)
        path = f"{self.maker()}.pool{len(self._made) + 1}"
        made = where.UNKNOWN if line is None else where.show(line)
        self._made.append((reference(pool), TaskInfo(path, "", made, thread=True)))

    def pools(self) -> list[TaskInfo]:
        """The pools that were made in the run, by what reports say of each."""
        return [info for _, info in self._made]

    def open_pools(self) -> list[TaskInfo]:
        """Those that have had jobs and were not shut down.

        One that nobody has any more ends its threads by itself.
        """
        living = [(made(), info) for made, info in self._made]
        return [
            info
            for pool, info in living
            if pool is not None and not pool._shutdown and self._crew(pool) is not None
        ]

    def _crew(self, pool: object) -> Crew | None:
        found = self._pools.get(id(pool))
        return found[1] if found is not None and found[0]() is pool else None

    def check_pool(self, pool: object) -> None:
        """BrokenThreadPool where a worker of the pool could not begin."""
        crew = self._crew(pool)
        if crew is not None:
            crew.check()

    def end_pool(self, pool: object, *, wait: bool, cancel: bool) -> None:
        """A pool is shut down: its jobs are cancelled that wait, or done before it goes on."""
        crew = self._crew(pool)
        if crew is None:
            return
        if cancel:
            for job in crew.waiting:
                job.future.cancel()
        if not wait:
            return
        actor = current()
        if actor is not None:
            actor.call(lambda: self._until_idle(crew))
            return
        for job in list(crew.pending):
            self._do(job)
        if crew.begun:
            self.refuse("a pool that waits for its jobs", WAIT)

    def close(self) -> None:
        """Close the loop, and end the threads of the pools."""
        super().close()
        for crew in self._crews:
            crew.dismiss()

    async def _until_idle(self, crew: Crew) -> None:
        """Wait until a pool has nothing to do."""
        if crew.busy:
            future = self.create_future()
            crew.rests.append(future)
            await future

    def _start(self, job: Job) -> None:
        self._do(job)
        self.note_other_step()

    def _do(self, job: Job) -> None:
        """Have the function begin, in a thread, unless that has been done or it was cancelled."""
        pending = job.crew.pending
        if job not in pending:
            return
        del pending[job]
        if job.cancelled:
            self._free(job)
            return
        job.crew.begun += 1
        carrier, first = job.crew.carrier()
        job.carrier = carrier
        around, self.job_line = self.job_line, job.line
        try:
            worker = self.begin_thread(
                job.path, carrier, lambda: job.run(first=first), lambda: self._over(job)
            )
        finally:
            self.job_line = around
        if worker.task is not None:
            worker.task.created = job.line

    def _over(self, job: Job) -> None:
        """The function is through; its future is told a little later, which is a choice."""
        job.crew.begun -= 1
        if job.of_pool:  # its thread has told it
            self._free(job)
            return
        takes = 0 if self.choices is None else self.choices.choose("job", job.path, len(TAKES))
        self.call_in(TAKES[takes], self._finish, job)

    def _finish(self, job: Job) -> None:
        job.tell()
        self._free(job)
        self.note_other_step()

    def _free(self, job: Job) -> None:
        """Have the next job take the worker."""
        following = job.crew.free(job.carrier)
        if following is not None:
            self.call_in(0, self._start, following)


def _shutdown(real: Mapping[str, Any]) -> Any:
    def shutdown(
        self: ThreadPoolExecutor,
        wait: bool = True,  # noqa: FBT001, FBT002 - as the real one
        *,
        cancel_futures: bool = False,
    ) -> None:
        loop = simulation()
        if isinstance(loop, Jobs):
            self._shutdown = True
            loop.end_pool(self, wait=wait, cancel=cancel_futures)
        real["shutdown"](self, wait, cancel_futures=cancel_futures)

    return shutdown


def _init(real: Mapping[str, Any]) -> Any:
    def init(self: ThreadPoolExecutor, *args: Any, **options: Any) -> None:
        real["__init__"](self, *args, **options)
        loop = simulation()
        if isinstance(loop, Jobs):
            loop.note_pool(self)

    return init


def _submit(real: Mapping[str, Any]) -> Any:
    def submit(self: Any, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        loop = simulation()
        if not isinstance(loop, Jobs):
            return real["submit"](self, function, *args, **options)
        actor = current()
        if actor is not None:
            actor.switch()
        loop.check_pool(self)
        if self._shutdown:
            return real["submit"](self, function, *args, **options)  # it says what is wrong
        return loop.submit(self, lambda: function(*args, **options))

    return submit


ALWAYS: tuple[Swaps, ...] = (
    Swap(futures._base, "id", lambda _real: hash),
    Swap(ThreadPoolExecutor, "__init__", _init),
    Swap(ThreadPoolExecutor, "submit", _submit),
    Swap(ThreadPoolExecutor, "shutdown", _shutdown),
)
"""What is swapped in every run."""
