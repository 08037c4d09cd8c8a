"""The calls of the standard library that leave the simulation, and the guards before them.

A guard refuses the thread in which a simulated loop runs, and lets all others through. What has no
guard, since nothing can stand in its place, is listed in docs/reference/boundary.md.
"""

from __future__ import annotations

import _thread
import asyncio
import concurrent.futures
import os
import select
import selectors
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from harness.sim import where
from harness.sim.boundary import (
    DESCRIPTOR,
    NETWORK,
    PROCESS,
    SIGNAL,
    THREAD,
    simulation,
)
from harness.sim.order import set_of_awaitables
from harness.sim.swaps import ModuleSwaps, Swap, Swaps


class Guard(NamedTuple):
    """How reports name a call, what to do instead, and when it is refused (None: always)."""

    what: str
    instead: str
    refused: Callable[..., bool] | None = None


def _functions(module: ModuleType, instead: str, names: str) -> tuple[ModuleType, dict[str, Guard]]:
    return module, {name: Guard(f"{module.__name__}.{name}()", instead) for name in names.split()}


def waits(_self: object, timeout: float | None = None) -> bool:
    """Whether a call with that time limit waits."""
    return timeout is None or timeout > 0


def _selects(_r: object, _w: object, _x: object, timeout: float | None = None) -> bool:
    return waits(None, timeout)


FUNCTIONS: tuple[tuple[ModuleType, dict[str, Guard]], ...] = (
    _functions(_thread, THREAD, "start_new_thread start_joinable_thread"),
    _functions(os, PROCESS, "system fork forkpty posix_spawn posix_spawnp"),
    _functions(
        socket, NETWORK, "getaddrinfo getnameinfo gethostbyname gethostbyname_ex gethostbyaddr"
    ),
    _functions(signal, SIGNAL, "signal alarm setitimer"),
    (select, {"select": Guard("select.select()", DESCRIPTOR, _selects)}),
)
"""Functions, by their module; modules of users may hold them under names of their own."""

_SOCKET = "connect connect_ex listen accept send sendall sendto recv recv_into recvfrom"
_TLS = "read send"
"""The calls that others of these sockets are made of; of the rest the watchdog sees what waits."""


def _methods(kind: type, instead: str, names: str) -> tuple[Any, dict[str, Guard]]:
    return kind, {name: Guard(f"{kind.__name__}.{name}()", instead) for name in names.split()}


_METHODS: tuple[tuple[Any, dict[str, Guard]], ...] = (
    _methods(socket.socket, NETWORK, _SOCKET),
    _methods(ssl.SSLSocket, NETWORK, _TLS),
    (selectors.DefaultSelector, {"select": Guard("a selector", DESCRIPTOR, waits)}),
    (subprocess.Popen, {"__init__": Guard("a subprocess", PROCESS)}),
)
_PROCESSES = "concurrent.futures.process"
"""Its pool is guarded where it is loaded: in a run it cannot start what it needs."""
_SUBMIT = Guard("a pool's submit()", PROCESS)
_FORK = "_posixsubprocess"
"""By this multiprocessing starts processes, where it does not fork."""


def stand_in(guard: Guard, name: str) -> Callable[[Mapping[str, Any]], Any]:
    """What makes the stand-in of a guarded call, given what it stands in for."""
    return lambda real: guarded_call(guard, real[name])


def guarded_call(guard: Guard, real: Callable[..., Any]) -> Callable[..., Any]:
    """A call that is refused where the guard says so."""

    def call(*args: Any, **options: Any) -> Any:
        loop = simulation()
        if (
            loop is not None
            and (guard.refused is None or guard.refused(*args, **options))
            and not where.in_a_debugger(2)
        ):
            loop.refuse(guard.what, guard.instead)
        return real(*args, **options)

    return call


def guarded(names: dict[str, Any], guards: Mapping[str, Guard]) -> ModuleSwaps:
    """The guards of functions, by the names that a module has for them."""
    return ModuleSwaps(names, {name: stand_in(guard, name) for name, guard in guards.items()})


def _watch_chains(real: Mapping[str, Any]) -> Any:
    def chain(source: Any, destination: Any) -> None:
        """Connect two futures, as asyncio does; one that another thread completes is noted."""
        loop = simulation()
        if loop is not None and isinstance(source, concurrent.futures.Future):
            loop.note_foreign(source)
        real["_chain_future"](source, destination)

    return chain


ALWAYS: tuple[Swaps, ...] = (
    *[guarded(vars(module), guards) for module, guards in FUNCTIONS],
    *[
        Swap(owner, name, stand_in(guard, name))
        for owner, guards in _METHODS
        for name, guard in guards.items()
    ],
    Swap(asyncio.tasks, "set", lambda _real: set_of_awaitables),
    ModuleSwaps(vars(asyncio.futures), {"_chain_future": _watch_chains}),
)
"""What is swapped in every run."""

_loaded: dict[str, Swaps] = {}


def where_loaded() -> list[Swaps]:
    """The guards of modules that are loaded by now, and that we do not load."""
    if _PROCESSES in sys.modules and _PROCESSES not in _loaded:
        pool = sys.modules[_PROCESSES].ProcessPoolExecutor
        _loaded[_PROCESSES] = Swap(pool, "submit", stand_in(_SUBMIT, "submit"))
    if _FORK in sys.modules and _FORK not in _loaded:
        fork = Guard("a subprocess", PROCESS)
        _loaded[_FORK] = guarded(vars(sys.modules[_FORK]), {"fork_exec": fork})
    return list(_loaded.values())
