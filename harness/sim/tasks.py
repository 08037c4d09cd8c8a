"""Tasks and futures that are the same in every run: their hashes, their names, their counts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable
from types import BuiltinMethodType
from typing import Any

from msgspec import Struct

from harness.sim import where
from harness.sim.where import Line

WAKE_UP = "task_wakeup"
"""The name of the callback by which a future wakes a task; the other methods of a task, used as
callbacks, are not steps of it."""


def _type_of_first_step() -> type:
    """The type of the callback by which a task begins; it has no public name."""

    class Loop:
        callback: object = None

        def call_soon(self, callback: object, **_options: object) -> None:
            self.callback = callback

        def get_debug(self) -> bool:
            return False

    async def nothing() -> None: ...

    loop: Any = Loop()
    coro = nothing()
    task: Any = asyncio.Task(coro, loop=loop)
    coro.close()
    task._log_destroy_pending = False
    return type(loop.callback)


STEP = _type_of_first_step()
"""The type of the callback by which a task goes on after a bare yield, and begins."""


def is_step(handle: Any) -> bool:
    """Whether a handle is a step of a task."""
    callback = handle._callback
    return type(callback) is STEP or (
        isinstance(callback, BuiltinMethodType) and callback.__name__ == WAKE_UP
    )


class DTask(asyncio.Task[Any]):
    """A task that hashes by its number in the run and not by its address.

    asyncio keeps tasks in sets (a TaskGroup its children, `wait` what it waits for) and goes
    through them in the order of their hashes; by address that order differs between runs.

    `seq` is the number, `path` the place in the tree of tasks, `k` how often the task was
    suspended, `children` how many tasks it made, `created` where it was made, `waiting` what a
    kernel keeps of its last suspension, `thread` whether it stands for one. Tasks that a user's
    factory makes get these attributes too.
    """

    __slots__ = ("children", "created", "k", "path", "seq", "thread", "waiting")

    seq: int
    path: str
    k: int
    children: int
    created: Line | None
    waiting: Any
    thread: bool
    _log_destroy_pending: bool

    def __hash__(self) -> int:
        return self.seq


class DFuture(asyncio.Future[Any]):
    """A future that hashes by its number in the run, taken when it is first asked for."""

    __slots__ = ("seq",)

    seq: int

    def __hash__(self) -> int:
        try:
            return self.seq
        except AttributeError:
            loop: Any = self.get_loop()
            self.seq = loop.number()
            return self.seq


# asyncio's messages and what tasks and futures are printed as hold the names of their classes.
DTask.__name__ = "Task"
DFuture.__name__ = "Future"


class TaskInfo(Struct, frozen=True):
    """A task that is not done: its path, the line where it waits, the line that created it.

    `thread` says that it stands for a thread. `awaits` has the paths of the tasks that it waits for
    right now, as far as that can be seen (`harness/sim/awaits.py` says how far).
    """

    path: str
    where: str
    created: str
    awaits: tuple[str, ...] = ()
    thread: bool = False


def describe(task: DTask, awaits: tuple[str, ...] = ()) -> TaskInfo:
    """Say where a task is."""
    created = where.show(task.created) if task.created else where.UNKNOWN
    return TaskInfo(task.path, where.suspended(task.get_coro()), created, awaits, task.thread)


def has_begun(task: DTask) -> bool:
    """Whether a task has taken its first step, or is in the middle of it."""
    if task.k:
        return True
    coro: Any = task.get_coro()
    if hasattr(coro, "cr_frame"):
        return bool(inspect.getcoroutinestate(coro) != inspect.CORO_CREATED)
    return asyncio.current_task(task.get_loop()) is task


def waits(tasks: Iterable[DTask]) -> tuple[str, ...]:
    """One line a task for a report: path, its name where the user gave one, and where it waits."""
    lines = []
    for task in tasks:
        info = describe(task)
        name = task.get_name()
        given = "" if name == info.path else f" {name}"
        if task.k:
            lines.append(f"{info.path}{given}: waits at {info.where}")
        elif task.thread:
            lines.append(f"{info.path}{given}: started at {info.created}, has not waited yet")
        elif task.created:
            lines.append(f"{info.path}{given}: not started, created at {info.created}")
        else:
            lines.append(f"{info.path}{given}: has not waited yet")
    return tuple(lines)
