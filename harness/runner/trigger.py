"""When a turn is cut, and how: a scenario's `cancel` at work."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from harness.core.durations import SECOND, format_duration
from harness.core.events import CancelDelivered, CancelRequested, event_kind
from harness.core.ports import Agent
from harness.core.trace import Entry, Recorder
from harness.runner.outcomes import describe
from harness.runner.scenario import Cancel
from harness.sim.cancel import Point
from harness.sim.kernel import Kernel


class Trigger:
    """Waits for its moment in one turn, then stops the turn, once.

    The turn is stopped by the agent's own `cancel` where it has one and the scenario does not ask
    for the task, else by cancelling the turn's task.
    """

    def __init__(
        self, cancel: Cancel, turn: int, agent: Agent, kernel: Kernel, recorder: Recorder
    ) -> None:
        self.cancel = cancel
        self.fired_at: int | None = None
        self.seen = 0
        self.wrong: str | None = None
        """What is wrong with the agent's own stop."""
        self.stopping: asyncio.Task[None] | None = None
        """The agent's own stop, where it takes time."""
        self._turn = turn
        self._agent = agent
        self._kernel = kernel
        self._recorder = recorder
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def text(self) -> str:
        """The moment, as the scenario spells it."""
        cancel = self.cancel
        if cancel.point is not None:
            return f"point {cancel.point}"
        if cancel.at is not None:
            return f"at {format_duration(cancel.at)}"
        nth = f" (number {cancel.nth})" if cancel.nth > 1 else ""
        mode = f", {cancel.mode}" if cancel.mode != "now" else ""
        return f"after {cancel.after}{f' {cancel.name}' if cancel.name else ''}{nth}{mode}"

    def arm(self, task: asyncio.Task[object]) -> None:
        """Start waiting; `task` runs the turn."""
        self._task = task
        if self.cancel.at is not None:
            self._timer = self._kernel.call_later(self.cancel.at / SECOND, self._fire)
        elif self.cancel.point is not None:
            self._kernel.plan(Point.parse(self.cancel.point), lambda _task: self._fire())

    def watch(self, entry: Entry) -> None:
        """Look at an entry at the instant it is recorded."""
        cancel, event = self.cancel, entry.event
        if event_kind(type(event)) != cancel.after or cancel.name not in (None, event.subject):
            return
        self.seen += 1
        if self.seen != cancel.nth:
            return
        path = entry.task or str(self._turn)
        match cancel.mode:
            case "now":
                self._fire()
            case "early":
                self._kernel.after_suspend(path, lambda _task: self._fire())
            case "late":
                self._kernel.before_resume(path, lambda _task: self._fire())

    def disarm(self) -> None:
        """Stop waiting: the turn is over."""
        if self._timer is not None:
            self._timer.cancel()
        self._task = None

    def _fire(self) -> None:
        task = self._task
        if task is None or task.done() or self.fired_at is not None:
            return
        self.fired_at = self._kernel.now()
        stop: Callable[[], Any] | None = getattr(self._agent, "cancel", None)
        if self.cancel.by == "agent" and stop is None:
            self.wrong = "the scenario cancels by the agent, which has no cancel()"
        if self.cancel.by != "task" and stop is not None:
            self._stop(stop)
        else:
            self._recorder.record(CancelRequested(self._turn, "task", self.text))
            task.cancel()
            self._kernel.before_resume(str(self._turn), lambda _task: self._delivered("task"))

    def _stop(self, stop: Callable[[], Any]) -> None:
        self._recorder.record(CancelRequested(self._turn, "agent", self.text))
        try:
            answer = stop()
        except Exception as error:
            self._broke(error)
            answer = None
        if inspect.isawaitable(answer):
            path = f"cancel{self._turn}"
            self.stopping = self._kernel.spawn(self._stopping(answer), path)
            self._kernel.after_suspend(path, lambda _task: self._delivered("agent"))
        else:
            self._delivered("agent")

    def _delivered(self, by: Literal["agent", "task"]) -> None:
        scheduled = self._kernel.unbegun()
        self._recorder.record(CancelDelivered(self._turn, by, scheduled))

    async def _stopping(self, stop: Awaitable[Any]) -> None:
        try:
            await stop
        except Exception as error:
            self._broke(error)

    def _broke(self, error: Exception) -> None:
        self.wrong = f"cancel() raised {type(error).__name__}: {describe(error)}"
