"""The kernel of a function's run, and one that writes down what happens in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import Context
from typing import Any

from harness.core.durations import format_duration
from harness.core.wording import counted
from harness.exploration.probe import Shot
from harness.sim import where
from harness.sim.sites import SiteKernel
from harness.sim.stop import Stop
from harness.sim.tasks import DTask

ALL = "*"
"""In place of a task's path: whatever the tasks are."""

_STEPS_EACH = 10
"""How many steps each task of a crowd may take at one instant."""
_TIMES = 10
"""How many times the limit all of them may take."""
_ANYIO = f"{os.sep}anyio{os.sep}"

MAKING, MAIN, CHECK = "0", "1", "check"
"""The paths of the tasks that the harness makes: they call the factory, run what it gave, and check
what that left behind.
"""


class FunctionKernel(SiteKernel):
    """Runs a function, and tells of its tasks what a probe has to know.

    At one instant a crowd of tasks may take more steps than the limit says, since each of them has
    some to take.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.order: list[str] = []
        """Which tasks made a step, one after the other, by path; empty for the steps of jobs."""
        self._most = 0
        """How many tasks lived at the same time."""
        self._overran = (0, 0)
        """The last instant at which the limit was reached, and how often it was there."""

    def run_until(self, done: Callable[[], bool], deadline: int | None = None) -> Stop:
        """Run until `done` says so or nothing more can happen, as any kernel does."""
        stop = super().run_until(done, deadline)
        while stop.reason == "instant_limit" and self._is_crowded():
            stop = super().run_until(done, deadline)
        return stop

    def _is_crowded(self) -> bool:
        """Whether there are so many tasks that no spin can be told from their work yet."""
        at, times = self._overran
        times = times + 1 if at == self.now() else 1
        self._overran = (self.now(), times)
        return times < min(_TIMES, _STEPS_EACH * self._most // self.limits.steps_per_instant)

    def _make_task(
        self, coro: Any, path: str, name: object, context: Context | None, *, eager: bool = False
    ) -> DTask:
        task = super()._make_task(coro, path, name, context, eager=eager)
        self._most = max(self._most, len(self._alive))
        return task

    @property
    def quiet(self) -> bool:
        """Whether nothing is left to do, nor to say."""
        return not (self._ready or self._alive or self.alarmed or self._schedule.next() is not None)

    def note_resuming(self, task: DTask) -> None:
        """A task begins, or goes on."""
        self.order.append(task.path)
        super().note_resuming(task)

    def note_other_step(self) -> None:
        """A job has started or finished."""
        self.order.append("")
        super().note_other_step()

    def note_cancelled(self, task: DTask, shot: Shot) -> None:
        """Take note of a cancel that a task has taken."""


class QuickKernel(FunctionKernel):
    """Notes no suspensions, and obeys no actions: for runs that nobody cancels."""

    def note_resuming(self, task: DTask) -> None:
        """A task begins, or goes on."""
        self.order.append(task.path)

    def note_stepped(self, task: DTask) -> None:  # noqa: ARG002 - whose it is, is noted already
        """A task waits, or has ended."""
        self.steps += 1


class ToldKernel(FunctionKernel):
    """Writes a line for each event of the run: what a task does, when and where."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.lines: list[str] = []
        self._last: dict[str, int] = {}

    def last_line(self, path: str) -> int | None:
        """The index of the last line about the task `path`, or of all."""
        return len(self.lines) - 1 if path == ALL else self._last.get(path)

    def tell(self, path: str, kind: str, facts: str) -> None:
        """Write a line: the time, the task, the kind of event, the facts."""
        self._last[path] = len(self.lines)
        at = format_duration(self.now())
        self.lines.append(f"{at:<8} {path:<6} {kind:<9} {facts}".rstrip())

    def _make_task(
        self, coro: Any, path: str, name: object, context: Context | None, *, eager: bool = False
    ) -> DTask:
        task = super()._make_task(coro, path, name, context, eager=eager)
        ours = path in (MAKING, MAIN, CHECK)
        at = f" at {where.show(task.created)}" if task.created and not ours else ""
        self.tell(path, "made", f"{code_name(task)}{at}")
        return task

    def note_resuming(self, task: DTask) -> None:
        """A task begins, or goes on."""
        self.tell(task.path, "goes on" if task.k else "begins", "")
        super().note_resuming(task)

    def note_stepped(self, task: DTask) -> None:
        """A task waits, or has ended."""
        if task.done():
            self.tell(task.path, "ended", ended(task))
        else:
            self.tell(task.path, "waits", f"#{task.k} at {self.place(task)}")
        super().note_stepped(task)  # its actions come after the step, and write lines of their own

    def note_cancelled(self, task: DTask, shot: Shot) -> None:
        """Write that a shot has cancelled a task."""
        self.tell(task.path, "cancelled", f"by {shot}")


def code_name(task: DTask) -> str:
    """What the code of a task is called."""
    coro: Any = task.get_coro()
    name = getattr(coro, "__qualname__", type(coro).__qualname__)
    if _ANYIO in getattr(getattr(coro, "cr_code", None), "co_filename", ""):
        name = task.get_name()  # it wraps what it runs, and calls the task by its name
    return str(name).rpartition("<locals>.")[2]


def ended(task: DTask) -> str:
    """How a task ended, and which requests to cancel it are still open."""
    if task.cancelled():
        how = "cancelled"
    elif (error := task._exception) is not None:
        how = f"raised {type(error).__name__}"
    else:
        how = "returned"
    open_ = task.cancelling()
    return f"{how}, {counted(open_, 'cancel')} open" if open_ else how
