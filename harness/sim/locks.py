"""Locks that threads of a run wait for in virtual time, and all others as ever.

Each stands on a real lock. A thread of a run never waits for that: it tries, and hands over until
it may try again. So a lock that outlives its run, or is used by other threads meanwhile, works.
"""

from __future__ import annotations

import _thread
import threading
from asyncio import Future
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harness.core.durations import SECOND
from harness.sim.actors import Actor, current
from harness.sim.boundary import THREAD, WAIT, simulation

if TYPE_CHECKING:
    from harness.sim.threads import Threads

    PyRLock: Any
else:
    PyRLock = threading._PyRLock

_FOREVER = -1
_FOREIGN = (
    "a thread that is no part of the run released a lock, or put into a queue, for which a thread "
    f"of the run waits, and the simulation does not control it; {THREAD}"
)


class Lock:
    """Stands in for `threading.Lock`; `real` is a lock that it stands before."""

    __slots__ = ("__weakref__", "_owner", "_real", "waiters")

    def __init__(self, real: Any = None) -> None:
        self._real = _thread.allocate_lock() if real is None else real
        self._owner: Actor | None = None
        self.waiters: list[Future[bool]] = []
        """Who waits in virtual time, in the order in which they came."""

    def acquire(self, blocking: bool = True, timeout: float = _FOREVER) -> bool:  # noqa: FBT001, FBT002 - as the real one
        """As `threading.Lock.acquire`."""
        actor = current()
        if actor is None:
            return self._acquire_outside(blocking, timeout)
        if timeout != _FOREVER:
            _thread.allocate_lock().acquire(blocking, timeout)  # a free one says what is wrong
        actor.switch()
        if self._try(actor):
            return True
        return blocking and self._wait(actor, timeout)

    def release(self) -> None:
        """As `threading.Lock.release`; a stop that comes at this moment does not keep it."""
        actor = current()
        try:
            if actor is not None:
                actor.switch()
        finally:
            owner, self._owner = self._owner, None
            self._real.release()
            if owner is not None:
                owner.held.pop(self, None)
            for waiter in self.waiters:
                _tell(waiter, own=actor is not None or simulation() is not None)

    def locked(self) -> bool:
        """As `threading.Lock.locked`."""
        actor = current()
        if actor is not None:
            actor.switch()
        return bool(self._real.locked())

    __enter__ = acquire

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<{'locked' if self._real.locked() else 'unlocked'} lock of a run>"

    def _at_fork_reinit(self) -> None:
        self._real = _thread.allocate_lock()
        self._owner = None
        self.waiters.clear()

    def _try(self, actor: Actor) -> bool:
        if not self._real.acquire(blocking=False):
            return False
        self._owner = actor
        actor.held[self] = None
        return True

    def _wait(self, actor: Actor, timeout: float) -> bool:
        kernel = actor.kernel
        # Less than a nanosecond is one: who waits for the rest of some time would do so for ever.
        length = 0 if timeout <= 0 else max(round(timeout * SECOND), 1)
        due = None if timeout < 0 else kernel.now() + length
        while True:
            # Before it hands over: others may release the lock before its task takes the next step.
            waiter = kernel.create_future()
            self.waiters.append(waiter)
            actor.wanted = None if self._owner is actor else self
            try:
                in_time = actor.call(partial(_freed, kernel, waiter, due))
            finally:
                actor.wanted = None
                self.waiters.remove(waiter)
            if self._try(actor):
                return True
            if not in_time:
                return False

    def _acquire_outside(self, blocking: bool, timeout: float) -> bool:  # noqa: FBT001 - as `acquire`
        if self._real.acquire(blocking=False):
            self._owner = None
            return True
        if not blocking or timeout == 0:
            return False
        loop = simulation()
        if loop is not None and self._owner is not None:
            loop.refuse("a lock that a thread of the run holds", WAIT)
        return bool(self._real.acquire(blocking, timeout))


class Signal(Lock):
    """The lock of one wait for a condition: who made it waits for it, and does not hold it."""

    __slots__ = ()

    def _try(self, actor: Actor) -> bool:  # noqa: ARG002 - nobody's
        return bool(self._real.acquire(blocking=False))


class RLock(PyRLock):  # type: ignore[misc]
    """Stands in for `threading.RLock`."""

    def __init__(self) -> None:
        super().__init__()
        self._block = Lock()


async def _freed(kernel: Threads, waiter: Future[bool], due: int | None) -> bool:
    """Wait until somebody releases the lock; False where the time is up before."""
    timer = None
    if due is not None:
        timer = kernel.call_in(max(due - kernel.now(), 0), _give_up, waiter)
    try:
        return await waiter
    finally:
        if timer is not None:
            timer.cancel()


def _tell(waiter: Future[bool], *, own: bool) -> None:
    """Have who waits try again; a thread that is none of its `own` run may do so at any time."""
    kernel: Any = waiter.get_loop()
    if own:
        kernel.call_in(0, _free, waiter)
    else:
        kernel.note_escape(_FOREIGN)


def _free(waiter: Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(True)


def _give_up(waiter: Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
