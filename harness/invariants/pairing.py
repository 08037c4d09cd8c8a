"""Calls and their results, as the next request shows them."""

from __future__ import annotations

from harness.core.events import (
    AnyEvent,
    CancelRequested,
    FaultInjected,
    Mismatch,
    ReplyEnded,
    RequestMissed,
    RequestSent,
    TurnEnded,
    TurnStarted,
)
from harness.core.outcome import Completed, Error, Outcome, StepLimit, outcome_name
from harness.core.wording import an
from harness.invariants.invariant import Facts
from harness.invariants.reader import Here, on
from harness.invariants.requests import RequestFold, Sent


class _Turns(RequestFold):
    """Knows whether a request is the first after a turn that was cut short."""

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.before: Outcome | None = None
        self.last: Outcome | None = None
        self.resuming = False

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """A turn begins."""
        self.before = self.last
        self.resuming = not isinstance(self.before, Completed | None)

    @on(TurnEnded)
    def end(self, event: TurnEnded) -> None:
        """A turn is over."""
        self.last = event.outcome

    def first_after_cut(self, sent: Sent) -> bool:
        """Whether the request is the main conversation's first after a turn that was cut short."""
        first = self.resuming and sent.main
        if first:
            self.resuming = False
        return first


class Pair(_Turns):
    """Every call in a request is answered exactly once, directly after it, and nothing is answered
    that was not called.
    """

    id = "PAIR"
    needs = (RequestSent,)

    def request(self, sent: Sent) -> None:
        """Judge the requests that RESUME does not."""
        if not self.first_after_cut(sent):
            for breach in sent.breaches:
                self.report(f"{sent.name}: {breach.message}", sent.index, sent.turn)


class Resume(_Turns):
    """After a turn that was cut short, the next request is valid and the next turn completes."""

    id = "RESUME"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.disturbed = False
        self.broken = False

    @on(TurnStarted)
    def begin(self, event: TurnStarted) -> None:
        """There is something to judge where the turn before was cut short."""
        super().begin(event)
        self.disturbed = False
        self.judged = self.judged or self.resuming

    @on(CancelRequested, FaultInjected, Mismatch, RequestMissed)
    def disturb(self, _event: AnyEvent) -> None:
        """What comes of the turn is not its own doing."""
        self.disturbed = True

    @on(ReplyEnded)
    def cut_off(self, event: ReplyEnded) -> None:
        """Nor is what comes of a model that has more to say and may not."""
        self.disturbed = self.disturbed or event.end == "torn"

    def request(self, sent: Sent) -> None:
        """Judge the first request after a cut."""
        self.broken = self.broken or bool(sent.breaches)
        if self.first_after_cut(sent):
            invalid = f"the request after {an(self.name_before)} turn is not valid"
            for breach in sent.breaches:
                self.report(f"{invalid}: {breach.message}", sent.index, sent.turn)

    @on(TurnEnded)
    def end(self, event: TurnEnded) -> None:
        """Judge how the turn after a cut one ends."""
        super().end(event)
        if self.cannot_go_on(event.outcome):
            self.report_here(
                f"the turn after {an(self.name_before)} turn ended as {_spell(event.outcome)}, "
                "though nothing disturbed it"
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
