"""Threads of the operating system; in a run under the simulator, those that it controls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


class RealThreads:
    """Threads for which the process does not wait at its end, and what they wait for."""

    def start(self, work: Callable[[], None]) -> None:
        """Run `work` in a new thread."""
        threading.Thread(target=work, name="beside-the-loop", daemon=True).start()

    def event(self) -> threading.Event:
        """A new flag."""
        return threading.Event()

    def lock(self) -> AbstractContextManager[Any]:
        """A new lock."""
        return threading.RLock()
