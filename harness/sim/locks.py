"""Locks that threads of a run wait for in virtual time, and all others as ever.

Each stands on a real lock. A thread of a run never waits for that: it tries, and hands over until
it may try again. So a lock that outlives its run, or is used by other threads meanwhile, works.
"""

from __future__ import annotations

import _thread
import threading
from asyncio import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harness.core.durations import SECOND
from harness.sim.actors import Actor, current
from harness.sim.boundary import WAIT, simulation

if TYPE_CHECKING:
    from harness.sim.threads import Threads

    PyRLock: Any
else:
    PyRLock = threading._PyRLock

_FOREVER = -1


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
        if not blocking and timeout != _FOREVER:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != _FOREVER:
            raise ValueError("timeout value must be a non-negative number")
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
                _tell(waiter)

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
        due = None if timeout < 0 else kernel.now() + round(timeout * SECOND)
        while True:
            in_time = actor.call(lambda: self._freed(kernel, due))
            if self._try(actor):
                return True
            if not in_time:
                return False

    async def _freed(self, kernel: Threads, due: int | None) -> bool:
        """Wait until somebody releases it; False where the time is up before."""
        waiter = kernel.create_future()
        self.waiters.append(waiter)
        timer = None
        if due is not None:
            timer = kernel.call_in(max(due - kernel.now(), 0), _give_up, waiter)
        try:
            freed: bool = await waiter
            return freed
        finally:
            self.waiters.remove(waiter)
            if timer is not None:
                timer.cancel()

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


class RLock(PyRLock):  # type: ignore[misc]
    """Stands in for `threading.RLock`."""

    def __init__(self) -> None:
        super().__init__()
        self._block = Lock()


def _tell(waiter: Future[bool]) -> None:
    kernel: Any = waiter.get_loop()
    kernel.call_in(0, _free, waiter)


def _free(waiter: Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(True)


def _give_up(waiter: Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
