"""Reads the steps of a run: which run answers which call, and where the next request shows it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from harness.core.events import (
    AnyEvent,
    CancelRequested,
    FaultInjected,
    Mismatch,
    ReplyEnded,
    RequestMissed,
    RequestSent,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from harness.core.messages import Message, ToolCall
from harness.core.outcome import Outcome
from harness.invariants.alike import tell_apart
from harness.invariants.reader import Here, Reader, on
from harness.invariants.steps import Run, Slot, Step


class Offers:
    """The tools that the agent tells the model of, in each conversation."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: dict[str, frozenset[str]] = {}

    def take(self, event: RequestSent) -> frozenset[str]:
        """The names of those that a request offers."""
        if event.head is not None:
            offered = frozenset([tool.name for tool in event.head.tools])
            self._last[event.conversation] = offered
            return offered
        return self._last.get(event.conversation, frozenset())


class Steps(Reader):
    """Reads a run and gives its steps, each to all `takers` when it is known whole."""

    def __init__(self, here: Here, takers: Sequence[Callable[[Step], None]]) -> None:
        super().__init__(here)
        self._takers = takers
        self._length = 0
        """How many messages the last request had."""
        self._offers = Offers()
        self._asked: dict[str, _Asked] = {}
        """Requests whose replies have not ended, by reply."""
        self._waiting: dict[str, Step] = {}
        """Steps that no request has followed, by the place of their reply."""
        self._slots: dict[tuple[str, str], list[Slot]] = {}
        """The calls that a tool may run for, by id and name: those of the last reply with both."""
        self._ids: dict[str, str] = {}
        """The place of the first reply that had a call's id."""
        self._running: list[Run] = []
        self._early: list[Run] = []
        """Runs for which no reply had asked, yet: a tool may start before its reply has ended."""

    def finish(self) -> None:
        """Give the steps that no request followed."""
        for step in self._waiting.values():
            self._give(step)

    def _give(self, step: Step) -> None:
        for take in self._takers:
            take(step)

    @on(TurnEnded)
    def _turn_ended(self, event: TurnEnded) -> None:
        for each in self._in_turn():
            each.outcome, each.ended_at = event.outcome, self.here.index

    @on(CancelRequested, FaultInjected, Mismatch, RequestMissed)
    def _disturbed(self, _event: AnyEvent) -> None:
        for each in self._in_turn():
            each.disturbed = True

    def _in_turn(self) -> Iterator[Step | _Asked]:
        """What the turn is still at: replies that no request has followed."""
        for step in self._waiting.values():
            if step.outcome is None:
                yield step
        for asked in self._asked.values():
            if asked.outcome is None and asked.next is None:
                yield asked

    @on(ToolStarted)
    def _started(self, event: ToolStarted) -> None:
        run = Run(event, self.here.entry.task)
        self._running.append(run)
        slot = _slot_of(event, self._slots.get((event.call_id, event.name), ()))
        if slot is None or (slot.runs and self._asked):
            self._early.append(run)
        else:
            slot.runs.append(run)

    @on(ToolEnded)
    def _ended(self, event: ToolEnded) -> None:
        entry = self.here.entry
        same = [run for run in self._running if run.started.call_id == event.call_id]
        for run in [*(run for run in same if run.task == entry.task), *same][:1]:
            run.ended, run.ended_at = event, entry.at
            self._running.remove(run)

    @on(RequestSent)
    def _request(self, event: RequestSent) -> None:
        offered = self._offers.take(event)
        asked = _Asked(self.here.turn, event.conversation == "main", offered)
        done: Sequence[Step] = ()
        if asked.main:
            following = _Next(self.here.index, event.added, event.kept == self._length)
            self._length = event.kept + len(event.added)
            for name, earlier in self._asked.items():
                again = _place(name) == _place(event.reply)
                if earlier.main and earlier.next is None and not again:
                    earlier.next = following
            done = list(self._waiting.values())
            self._waiting.clear()
            for step in done:
                _show(step, following)
        self._asked[event.reply] = asked
        for step in done:
            self._give(step)

    @on(ReplyEnded)
    def _reply(self, event: ReplyEnded) -> None:
        asked = self._asked.pop(event.reply, None)
        message = event.message
        if asked is None or event.end != "complete" or message is None or not message.calls:
            return
        place = _place(event.reply)
        slots = self._issue(place, message.calls)
        if not asked.main:
            return
        step = Step(
            event.reply,
            asked.turn,
            self.here.index,
            message,
            slots,
            asked.offered,
            asked.disturbed,
            asked.outcome,
            asked.ended_at,
        )
        if asked.next is not None:
            _show(step, asked.next)
            self._give(step)
        else:  # the same reply given twice, to two requests at once, is one step
            self._waiting[place] = step

    def _issue(self, place: str, calls: Sequence[ToolCall]) -> list[Slot]:
        ids = [call.id for call in calls]
        slots = []
        for number, call in enumerate(calls, 1):
            before = self._ids.setdefault(call.id, place) != place
            slots.append(Slot(call, number, before or not call.id or ids.count(call.id) > 1))
        fresh: dict[tuple[str, str], list[Slot]] = {}
        for slot in slots:
            fresh.setdefault((slot.call.id, slot.call.name), []).append(slot)
        self._slots.update(fresh)
        if self._early:
            early, self._early = self._early, []
            for run in early:
                event = run.started
                taker = _slot_of(event, fresh.get((event.call_id, event.name), ()))
                (self._early if taker is None else taker.runs).append(run)
        return slots


class _Next(Struct, frozen=True):
    """The request that followed a reply."""

    index: int
    added: tuple[Message, ...]
    grown: bool
    """Whether it has all messages of the request before, and only more."""


class _Asked(Struct):
    """A request whose reply has not ended; `next` is the one that was sent meanwhile, the rest is
    what a step has too.
    """

    turn: int
    main: bool
    offered: frozenset[str]
    next: _Next | None = None
    disturbed: bool = False
    outcome: Outcome | None = None
    ended_at: int | None = None


def _place(reply: str) -> str:
    """Where a reply stands in the script; what is given there again has ``~2``."""
    return reply.partition("~")[0]


def _slot_of(event: ToolStarted, slots: Sequence[Slot]) -> Slot | None:
    """The call that a run answers to: the first that has none and has its arguments, else the first
    that has none, else the last. One whose arguments are no JSON is the least likely to have run.
    """
    if len(slots) == 1:
        return slots[0]
    free = [slot for slot in slots if not slot.runs]
    for slot in sorted(free, key=lambda slot: slot.call.raw is not None):
        asked = {} if slot.call.args is None else slot.call.args  # null may stand for no arguments
        if asked == ({} if event.args is None else event.args):
            return slot
    return free[0] if free else slots[-1] if slots else None


def _show(step: Step, following: _Next) -> None:
    """Find what the request shows of the step."""
    step.answered_at = following.index
    added = following.added
    if following.grown:
        shown = added or None
    else:
        at = _where(step.slots, added)
        shown = None if at is None else added[at:]
    if shown is None:
        return
    step.shown = shown
    by_id = _match(step.slots, shown)
    for slot in step.slots:
        if slot.shown is None:
            by_id.setdefault(slot.call.id, deque()).append(slot)
    results = (message for message in shown if message.role == "tool")
    for place, message in enumerate(results):
        waiting = by_id.get(message.tool_call_id or "")
        if waiting:
            slot = waiting.popleft()
            slot.told, slot.answer = place, message
    tell_apart(step.slots)


def _where(slots: Sequence[Slot], added: Sequence[Message]) -> int | None:
    """The first of the messages that show the calls, where they are the last calls of all."""
    left = [(slot.call.id, slot.call.name) for slot in slots]
    found = None
    for at in range(len(added) - 1, -1, -1):
        calls = added[at].calls if added[at].role == "assistant" else ()
        hits = [call for call in calls if (call.id, call.name) in left]
        if calls and not hits:
            break
        for call in hits:
            if (call.id, call.name) in left:
                left.remove((call.id, call.name))
                found = at
        if not left:
            break
    return found


def _match(slots: Sequence[Slot], shown: Sequence[Message]) -> dict[str, deque[Slot]]:
    """Tell which shown call is which: the same one, else one of its id and name, else the next of
    its name, for some agents give calls other ids. What is given back are the slots by the id that
    they are shown with.
    """
    calls = [call for message in shown if message.role == "assistant" for call in message.calls]
    taken: dict[int, Slot] = {}
    for alike in (_same, _same_id, _same_name):
        for place, call in enumerate(calls):
            if place in taken:
                continue
            for slot in slots:
                if slot.shown is None and alike(slot.call, call):
                    slot.shown, taken[place] = place, slot
                    break
    found: dict[str, deque[Slot]] = {}
    for place in sorted(taken):
        found.setdefault(calls[place].id, deque()).append(taken[place])
    return found


def _same(asked: ToolCall, shown: ToolCall) -> bool:
    return asked == shown


def _same_id(asked: ToolCall, shown: ToolCall) -> bool:
    return asked.id == shown.id and asked.name == shown.name


def _same_name(asked: ToolCall, shown: ToolCall) -> bool:
    return asked.name == shown.name
