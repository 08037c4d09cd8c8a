"""What to do when a task gets to a point: the watch that is kept on suspensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from harness.sim.cancel import Point
from harness.sim.tasks import DTask

Action: TypeAlias = Callable[[DTask], object]


class Watch:
    """Actions that wait for a task to suspend or to go on; each runs once."""

    def __init__(self) -> None:
        self._suspended: list[str] = []
        self.armed = False
        """Whether an action waits for its moment."""
        self.always = False
        """Whether steps are told of where no action waits too."""
        self.watched = False
        """Whether steps are told of at all, so that the kernel need not ask."""
        self._before: dict[str, list[Action]] = {}
        self._after: dict[str, list[Action]] = {}
        self._plans: dict[tuple[str, int], list[tuple[Point, Action]]] = {}
        self._pending: dict[Point, None] = {}

    @property
    def points(self) -> list[tuple[str, int]]:
        """The suspensions of the run in order: the task's path, and a number from 1 in each task.

        Counted anew at each call.
        """
        counts: dict[str, int] = {}
        points = []
        for path in self._suspended:
            k = counts[path] = counts.get(path, 0) + 1
            points.append((path, k))
        return points

    def before_resume(self, path: str, action: Action) -> None:
        """Call `action` once, right before the next step of the task `path`.

        At that time what the task waits for is done, or was cancelled.
        """
        self._before.setdefault(path, []).append(action)
        self.armed = self.watched = True

    def after_suspend(self, path: str, action: Action) -> None:
        """Call `action` once, right after the task `path` suspends next, or ends."""
        self._after.setdefault(path, []).append(action)
        self.armed = self.watched = True

    def plan(self, point: Point, action: Action) -> None:
        """Call `action` once, at `point`."""
        self._plans.setdefault((point.path, point.k), []).append((point, action))
        self._pending[point] = None
        self.armed = self.watched = True

    def unreached(self) -> list[Point]:
        """The planned points that the run has not come to, in the order they were planned."""
        return list(self._pending)

    def stop_watching(self) -> None:
        """Forget all actions; what is unreached by now stays so."""
        self._before.clear()
        self._after.clear()
        self._plans.clear()
        self.armed = self.always = self.watched = False

    def note_resuming(self, task: DTask) -> None:
        """Act on a task that is about to make a step."""
        for action in self._before.pop(task.path, ()):
            action(task)
        if task.k == 0:
            for point, action in self._plans.pop((task.path, 0), ()):
                self._reach(point, action, task)
        self._rest()

    def note_stepped(self, task: DTask) -> None:
        """Act on a task that has just made a step: it is suspended, or done."""
        for action in self._after.pop(task.path, ()):
            action(task)
        if not task.done():
            for point, action in self._plans.pop((task.path, task.k), ()):
                if point.mode == "early":
                    self._reach(point, action, task)
                else:
                    self._await_resume(point, action)
        self._rest()

    def note_other_step(self) -> None:
        """Take note of a step of the run that is no task's: a job has started or finished."""

    def _await_resume(self, point: Point, action: Action) -> None:
        self.before_resume(point.path, lambda task: self._reach(point, action, task))

    def _reach(self, point: Point, action: Action, task: DTask) -> None:
        self._pending.pop(point, None)
        action(task)

    def _rest(self) -> None:
        self.armed = bool(self._before or self._after or self._plans)
        self.watched = self.armed or self.always
