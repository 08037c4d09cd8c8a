"""What stands in for the calls of `threading`, `queue` and pools while a run lasts.

A thread of a run goes through each of them as through one step: before it, others may go first, and
within it nobody else does anything, unless it waits. What the calls are made of is theirs: they
build on locks, and the locks of a run wait in virtual time.
"""

from __future__ import annotations

import asyncio
import operator
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from types import ModuleType
from typing import Any

from harness.core.durations import SECOND
from harness.sim import virtual
from harness.sim.actors import Actor, current
from harness.sim.boundary import SLEEP, WAIT, simulation
from harness.sim.guards import Guard, guarded_call, waits
from harness.sim.locks import Lock, RLock, Signal
from harness.sim.swaps import Make, ModuleSwaps, Swap, Swaps, ready
from harness.sim.threads import Threads

_SHORTEST = 1 / SECOND
"""A nanosecond; a wait for less than that takes so long, as it does not end by then."""
_PyQueue: Any = queue._PySimpleQueue  # type: ignore[attr-defined]

OPERATIONS: tuple[tuple[Any, str], ...] = (
    (threading.Event, "set clear is_set"),
    (threading.Condition, "notify notify_all"),
    (threading.Semaphore, "acquire release"),
    (threading.BoundedSemaphore, "release"),
    (threading.Barrier, "wait reset abort"),
    (threading.Thread, "is_alive"),
    (queue.Queue, "put get join task_done qsize empty full"),
    (_PyQueue, "put get qsize empty"),
    (futures.Future, "result exception done running cancelled cancel"),
    (futures._base._AcquireFutures, "__enter__ __exit__"),
)
"""The calls that are one step each."""
_LETS_GO = frozenset({"set", "notify", "notify_all", "release", "task_done", "cancel", "__exit__"})
"""Calls that wait for nothing, and that others wait for: an interrupt comes after them, not in
their place, as clean-up code makes them.
"""


def _operation(name: str) -> Callable[[Mapping[str, Any]], Any]:
    def make(real: Mapping[str, Any]) -> Any:
        function = real[name]

        def operated(*args: Any, **options: Any) -> Any:
            actor = current()
            if actor is None or actor.inside:
                return function(*args, **options)
            try:
                actor.switch()
            except KeyboardInterrupt:
                if name in _LETS_GO:
                    with _Inside(actor):
                        function(*args, **options)
                raise
            with _Inside(actor):
                return function(*args, **options)

        return operated

    return make


class _Inside:
    """While it is open an actor is within one operation."""

    __slots__ = ("_actor",)

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def __enter__(self) -> None:
        self._actor.inside += 1

    def __exit__(self, *_error: object) -> None:
        self._actor.inside -= 1


def _wait(real: Mapping[str, Any]) -> Any:
    """`Condition.wait`, which no task may call: nothing of its loop would go on."""
    guarded = guarded_call(Guard("a wait for another thread", WAIT, waits), real["wait"])
    operated = _operation("wait")(real)

    def wait(self: threading.Condition, timeout: float | None = None) -> Any:
        return (guarded if current() is None else operated)(self, timeout)

    return wait


def _wait_for_event(real: Mapping[str, Any]) -> Any:
    """`Event.wait`: one in vain takes time, or a loop that waits for what is left never ends."""
    operated = _operation("wait")(real)

    def wait(self: threading.Event, timeout: float | None = None) -> Any:
        return operated(self, _SHORTEST if timeout == 0 and current() is not None else timeout)

    return wait


def _sleep(real: Mapping[str, Any]) -> Any:
    guarded = guarded_call(Guard("time.sleep()", SLEEP), real["sleep"])

    def sleep(seconds: float) -> None:
        actor = current()
        if actor is None:
            guarded(seconds)
            return
        given: Any = seconds
        length = given if isinstance(given, float) else operator.index(given)
        if not 0 <= length < threading.TIMEOUT_MAX:
            real["sleep"](length)  # it says what is wrong
        elif length:
            actor.call(lambda: asyncio.sleep(max(length, _SHORTEST)))
        else:
            actor.switch()

    return sleep


def _start(real: Mapping[str, Any]) -> Any:
    def start(self: threading.Thread) -> None:
        loop = simulation()
        if not isinstance(loop, Threads):
            real["start"](self)
            return
        actor = current()
        if actor is not None:
            actor.switch()
        loop.start_thread(self)

    return start


def _join(real: Mapping[str, Any]) -> Any:
    def joins(thread: threading.Thread, timeout: float | None = None) -> bool:
        return thread.is_alive() and waits(thread, timeout)

    guarded = guarded_call(Guard("a wait for a real thread", WAIT, joins), real["join"])

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        actor = current()
        worker = None if actor is None else actor.kernel.worker_of(self)
        own = actor is not None and self is threading.current_thread()
        if actor is None or worker is None or own:
            (real["join"] if own else guarded)(self, timeout)  # the real one says what is wrong
            return
        actor.switch()
        if not worker.over and worker.task is not None:
            task = worker.task
            left = None if timeout is None else max(timeout, _SHORTEST if timeout > 0 else 0)
            actor.call(lambda: asyncio.wait([task], timeout=left))

    return join


def _new_name(real: Mapping[str, Any]) -> Any:
    def name(template: str = "Thread-%d") -> str:
        loop = simulation()
        if isinstance(loop, Threads):
            return template % loop.next_name()
        given: str = real["_newname"](template)
        return given

    return name


FUNCTIONS: tuple[tuple[ModuleType, dict[str, Make]], ...] = (
    (time, {"sleep": _sleep}),
    (threading, {"Lock": ready(Lock), "RLock": ready(RLock)}),
    (queue, {"SimpleQueue": ready(_PyQueue)}),
)
"""What makes the stand-ins of functions, which modules of users may hold under other names."""

_MONOTONIC = dict(virtual.FUNCTIONS)[time]["monotonic"]
"""By which `threading` and `queue` see, under names of their own, how long they still wait."""

ALWAYS: tuple[Swaps, ...] = (
    *[Swap(owner, name, _operation(name)) for owner, names in OPERATIONS for name in names.split()],
    Swap(threading.Condition, "wait", _wait),
    Swap(threading.Event, "wait", _wait_for_event),
    Swap(threading.Thread, "start", _start),
    Swap(threading.Thread, "join", _join),
    *[ModuleSwaps(vars(module), made, patches=module is time) for module, made in FUNCTIONS],
    ModuleSwaps(
        vars(threading),
        {"_allocate_lock": ready(Signal), "_newname": _new_name, "_time": ready(_MONOTONIC)},
    ),
    ModuleSwaps(vars(queue), {"time": ready(_MONOTONIC)}),
)
"""What is swapped in every run."""
