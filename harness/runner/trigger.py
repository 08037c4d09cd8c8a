"""When a turn is cut: a scenario's `cancel` at work."""

from __future__ import annotations

import asyncio

from harness.core.durations import SECOND, format_duration
from harness.core.events import event_kind
from harness.core.trace import Entry
from harness.runner.scenario import Cancel
from harness.runner.stopper import Stopper
from harness.sim.cancel import Point
from harness.sim.kernel import Kernel


class Trigger:
    """Waits for its moment in one turn, then has the turn stopped, once."""

    def __init__(self, cancel: Cancel, turn: int, stopper: Stopper, kernel: Kernel) -> None:
        self.cancel = cancel
        self.fired = False
        """Whether it had the turn stopped; a turn that was stopped before is left alone."""
        self.seen = 0
        self._turn = turn
        self._stopper = stopper
        self._kernel = kernel
        self._timer: asyncio.TimerHandle | None = None

    @property
    def text(self) -> str:
        """The moment, as the scenario spells it."""
        return moment(self.cancel)

    def arm(self) -> None:
        """Start waiting for a time or a point."""
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
        """Wait no more: the turn is over."""
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        if not self.fired and self._stopper.fired_at is None:
            self.fired = self._stopper.stop(self.cancel.by, self.text)


def moment(cancel: Cancel) -> str:
    """The moment of a cancel, as a scenario spells it."""
    if cancel.point is not None:
        return f"point {cancel.point}"
    if cancel.at is not None:
        return f"at {format_duration(cancel.at)}"
    nth = f" (number {cancel.nth})" if cancel.nth > 1 else ""
    mode = f", {cancel.mode}" if cancel.mode != "now" else ""
    return f"after {cancel.after}{f' {cancel.name}' if cancel.name else ''}{nth}{mode}"
