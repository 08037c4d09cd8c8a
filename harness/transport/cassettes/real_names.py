"""The moments in which vcrpy needs real classes in the places of its own.

It puts back all of them then, and ours, for the whole process: what other threads ask meanwhile
would reach the network, and two that do so at once leave some in the wrong places. Only classes
that call themselves by their names, while they are made, need that, and for these it is done here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock
from typing import Final
from unittest import mock

_CALLED: Final = {
    "http.client": ("HTTPSConnection",),
    "httplib2": (
        "HTTPConnectionWithTimeout",
        "HTTPSConnectionWithTimeout",
        "SCHEME_TO_CONNECTION",
    ),
}
"""Modules, and names in them by which classes call themselves, or each other."""


class RealNames:
    """Puts the real classes in their places, for as long as any thread needs them."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._needed = 0
        self._placed = ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The real classes are in their places while the block runs."""
        with self._lock:
            if not self._needed:
                self._place()
            self._needed += 1
        try:
            yield
        finally:
            with self._lock:
                self._needed -= 1
                if not self._needed:
                    self.leave()

    def leave(self) -> None:
        """Put back what was there, as it has to be before that is taken away."""
        with self._lock:
            self._placed.close()

    def _place(self) -> None:
        from vcr import patch  # type: ignore[import-untyped]

        for module in [name for name in _CALLED if name in sys.modules]:
            for name in _CALLED[module]:
                real = getattr(patch, f"_{name}")
                self._placed.enter_context(mock.patch.object(sys.modules[module], name, real))
