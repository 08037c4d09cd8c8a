"""Ends a step that never gives way, such as `while True: pass`, which would hang the process.

One thread for the process looks at the kernels that run, once a second, and goes when none runs
any more. It counts the real time in which the process worked and a kernel did not move. A debugger
that holds the process, a machine that is overloaded or asleep, and an import add nothing to that.
Past the kernel's limit `Stuck` is raised in the step, and the kernel stops as ``stuck``.

The code of a synchronous agent between its calls is watched as well, in the thread that plays it.
If that stands still, it waits for something that nobody of the run will give it: a signal
interrupts it, where it is the main thread.

Else a step that waits in C code without working is not ended, nor is one that works there without
giving way to other threads, nor one that catches whatever is raised in it; of the last, standard
error tells.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Protocol

from harness.sim import where
from harness.sim.stillness import LOOK, Stillness

SIGNAL: signal.Signals = getattr(signal, "SIGURG", signal.SIGTERM)
"""What interrupts a thread that stands still; by itself it does nothing."""
_LONGEST_TICK = 0.5
"""Real seconds from one look to the next."""
_LOOKS = 5
"""How many looks a limit is made of, at least."""
_JUMPS = 1_000
"""Jumps back in a loop, at each of which an exception from another thread can arrive."""


class Stuck(BaseException):
    """Raised in the middle of a step that does not give way."""

    def __str__(self) -> str:
        return "a step that did not give way was ended"


class Watched(Protocol):
    """A kernel, as it is watched."""

    def progress(self) -> tuple[object, ...]:
        """What is different when anything has moved."""
        ...

    def patience(self) -> float:
        """The real seconds of work that one step may take."""
        ...

    def current_path(self) -> str:
        """The path of the task that runs."""
        ...

    def acting_thread(self) -> int | None:
        """The thread that makes the step, where it is not the kernel's own."""
        ...

    def note_stuck(self, detail: str) -> None:
        """Take note of why the run is to stop."""
        ...

    def note_still(self, path: str, frame: FrameType | None) -> None:
        """Take note that a thread of the run stands still."""
        ...


class Watch:
    """A kernel that runs in a thread, how long it has not moved, and what ran there before.

    `own` is the path of an agent's own code that runs in it, where no kernel does; `still` watches
    the thread itself then.
    """

    __slots__ = ("busy", "fired", "kernel", "outer", "own", "seen", "still")

    def __init__(self, kernel: Watched, outer: Watch | None, own: str | None) -> None:
        self.kernel = kernel
        self.own = own
        self.still = None if own is None else Stillness(threading.get_ident())
        self.outer = outer
        self.seen: tuple[object, ...] | None = None
        self.busy = 0.0
        self.fired = 0


class Watchdog:
    """Watches the innermost kernel of each thread."""

    def __init__(self) -> None:
        self._running: dict[int, Watch] = {}
        self._alive = False
        self._heard = False
        """Whether the main thread has been made to hear of `SIGNAL`."""
        self._lock = threading.Lock()
        self._never = threading.Lock()
        self._never.acquire()

    def enter(self, kernel: Watched, *, own: str | None = None) -> Watch:
        """Watch a kernel that begins to run in this thread; give what `leave` needs.

        Or watch an agent's own code, at a path, between the runs of the kernel.
        """
        thread = threading.get_ident()
        if own is not None and not self._heard:
            self._heard = _listen()
        watch = self._running[thread] = Watch(kernel, self._running.get(thread), own)
        if not self._alive:
            self._start()
        return watch

    def leave(self, watch: Watch) -> None:
        """Watch the kernel of this thread no longer, but the one around it.

        Nothing is raised any more when this returns.
        """
        try:
            self._leave(watch)
        except Stuck:  # it was on its way; the step had ended
            self._leave(watch)
        except KeyboardInterrupt:
            if not watch.fired:
                raise
            self._leave(watch)

    def _leave(self, watch: Watch) -> None:
        thread = threading.get_ident()
        with self._lock:
            if self._running.get(thread) is watch:
                if watch.outer is None:
                    del self._running[thread]
                else:
                    watch.outer.seen = None
                    self._running[thread] = watch.outer
        if watch.fired:
            _receive()

    def forget(self) -> None:
        """Begin anew in a forked process: it has no thread but the one that forked."""
        self._running.clear()
        self._alive = False
        self._lock = threading.Lock()

    def _start(self) -> None:
        with self._lock:
            if self._alive:
                return
            self._alive = True
        threading.Thread(target=self._watch, name="harness watchdog", daemon=True).start()

    def _watch(self) -> None:
        worked = time.process_time()
        while self._goes_on():
            patience = [watch.kernel.patience() for watch in list(self._running.values())]
            own = any(watch.own is not None for watch in list(self._running.values()))
            longest = LOOK if own else _LONGEST_TICK
            tick = min([longest, *[seconds / _LOOKS for seconds in patience]])
            self._never.acquire(timeout=tick)  # a sleep that nobody patches
            before, worked = worked, time.process_time()
            self.look(min(tick, worked - before))

    def _goes_on(self) -> bool:
        """Whether anything runs; the thread must not go while somebody relies on it."""
        if self._running:
            return True
        with self._lock:
            self._alive = False
            self._alive = bool(self._running)
            return self._alive

    def look(self, worked: float) -> None:
        """See what has not moved since the last look, in which `worked` seconds were worked."""
        for thread, watch in list(self._running.items()):
            progress = watch.kernel.progress()
            if progress != watch.seen:
                watch.seen = progress
                watch.busy = 0.0
                if watch.still is not None:
                    watch.still.start()
                continue
            if watch.still is not None and not watch.fired and watch.still.found():
                self._wake(thread, watch, watch.still)
            watch.busy += worked
            if watch.busy < watch.kernel.patience():
                continue
            watch.busy = 0.0
            with self._lock:
                acting = watch.kernel.acting_thread() or thread
                frame = sys._current_frames().get(acting)
                if frame is None or self._running.get(thread) is not watch:
                    continue
                if not where.importing(frame):  # it may take long, and must not be broken off
                    self._fire(acting, watch, frame)

    def _wake(self, thread: int, watch: Watch, still: Stillness) -> None:
        """Interrupt a thread that stands still, where that can be done."""
        if thread != threading.main_thread().ident or not self._heard:
            return
        with self._lock:
            if self._running.get(thread) is watch:
                watch.fired += 1
                watch.kernel.note_still(watch.own or "", still.frame())
                signal.pthread_kill(thread, SIGNAL)

    def interrupt(self, *_signal: object) -> None:
        """Raise Stuck in the main thread, if what it does now was told to end."""
        watch = self._running.get(threading.get_ident())
        if watch is not None and watch.fired:
            raise Stuck

    def _fire(self, thread: int, watch: Watch, frame: FrameType) -> None:
        path = watch.kernel.current_path()
        who = f"task {path}" if path else "a callback"
        lines = where.stack(frame)
        detail = f"{who} did not give way in {watch.kernel.patience():g} s of work"
        if lines:
            detail += f"; it is at {', called from '.join(lines)}"
        watch.fired += 1
        watch.kernel.note_stuck(detail)
        _raise_in(thread)
        if watch.fired == 2:
            told = f"harness: {detail}; it catches what would end it, so end the process\n"
            sys.stderr.write(told)


def _listen() -> bool:
    """Have `SIGNAL` interrupt the main thread, where that is this one and nobody else listens.

    Ctrl-C's own signal will not do: a process in the background, or one of several, ignores it.
    """
    main = threading.current_thread() is threading.main_thread()
    if not (main and hasattr(signal, "pthread_kill")):
        return False
    if signal.getsignal(SIGNAL) not in (signal.SIG_DFL, signal.SIG_IGN):
        return False
    signal.signal(SIGNAL, WATCHDOG.interrupt)
    return True


def _raise_in(thread: int) -> None:
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Stuck))


def _receive() -> None:
    """Have what is on its way to this thread arrive here, and be gone.

    To take it back would leave the interpreter waiting for it, for ever under a tracer (3.11).
    """
    with suppress(Stuck, KeyboardInterrupt):
        for _ in range(_JUMPS):
            pass


WATCHDOG = Watchdog()
"""The one of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WATCHDOG.forget)
