"""Results that come later, and asking the user one thing at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

from harness.loops.fsm.ports import Event, Threads

Woken: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[None]]
"""Calls a function as soon as the run is cancelled, or at once; while the context is open."""


@contextmanager
def never_woken(_wake: Callable[[], None]) -> Iterator[None]:
    """For those who wait whatever happens."""
    yield


class GivenUp(Exception):
    """Raised by the work of an asynchronous tool for which nobody waits any more."""


class PendingToolResult:
    """What an asynchronous tool returns at once, and delivers to later from another thread.

    The first `deliver`, `fail` or `give_up` counts.
    """

    def __init__(self, threads: Threads) -> None:
        self.given_up = False
        self._ended = False
        self._done = threads.event()
        self._lock = threads.lock()
        self._value: Any = None
        self._error: BaseException | None = None

    def deliver(self, value: Any) -> None:
        """The tool is through."""
        self._end(value, None, given_up=False)

    def fail(self, error: BaseException) -> None:
        """The tool broke; `wait` raises this."""
        self._end(None, error, given_up=False)

    def give_up(self) -> None:
        """Nobody waits for the tool any more: `wait` comes back with None."""
        self._end(None, None, given_up=True)

    def wait(self) -> Any:
        """Wait for the tool and give what it delivered."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def _end(self, value: Any, error: BaseException | None, *, given_up: bool) -> None:
        with self._lock:
            if not self._ended:
                self._ended = True
                self._value, self._error, self.given_up = value, error, given_up
                self._done.set()


def in_thread(threads: Threads, work: Callable[[], Any]) -> PendingToolResult:
    """Do `work` in a thread of its own, for a tool to return at once; what it gives or raises is
    the tool's result, and where it raises GivenUp there is none.
    """
    handle = PendingToolResult(threads)

    def run() -> None:
        try:
            handle.deliver(work())
        except GivenUp:
            handle.give_up()
        except BaseException as error:
            handle.fail(error)
            if not isinstance(error, Exception):
                raise

    threads.start(run)
    return handle


class Turnstile:
    """Lets one through at a time, in the order in which they came."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = threads.lock()
        self._line: deque[Event] = deque()

    @contextmanager
    def through(self, woken: Woken = never_woken) -> Iterator[bool]:
        """Wait for one's turn and keep it while the context is open; False where the wait was
        broken off, so that it is not one's turn.
        """
        mine = self._threads.event()
        with self._lock:
            self._line.append(mine)
        try:
            with woken(mine.set):
                if self._line[0] is not mine:
                    mine.wait()
            yield self._line[0] is mine
        finally:
            with self._lock:
                first = self._line[0] is mine
                self._line.remove(mine)
                if first and self._line:
                    self._line[0].set()
