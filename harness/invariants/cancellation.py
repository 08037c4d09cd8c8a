"""What may still happen once a turn was told to stop, and once it has ended."""

from __future__ import annotations

from typing import ClassVar

from harness.core.durations import format_duration
from harness.core.events import (
    CancelDelivered,
    GeneratorAbandoned,
    ReplyEnded,
    RequestSent,
    RunStopped,
    TaskLeaked,
    ToolEffect,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import EventType, Here, on


class Cancel(Fold):
    """After a cancel no tool starts and no request is sent, and the turn ends in bounded time.

    A tool in a task that was scheduled before the cancel may still begin in the same instant, and
    so may one in a thread, which may have looked whether to stop already.
    """

    id = "CANCEL"
    needs: ClassVar[tuple[EventType, ...]] = (CancelDelivered,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.playing = False
        self.cancelled: CancelDelivered | None = None
        self.since = 0

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """A cancel of the turn before is none of this one."""
        self.playing = True

    @on(CancelDelivered)
    def told_to_stop(self, event: CancelDelivered) -> None:
        """From here on nothing may begin."""
        if self.playing and event.turn == self.here.turn:
            self.cancelled, self.since = event, self.here.entry.at

    @on(TurnEnded)
    def end(self, _event: TurnEnded) -> None:
        """What follows is QUIESCE's to judge."""
        self.cancelled, self.playing = None, False

    @on(ToolStarted)
    def started(self, event: ToolStarted) -> None:
        """Judge a start, unless its task was scheduled too early for the cancel to keep it from
        beginning.
        """
        if self.cancelled is not None:
            entry = self.here.entry
            if entry.at != self.since or entry.task not in self.cancelled.scheduled:
                self.report_here(f"{event.name} started {self.after} the cancel")

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Judge a request."""
        if self.cancelled is not None:
            self.report_here(f"request {event.reply} was sent {self.after} the cancel")

    @on(RunStopped)
    def stopped(self, event: RunStopped) -> None:
        """Judge a run that could not go on."""
        if self.cancelled is not None:
            self.report_here(f"the turn had not ended {self.after} the cancel: {event.why}")

    @property
    def after(self) -> str:
        """How long after the cancel this is."""
        return f"{format_duration(self.here.entry.at - self.since)} after"


class Quiesce(Fold):
    """When a turn has ended, none of its tasks is alive, nothing it started takes effect later, and
    nothing it opened is left open.

    A tool that will not stop is the tool's fault, and so is what it does then. What its task does
    after it is too, as the tool has swallowed the cancel; a thread has other ways to know of it.
    """

    id = "QUIESCE"
    needs: ClassVar[tuple[EventType, ...]] = (TurnEnded,)

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.over = False
        self.stubborn: set[str] = set()
        self.called: dict[str, int] = {}
        """The turn that each call is of."""

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """A turn begins."""
        self.over = False

    @on(TurnEnded)
    def end(self, _event: TurnEnded) -> None:
        """From here on all should be quiet."""
        self.over = True

    @on(ReplyEnded)
    def replied(self, event: ReplyEnded) -> None:
        """Learn whose calls are whose; a stream left open is one thing too many."""
        turn = self.here.turn
        if event.message is not None:
            for call in event.message.calls:
                self.called[call.id] = turn
        if event.end == "abandoned":
            self.report_here(f"the stream of reply {event.reply} was left open")

    @on(TaskLeaked)
    def leaked(self, event: TaskLeaked) -> None:
        """Tell of a task that is still alive, unless a tool keeps it."""
        if event.owner == "tool":
            if event.started is None:
                self.stubborn.add(event.path)
        else:
            alive = f"task {event.path} is still alive: {event.where}"
            if event.started is not None and not event.where:
                alive = f"pool {event.path}, made at {event.started}, was not shut down"
            elif event.started is not None:
                alive = f"thread {event.path}, started at {event.started}, is still alive"
                alive += f" and waits at {event.where}"
            self.report(alive, self.here.index, event.turn)

    @on(GeneratorAbandoned)
    def unclosed(self, event: GeneratorAbandoned) -> None:
        """Tell of a generator that is left."""
        self.report_here(f"async generator {event.name} was left unclosed", "soft")

    @on(ToolStarted)
    def started(self, event: ToolStarted) -> None:
        """Judge a start."""
        turn = self.called.get(event.call_id, self.here.turn)
        if self.is_over(turn):
            self.late(f"{event.name} started", turn)

    @on(ToolEffect)
    def took_effect(self, event: ToolEffect) -> None:
        """Judge an effect, unless its tool was told to stop and will not."""
        turn = self.called.get(event.call_id, self.here.turn)
        if not event.told and self.is_over(turn):
            self.late(f"{event.name} took effect", turn)

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Judge a request."""
        if self.is_over(self.here.turn):
            self.late(f"request {event.reply} was sent", self.here.turn)

    def is_over(self, turn: int) -> bool:
        """Whether a turn is over by now."""
        return self.over or turn < self.here.turn

    def late(self, what: str, turn: int) -> None:
        """Report what happens too late, unless a tool that will not stop does it."""
        if self.here.entry.task not in self.stubborn:
            self.report(f"{what} after turn {turn} had ended", self.here.index, turn)
