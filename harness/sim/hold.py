"""What a run holds still in its process: the garbage collector, calls that really block, sets."""

from __future__ import annotations

import asyncio
import gc
import importlib
import socket
import subprocess
import sys
import threading
import time
from asyncio import events
from collections.abc import Callable
from typing import Any

from harness.sim.boundary import NETWORK, PROCESS, SLEEP, THREAD, Boundary
from harness.sim.order import OrderedSet, set_of_awaitables

_ANYIO = "anyio._backends._asyncio"


class _Swap:
    """Something that stands in another's place for as long as a run lasts."""

    __slots__ = ("inherited", "name", "owner", "real", "replacement")

    def __init__(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        self.owner = owner
        self.name = name
        self.replacement = replacement
        self.inherited = False
        self.real: Any = None

    def place(self) -> None:
        """Put the replacement before what is there now, which may be a test's own patch."""
        self.inherited = self.name not in vars(self.owner)
        self.real = getattr(self.owner, self.name, None)
        setattr(self.owner, self.name, self.replacement)

    def lift(self) -> None:
        """Put back what was there, unless somebody has put something else there since."""
        if vars(self.owner).get(self.name) is not self.replacement:
            return
        if self.inherited:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.real)


def _guard(owner: Any, name: str, what: str, instead: str) -> _Swap:
    """A swap that refuses the thread in which a simulated loop runs, and serves all others."""

    def guarded(*args: Any, **options: Any) -> Any:
        loop = events._get_running_loop()
        if isinstance(loop, Boundary):
            loop.refuse(what, instead)
        return swap.real(*args, **options)

    swap = _Swap(owner, name, guarded)
    return swap


_SWAPS = (
    _guard(time, "sleep", "time.sleep()", SLEEP),
    _guard(threading.Thread, "start", "a real thread", THREAD),
    _guard(socket, "getaddrinfo", "socket.getaddrinfo()", NETWORK),
    _guard(socket.socket, "connect", "socket.connect()", NETWORK),
    _guard(subprocess.Popen, "__init__", "a subprocess", PROCESS),
    _Swap(asyncio.tasks, "set", set_of_awaitables),
)


_OLDEST = 500
"""How many collections of the middle generation go by before one of all; that takes as long as a
hundred runs, and is due after several thousand."""


class _Held:
    """What is held now: by how many runs, which swaps, and whether the collector was on before."""

    __slots__ = ("collected", "runs", "scopes", "swaps")

    def __init__(self) -> None:
        self.runs = 0
        self.swaps: list[_Swap] = []
        self.scopes = False
        self.collected = False


_held = _Held()


def hold() -> None:
    """Hold the process still, until as many calls of `release`.

    When the collector runs depends on everything the process has ever allocated, and it closes
    the async generators it finds: it would put steps into a run that another run does not have.
    """
    if _held.runs == 0:
        _held.collected = gc.isenabled()
        gc.disable()
        for swap in _SWAPS:
            swap.place()
        _held.swaps.extend(_SWAPS)
    _held.runs += 1


def order_scopes() -> None:
    """Have anyio, where it is used, cancel its scopes in the order in which they were entered.

    Its backend keeps scopes in sets, by address; its module is given a set that keeps the order.
    """
    if not _held.scopes and "anyio" in sys.modules:
        backend = sys.modules.get(_ANYIO) or importlib.import_module(_ANYIO)
        swap = _Swap(backend, "set", OrderedSet)
        swap.place()
        _held.swaps.append(swap)
        _held.scopes = True


def release() -> None:
    """Undo one `hold`; the last one collects what the runs left behind.

    The youngest generation holds all that was allocated meanwhile. The older two hold little, and
    are collected less often, as the collector does it when it is on.
    """
    _held.runs -= 1
    if _held.runs:
        return
    for swap in _held.swaps:
        swap.lift()
    _held.swaps.clear()
    _held.scopes = False
    if _held.collected:
        _, middle, oldest = gc.get_count()
        if oldest > _OLDEST:
            gc.collect(2)
        else:
            gc.collect(1 if middle > gc.get_threshold()[1] else 0)
        gc.enable()
