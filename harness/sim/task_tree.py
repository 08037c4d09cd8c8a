"""The tasks of a run: a tree of paths, from which every report names them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from typing import Any

from harness.sim import where
from harness.sim.awaits import awaited
from harness.sim.generators import Generator, Generators
from harness.sim.points import Watch
from harness.sim.schedule import VirtualTime
from harness.sim.tasks import DFuture, DTask, TaskInfo, describe, has_begun


class TaskTree(Watch, VirtualTime):
    """The part of an event loop that makes tasks, futures and the closers of async generators."""

    def __init__(self) -> None:
        VirtualTime.__init__(self)
        Watch.__init__(self)
        self.on_abandoned: Callable[[str], None] | None = None
        """Called with the name of each async generator that was left without being closed."""
        self._asyncgens = Generators()
        self._numbers = count(1)
        self._alive: dict[int, DTask] = {}
        self._roots = 0
        self._given: list[str] = []
        """Paths of tasks that a user's factory is making."""
        self._closings: dict[str, int] = {}
        self._eager = False

    def number(self) -> int:
        """The next number of this run, for a task or future to hash by."""
        return next(self._numbers)

    def create_future(self) -> DFuture:
        """A future of this loop."""
        return DFuture(loop=self)

    def spawn(
        self, coro: Coroutine[Any, Any, Any], path: str, context: Context | None = None
    ) -> DTask:
        """Start a root task under a path of your own, such as "1" for the first turn."""
        self._check_closed()
        return self._make_task(coro, path, None, context)

    def create_task(
        self,
        coro: Any,
        *,
        name: object = None,
        context: Context | None = None,
        eager_start: bool | None = None,
    ) -> DTask:
        """Start a task; its path is its parent's and a number, or x and a number without one."""
        self._check_closed()
        path = self.child_path()
        if self._task_factory is None:
            eager = self._eager if eager_start is None else eager_start
            return self._make_task(coro, path, name, context, eager=eager)
        options = {} if context is None else {"context": context}
        others = len(self._given)
        self._given.append(path)
        try:
            task: DTask = self._task_factory(self, coro, **options)
            self._track(task)
        finally:
            del self._given[others:]
        task.set_name(path if name is None else name)
        return task

    def child_path(self) -> str:
        """A path for what the task that runs starts."""
        parent: Any = asyncio.current_task(self)
        if parent is None:
            self._roots += 1
            return f"x{self._roots}"
        if type(parent) is not DTask:
            self._track(parent)
        parent.children += 1
        return f"{parent.path}.{parent.children}"

    def _make_task(
        self,
        coro: Any,
        path: str,
        name: object,
        context: Context | None,
        *,
        eager: bool = False,
    ) -> DTask:
        # What the number is must be known when the constructor puts the task into a set.
        task = DTask.__new__(DTask)
        task.seq = next(self._numbers)
        task.path = path
        task.k = task.children = 0
        task.waiting = None
        task.thread = False
        task.created = where.calling(3)
        if name is None:
            name = path
        if eager:
            task.__init__(  # type: ignore[misc]
                coro, loop=self, name=name, context=context, eager_start=True
            )
            self._alive[task.seq] = task
            self._note_step(task)
        else:
            task.__init__(coro, loop=self, name=name, context=context)  # type: ignore[misc]
            self._alive[task.seq] = task
        return task

    def _note_step(self, task: DTask) -> None:
        """Take note that a task has made a step."""
        if task.done():
            self._alive.pop(task.seq, None)
        else:
            task.k += 1
            self._suspended.append(task.path)
        if self.watched:
            self.note_stepped(task)

    def _track(self, task: DTask) -> None:
        """Keep track of a task that somebody else constructed, from when it is first seen on."""
        if hasattr(task, "path"):
            return
        if self._given:
            task.path = self._given.pop()
        else:
            self._roots += 1
            task.path = f"x{self._roots}"
        task.seq = next(self._numbers)
        task.k = task.children = 0
        task.waiting = None
        task.thread = False
        task.created = where.calling(3)
        self._alive[task.seq] = task

    def set_task_factory(self, factory: Any) -> None:
        """Use `factory` for new tasks; asyncio's eager one makes the kernel's own tasks, eagerly.

        Tasks of another class hash by address, so a set of them has no order to rely on.
        """
        self._eager = factory is not None and factory is getattr(
            asyncio, "eager_task_factory", None
        )
        super().set_task_factory(None if self._eager else factory)

    def get_task_factory(self) -> Any:
        """What `set_task_factory` was given."""
        if self._eager:
            return asyncio.eager_task_factory  # type: ignore[attr-defined]
        return super().get_task_factory()

    def current_path(self) -> str:
        """The path of the task that runs, "" outside of any."""
        task: Any = asyncio.current_task(self)
        if task is None:
            return ""
        if type(task) is not DTask:
            self._track(task)
        return str(task.path)

    def alive(self) -> list[TaskInfo]:
        """The tasks that are not done, in the order they were created."""
        living = self.living()
        awaits = awaited(living)
        return [describe(task, awaits.get(task.seq, ())) for task in living]

    def on_their_way(self) -> tuple[str, ...]:
        """The paths of those whom news of this moment may not reach in time: the tasks that have
        not taken their first step, and the threads. In the order of creation.

        A task that a cancel will keep from its first step is one of them until it is done.
        """
        living = self.living()
        return tuple([task.path for task in living if task.thread or not has_begun(task)])

    def has_threads(self) -> bool:
        """Whether threads are at work."""
        return any(task.thread and not task.done() for task in self._alive.values())

    def living(self) -> list[DTask]:
        """The tasks that are not done, in the order they were created."""
        alive = self._alive
        return [alive[seq] for seq in sorted(alive) if not alive[seq].done()]

    def _asyncgen_finalizer_hook(self, agen: Generator) -> None:
        self._asyncgens.discard(agen)
        if not self._closed:
            self._report_abandoned(agen)
            self.call_soon(self._close_generator, agen)

    def _report_abandoned(self, agen: Generator) -> None:
        if self.on_abandoned is not None:
            self.on_abandoned(agen.__qualname__)

    def _close_generator(self, agen: Generator) -> None:
        name = agen.__name__
        number = self._closings[name] = self._closings.get(name, 0) + 1
        self._make_task(agen.aclose(), f"gen.{name}.{number}", None, None)
