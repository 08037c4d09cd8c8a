"""Stopping a turn: work in tasks of its own, waited for until it is over or the turn is cancelled.

A turn is cancelled by its signal or by cancelling its task; both are the same abort here. The
turn's task is suspended in `Cancellation.settle` only (and where it takes a cancel that it already
has), so where it can be cancelled does not depend on how a model cuts its reply.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from harness.core.cancel_signal import CancelSignal

T = TypeVar("T")


class Ok(Struct, Generic[T], frozen=True):
    """The work gave a value."""

    value: T


class Failed(Struct, frozen=True):
    """The work raised an error."""

    error: BaseException


class Aborted(Struct, frozen=True):
    """The turn was stopped first; the work was given up."""


Raced: TypeAlias = Ok[T] | Failed | Aborted


class Job(Generic[T]):
    """One piece of work in a task of its own; what it comes to is kept here, never in the task.

    `noticed`, where given, says whether the work has seen by itself that the turn was stopped; it
    then comes to its end in peace. `begins_anyway`: given up before its first step, it still runs
    up to its first wait.
    """

    def __init__(
        self,
        call: Callable[[], Awaitable[T]],
        *,
        noticed: Callable[[], bool] | None = None,
        begins_anyway: bool = False,
    ) -> None:
        self.started = False
        self.given_up = False
        self._ended: Ok[T] | Failed | None = None
        self._call = call
        self._noticed = noticed
        self._begins_anyway = begins_anyway
        self.task = asyncio.get_running_loop().create_task(self._run())

    @property
    def ended(self) -> Ok[T] | Failed | None:
        """What the work came to; None where it is not over, or was given up before it began."""
        if self._ended is None and not self.given_up and self.task.cancelled():
            return Failed(CancelledError())  # somebody cancelled the task before it began
        return self._ended

    async def _run(self) -> None:
        self.started = True
        if self.given_up:
            self.task.cancel()
        try:
            self._ended = Ok(await self._call())
        except CancelledError as error:
            self._ended = Failed(error)
            raise
        except Exception as error:
            self._ended = Failed(error)

    def give_up(self) -> None:
        """Cancel the work, once; nobody waits for it any more."""
        if self.given_up or self.task.done():
            return
        self.given_up = True
        if self._begins_anyway and not self.started:
            return
        if self._noticed is None or not self._noticed():
            self.task.cancel()

    def may_notice(self) -> bool:
        """Whether the work is running right now, and may see a stop before it waits again."""
        return self._noticed is not None and asyncio.current_task() is self.task


class Cancellation:
    """The two ways in which one turn is stopped, as one.

    `native` is the CancelledError that the turn's own task got; the turn writes its rows without
    waiting, then raises it again. `grace` is how long, in seconds, work that was given up is waited
    for.
    """

    def __init__(self, signal: CancelSignal | None, grace: float = 0) -> None:
        self.native: CancelledError | None = None
        self._signal = signal
        self._grace = grace
        self._cancels = _cancels()
        """How often the turn's task had been cancelled before."""

    def stopped(self) -> bool:
        """Whether the turn was told to stop."""
        return self.native is not None or (self._signal is not None and self._signal.aborted)

    async def stopped_by_now(self) -> bool:
        """The same, a cancel included that the turn's task got while it ran.

        asyncio would raise it at the task's next wait only, when what is asked for now has begun.
        """
        if self.native is None and _cancels() > self._cancels:
            try:
                await asyncio.sleep(0)
            except CancelledError as error:
                self.native = error
        return self.stopped()

    async def settle(self, jobs: Sequence[Job[Any]]) -> bool:
        """Wait until all `jobs` are over, or the turn is stopped: then give them up, and False.

        Whichever comes first counts, an abort from the moment it is signalled.
        """
        if not jobs:
            return True
        loop = asyncio.get_running_loop()
        wait = _Wait(jobs)

        def stop() -> None:
            for job in jobs:
                job.give_up()
            wait.wake(all_over=False)

        def on_abort() -> None:
            if not _runs_here(loop):
                loop.call_soon_threadsafe(stop)
            elif any(job.may_notice() for job in jobs):
                loop.call_soon(stop)
            else:
                stop()

        signal = self._signal
        if signal is not None and not signal.add_listener(on_abort):
            loop.call_soon(stop)  # not at once: jobs that begin anyway do so before
        try:
            all_over = await wait.future
        except CancelledError as error:
            self.native = error
            stop()
            all_over = False
        finally:
            wait.release()
            if signal is not None:
                signal.remove_listener(on_abort)
        if not all_over and self.native is None and self._grace > 0:
            await self._linger([job for job in jobs if not job.task.done()])
        return all_over

    async def _linger(self, jobs: Sequence[Job[Any]]) -> None:
        if not jobs:
            return
        wait = _Wait(jobs)
        timer = asyncio.get_running_loop().call_later(self._grace, wait.wake)
        try:
            await wait.future
        except CancelledError as error:
            self.native = error
        finally:
            timer.cancel()
            wait.release()


class _Wait:
    """One suspension: until a number of jobs are over, or until it is woken."""

    def __init__(self, jobs: Sequence[Job[Any]]) -> None:
        self.future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._jobs = jobs
        self._left = len(jobs)
        for job in jobs:
            job.task.add_done_callback(self._one_less)

    def _one_less(self, _task: asyncio.Task[None]) -> None:
        self._left -= 1
        if not self._left:
            self.wake(all_over=True)

    def wake(self, *, all_over: bool = False) -> None:
        """End the wait; only the first call counts."""
        if not self.future.done():
            self.future.set_result(all_over)

    def release(self) -> None:
        """Leave nothing behind on the jobs' tasks."""
        for job in self._jobs:
            job.task.remove_done_callback(self._one_less)


async def race(work: Awaitable[T], signal: CancelSignal | None) -> Raced[T]:
    """Wait for `work` or for the signal, whichever comes first; never raises what `work` raises.

    With the signal already aborted the work does not begin. What given-up work comes to later is
    ignored. Cancelling the caller's task gives the work up and raises CancelledError.
    """
    cancellation = Cancellation(signal)
    if cancellation.stopped():
        drop(work)
        return Aborted()
    job = Job(lambda: work)
    settled = await cancellation.settle([job])
    if not job.started:
        drop(work)
    if cancellation.native is not None:
        raise cancellation.native
    return job.ended if settled and job.ended is not None else Aborted()


def drop(work: Awaitable[Any]) -> None:
    """Give up work that nobody awaits: a coroutine is closed, a future cancelled, and what it
    raises is nobody's.
    """
    if asyncio.isfuture(work):
        work.cancel()
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
    elif asyncio.iscoroutine(work):
        work.close()


def _cancels() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
