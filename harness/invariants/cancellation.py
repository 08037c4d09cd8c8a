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
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold


class Cancel(Fold):
    """After a cancel no tool starts and no request is sent, and the turn ends in bounded time.

    A tool in a task that was scheduled before the cancel may still begin in the same instant.
    """

    id = "CANCEL"
    reads: ClassVar[tuple[EventType, ...]] = (
        CancelDelivered,
        RequestSent,
        RunStopped,
        ToolStarted,
        TurnEnded,
        TurnStarted,
    )
    needs: ClassVar[tuple[EventType, ...]] = (CancelDelivered,)

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.turn = 0
        self.cancelled: CancelDelivered | None = None
        self.since = 0

    def step(self, index: int, entry: Entry) -> None:
        """Judge what follows a delivered cancel, up to the turn's end."""
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn = turn
            case CancelDelivered(turn=turn) as cancelled:
                if turn == self.turn:
                    self.cancelled, self.since = cancelled, entry.at
            case TurnEnded():
                self.cancelled, self.turn = None, 0
            case ToolStarted() if self.cancelled is not None and self.was_scheduled(entry):
                pass
            case _ if self.cancelled is not None:
                self.after(index, entry, self.cancelled.turn)

    def was_scheduled(self, entry: Entry) -> bool:
        """Whether an entry is of a task that the cancel came too late to keep from beginning."""
        assert self.cancelled is not None
        return entry.at == self.since and entry.task in self.cancelled.scheduled

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

    A tool that will not stop is the tool's fault, and so is what it does then.
    """

    id = "QUIESCE"
    reads: ClassVar[tuple[EventType, ...]] = (
        GeneratorAbandoned,
        ReplyEnded,
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
        self.turn = 0
        self.over = False
        self.stubborn: set[str] = set()
        self.called: dict[str, int] = {}
        """The turn that each call is of."""

    def step(self, index: int, entry: Entry) -> None:
        """Judge what is left behind, and what happens for a turn that has ended."""
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn, self.over = turn, False
            case TurnEnded():
                self.over = True
            case ReplyEnded() as reply:
                self.reply(index, reply)
            case TaskLeaked(owner="tool", path=path):
                self.stubborn.add(path)
            case TaskLeaked(turn=turn, path=path, where=where):
                self.report(f"task {path} is still alive: {where}", index, turn)
            case GeneratorAbandoned(name=name):
                self.report(f"async generator {name} was left unclosed", index, self.turn, "soft")
            case ToolStarted(call_id=call_id, name=name):
                self.late(index, entry, f"{name} started", call_id)
            case ToolEffect(told=True):
                pass  # as with a task that is still alive: the tool will not stop
            case ToolEffect(call_id=call_id, name=name):
                self.late(index, entry, f"{name} took effect", call_id)
            case RequestSent(reply=place) if self.over:
                self.late(index, entry, f"request {place} was sent")

    def reply(self, index: int, reply: ReplyEnded) -> None:
        """Learn whose calls are whose; a stream left open is one thing too many."""
        if reply.message is not None:
            self.called.update((call.id, self.turn) for call in reply.message.calls)
        if reply.end == "abandoned":
            self.report(f"the stream of reply {reply.reply} was left open", index, self.turn)

    def late(self, index: int, entry: Entry, what: str, call_id: str = "") -> None:
        """Judge an event by whether its turn is over."""
        turn = self.called.get(call_id, self.turn)
        if (self.over or turn < self.turn) and entry.task not in self.stubborn:
            self.report(f"{what} after turn {turn} had ended", index, turn)
