"""Calls and their results, as the next request shows them."""

from __future__ import annotations

from typing import ClassVar

from harness.core.events import (
    CancelRequested,
    FaultInjected,
    Mismatch,
    RequestSent,
    TurnEnded,
    TurnStarted,
)
from harness.core.outcome import Completed, Error, Outcome, StepLimit, outcome_name
from harness.core.pairing import Breach, Follower
from harness.core.trace import Entry
from harness.invariants.invariant import EventType, Facts, Fold


class _Requests:
    """The breaches that each request adds, each told once."""

    def __init__(self) -> None:
        self._followers: dict[str, Follower] = {}
        self._told: set[tuple[str, Breach]] = set()

    def take(self, event: RequestSent) -> list[Breach]:
        name = event.conversation
        follower = self._followers.setdefault(name, Follower())
        found = follower.take(event.kept, event.added)
        fresh = [breach for breach in found if (name, breach) not in self._told]
        self._told.update((name, breach) for breach in fresh)
        return fresh


class _Turns(Fold):
    """Reads requests and knows whether one is the first after a turn that was cut short."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.requests = _Requests()
        self.turn = 0
        self.before: Outcome | None = None
        self.last: Outcome | None = None
        self.resuming = False

    def follow(self, entry: Entry) -> None:
        """Keep count of the turns."""
        match entry.event:
            case TurnStarted(turn=turn):
                self.turn, self.before = turn, self.last
                self.resuming = not isinstance(self.before, Completed | None)
            case TurnEnded(outcome=outcome):
                self.last = outcome

    def first_after_cut(self, request: RequestSent) -> bool:
        """Whether the request is the main conversation's first after a turn that was cut short."""
        first = self.resuming and request.conversation == "main"
        if first:
            self.resuming = False
        return first


class Pair(_Turns):
    """Every call in a request is answered exactly once, directly after it, and nothing is answered
    that was not called.
    """

    id = "PAIR"
    reads: ClassVar[tuple[EventType, ...]] = (TurnStarted, TurnEnded, RequestSent)
    needs: ClassVar[tuple[EventType, ...]] = (RequestSent,)

    def step(self, index: int, entry: Entry) -> None:
        """Judge the requests that RESUME does not."""
        self.follow(entry)
        if not isinstance(entry.event, RequestSent):
            return
        breaches = self.requests.take(entry.event)
        if self.first_after_cut(entry.event):
            return
        for breach in breaches:
            self.report(f"request {entry.event.reply}: {breach.message}", index, self.turn)


class Resume(_Turns):
    """After a turn that was cut short, the next request is valid and the next turn completes."""

    id = "RESUME"
    reads: ClassVar[tuple[EventType, ...]] = (
        TurnStarted,
        TurnEnded,
        RequestSent,
        CancelRequested,
        FaultInjected,
        Mismatch,
    )
    needs: ClassVar[tuple[EventType, ...]] = ()

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.disturbed = False
        self.broken = False

    def step(self, index: int, entry: Entry) -> None:
        """Judge the first request after a cut, and how its turn ends."""
        self.follow(entry)
        match entry.event:
            case TurnStarted():
                self.disturbed = False
                self.judged = self.judged or self.resuming
            case CancelRequested() | FaultInjected() | Mismatch():
                self.disturbed = True
            case RequestSent() as request:
                breaches = self.requests.take(request)
                self.broken = self.broken or bool(breaches)
                if self.first_after_cut(request):
                    for breach in breaches:
                        self.report(
                            f"the request after a {self.name_before} turn is not valid: "
                            f"{breach.message}",
                            index,
                            self.turn,
                        )
            case TurnEnded(outcome=outcome):
                if self.cannot_go_on(outcome):
                    self.report(
                        f"the turn after a {self.name_before} turn ended as {_spell(outcome)}, "
                        "though nothing disturbed it",
                        index,
                        self.turn,
                    )

    @property
    def name_before(self) -> str:
        """How the turn before ended."""
        assert self.before is not None
        return outcome_name(self.before)

    def cannot_go_on(self, outcome: Outcome) -> bool:
        """Whether an undisturbed turn after a cut one failed, for no reason told yet.

        A history that is not valid any more has been told of, here or by PAIR.
        """
        cut_before = not isinstance(self.before, Completed | None)
        failed = not isinstance(outcome, Completed | StepLimit)
        return cut_before and failed and not self.disturbed and not self.broken


def _spell(outcome: Outcome) -> str:
    if isinstance(outcome, Error):
        return f"error ({outcome.kind}: {outcome.message})"
    return outcome_name(outcome)
