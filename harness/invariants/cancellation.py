"""What may still happen once a turn was told to stop, and once it has ended."""

from __future__ import annotations

from typing import ClassVar

from harness.core.durations import format_duration
from harness.core.events import (
    CancelDelivered,
    GeneratorAbandoned,
    RequestSent,
    RunStopped,
    TaskLeaked,
    ToolEffect,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold


class Cancel(Fold):
    """After a cancel no tool starts and no request is sent, and the turn ends in bounded time."""

    id = "CANCEL"
    reads: ClassVar[tuple[EventType, ...]] = (
        CancelDelivered,
        RequestSent,
        RunStopped,
        ToolStarted,
        TurnEnded,
    )
    needs: ClassVar[tuple[EventType, ...]] = (CancelDelivered,)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.cancelled: CancelDelivered | None = None
        self.since = 0

    def step(self, index: int, entry: Entry) -> None:
        """Judge what follows a delivered cancel, up to the turn's end."""
        match entry.event:
            case CancelDelivered() as cancelled:
                self.cancelled, self.since = cancelled, entry.at
            case TurnEnded():
                self.cancelled = None
            case _ if self.cancelled is not None:
                self.after(index, entry, self.cancelled.turn)

    def after(self, index: int, entry: Entry, turn: int) -> None:
        """Judge one event that came after the cancel."""
        late = format_duration(entry.at - self.since)
        match entry.event:
            case ToolStarted(name=name):
                self.report(f"{name} started {late} after the cancel", index, turn)
            case RequestSent(reply=reply):
                self.report(f"request {reply} was sent {late} after the cancel", index, turn)
            case RunStopped() as stopped:
                self.report(
                    f"the turn had not ended {late} after the cancel: {stopped.why}", index, turn
                )


class Quiesce(Fold):
    """When a turn has ended, none of its tasks is alive, nothing it started takes effect later, and
    nothing it opened is left open.
    """

    id = "QUIESCE"
    reads: ClassVar[tuple[EventType, ...]] = (
        GeneratorAbandoned,
        RequestSent,
        TaskLeaked,
        ToolEffect,
        ToolStarted,
        TurnEnded,
        TurnStarted,
    )
    needs: ClassVar[tuple[EventType, ...]] = (TurnEnded,)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.ended: int | None = None
        self.stubborn: set[str] = set()

    def step(self, index: int, entry: Entry) -> None:
        """Judge what is there, and what happens, between a turn's end and the next one's start."""
        match entry.event:
            case TurnStarted():
                self.ended = None
                self.stubborn.clear()
            case TurnEnded(turn=turn):
                self.ended = turn
            case TaskLeaked(owner="tool", path=path):
                # A tool that will not stop is the tool's fault, and so is what it does then.
                self.stubborn.add(path)
            case TaskLeaked(turn=turn, path=path, where=where):
                self.report(f"task {path} is still alive: {where}", index, turn)
            case GeneratorAbandoned(name=name):
                self.report(f"async generator {name} was left unclosed", index, self.ended, "soft")
            case ToolEffect(name=what) | ToolStarted(name=what) if self.idle(entry):
                did = "took effect" if isinstance(entry.event, ToolEffect) else "started"
                self.report(f"{what} {did} after turn {self.ended} had ended", index, self.ended)
            case RequestSent(reply=reply) if self.idle(entry):
                self.report(
                    f"request {reply} was sent after turn {self.ended} had ended",
                    index,
                    self.ended,
                )

    def idle(self, entry: Entry) -> bool:
        """Whether no turn is running and the event is not a stubborn tool's."""
        return self.ended is not None and entry.task not in self.stubborn
