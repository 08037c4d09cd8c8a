"""Which task waits for which, as far as tasks and futures tell.

A task that awaits another has it as the future it waits on. `wait`, `wait_for`, `gather`, `shield`,
`as_completed` and task groups, asyncio's and anyio's, put a future of their own in between, and a
callback on each task that will complete it; what such a callback holds tells which future that is.
A task within `async with` of asyncio's locks, conditions and semaphores is waited for by those that
wait to get in, and a thread that has acquired a lock by those that wait for it.

Not seen: what a task will do for another by its own code, such as setting an event, putting into a
queue, releasing what it acquired without `async with` or setting the result of a future; and tasks
that somebody constructed past the loop, until their first step.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from functools import partial
from types import MethodType
from typing import Any

from harness.sim import where
from harness.sim.actors import Shown
from harness.sim.tasks import DTask


def awaited(living: Sequence[DTask]) -> dict[int, tuple[str, ...]]:
    """By the number of each task that waits for other tasks: their paths, in the order of `living`.

    `living` are all tasks that are not done.
    """
    wakers: dict[int, list[str]] = {}
    for task in living:
        for future in _woken_by(task):
            wakers.setdefault(id(future), []).append(task.path)
    waiting = [(task, wakers.get(id(getattr(task, "_fut_waiter", None)))) for task in living]
    return {task.seq: tuple(paths) for task, paths in waiting if paths is not None}


def _woken_by(task: DTask) -> Iterator[Any]:
    """The task, and the futures that its end may complete, through others of them too."""
    seen: dict[int, Any] = {id(task): task}
    todo: list[Any] = [task]
    for future in _kept_out_by(task):
        seen[id(future)] = future
        todo.append(future)
    while todo:
        future = todo.pop()
        yield future
        for callback in _callbacks(future):
            for found in _futures_of(callback):
                if id(found) not in seen and not isinstance(found, asyncio.Task):
                    seen[id(found)] = found
                    todo.append(found)


def _kept_out_by(task: DTask) -> Iterator[Any]:
    """Those that wait for a lock, or one of its kind, that the task is within.

    A suspended frame keeps, for each `async with` that it is within, the method that will leave it;
    also while it waits to get in.
    """
    waiter = getattr(task, "_fut_waiter", None)
    for awaitable in where.chain(task.get_coro()):
        if isinstance(awaitable, Shown):
            for kept in awaitable.actor.held:
                yield from kept.waiters
        for held in gc.get_referents(awaitable):
            lock = getattr(held, "__self__", None) if isinstance(held, MethodType) else None
            if isinstance(lock, asyncio.Condition):
                lock = lock._lock  # type: ignore[attr-defined]
            if isinstance(lock, asyncio.Lock | asyncio.Semaphore):
                waiting = lock._waiters or ()
                if waiter not in waiting:
                    yield from waiting


def _callbacks(future: Any) -> Iterator[Any]:
    for entry in getattr(future, "_callbacks", None) or ():
        yield entry[0] if isinstance(entry, tuple) else entry


def _futures_of(callback: Any) -> Iterator[Any]:
    """The futures that a callback holds, or that are attributes of what it holds."""
    for held in _held_by(callback):
        yield from _futures_in(held)
        if not isinstance(held, asyncio.Future | asyncio.Queue):
            for value in getattr(held, "__dict__", {}).values():
                yield from _futures_in(value)


def _futures_in(value: Any) -> Iterator[Any]:
    """The future itself, or those of whoever waits for an item of a queue."""
    if asyncio.isfuture(value):
        yield value
    elif isinstance(value, asyncio.Queue):
        yield from value._getters  # type: ignore[attr-defined]


def _held_by(callback: Any) -> Iterator[Any]:
    """The object of a method, the arguments of a partial, the variables of a closure."""
    if isinstance(callback, partial):
        yield from callback.args
        callback = callback.func
    if getattr(callback, "__self__", None) is not None:
        yield callback.__self__
    for cell in getattr(callback, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # a variable that has no value yet
