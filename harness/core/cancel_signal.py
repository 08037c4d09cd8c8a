"""The signal that stops one turn: owned by whoever may stop it, read by the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

Listener: TypeAlias = Callable[[], None]


class CancelSignal:
    """Says once and for all that a turn should stop.

    A signal cancels one turn and is never reset. `abort` may be called from any thread, any
    number of times; the listeners run once, in the order they were added, in the thread of the
    first `abort`. A listener added after the abort is never called: read `aborted` first.
    """

    __slots__ = ("_listeners", "_lock", "aborted")

    def __init__(self) -> None:
        self.aborted = False
        self._listeners: dict[Listener, None] = {}
        self._lock = threading.Lock()

    def abort(self) -> None:
        """Stop the turn; a second call does nothing."""
        with self._lock:
            if self.aborted:
                return
            self.aborted = True
            listeners = list(self._listeners)
            self._listeners.clear()
        for listener in listeners:
            listener()

    def add_listener(self, listener: Listener) -> bool:
        """Call `listener` at the abort; False, and nothing added, where it has already happened."""
        with self._lock:
            if self.aborted:
                return False
            self._listeners[listener] = None
            return True

    def remove_listener(self, listener: Listener) -> None:
        """Forget `listener`; unknown ones are ignored, since an abort may have taken it."""
        with self._lock:
            self._listeners.pop(listener, None)

    @property
    def listeners(self) -> int:
        """How many listeners are waiting; a loop that leaves some behind leaks."""
        return len(self._listeners)
