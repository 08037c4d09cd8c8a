"""Real threads and locks that are no part of a run, made and waited for while it lasts."""

from __future__ import annotations

import _thread
import threading
from asyncio import events
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.sim.actors import become

_start = threading.Thread.start
_join = threading.Thread.join


@contextmanager
def outside() -> Iterator[None]:
    """What runs here is no part of a run: it waits for real."""
    running, actor = events._get_running_loop(), become(None)
    events._set_running_loop(None)
    try:
        yield
    finally:
        events._set_running_loop(running)
        become(actor)


def start_outside(body: Callable[[], object], name: str) -> threading.Thread:
    """Start a real thread that the process does not wait for."""
    with outside():
        thread = threading.Thread(target=body, name=name, daemon=True)
        _start(thread)
    return thread


def begin_outside(thread: threading.Thread) -> None:
    """Start a thread for real."""
    with outside():
        _start(thread)


def join_outside(thread: threading.Thread) -> None:
    """Wait for real until a thread is gone."""
    with outside():
        _join(thread)


def locked() -> Any:
    """A real lock that somebody else will release."""
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock
