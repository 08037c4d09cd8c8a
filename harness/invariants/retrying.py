"""Asking again: not too soon, not for ever, and not behind the back of who is watching."""

from __future__ import annotations

from harness.core.durations import format_duration
from harness.core.events import FaultInjected, LoopEvent, ReplyEnded, RequestSent, TurnStarted
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import Here, on

ATTEMPTS_MOST = 10
"""How often one reply may be asked for. Vendors' libraries ask three times, gateways up to five."""


class RetryAfter(Fold):
    """Where a provider says when to ask again, no request for the same reply comes earlier."""

    id = "RETRY-AFTER"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.not_before: dict[str, tuple[int, int]] = {}
        """For a place in the script: when it was told to wait, and until when."""

    @on(FaultInjected)
    def failed(self, event: FaultInjected) -> None:
        """Take note of what the provider said."""
        if event.retry_after is not None:
            self.judged = True
            now = self.here.entry.at
            self.not_before[_place(event.place)] = now, now + event.retry_after

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """The user asks again, and may."""
        self.not_before.clear()

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Judge when it is asked again."""
        told, until = self.not_before.pop(_place(event.reply), (0, 0))
        if self.here.entry.at < until:
            self.report_here(
                f"reply {_place(event.reply)} was asked for again after "
                f"{format_duration(self.here.entry.at - told)}; the provider had said to wait "
                f"{format_duration(until - told)}"
            )


class RetryBound(Fold):
    """A reply that fails again and again is given up."""

    id = "RETRY-BOUND"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.attempts: dict[str, int] = {}
        """How often each place has failed since it was told of."""

    @on(TurnStarted)
    def begin(self, _event: TurnStarted) -> None:
        """Count anew: the user may well ask again."""
        self.attempts.clear()

    @on(FaultInjected)
    def failed(self, event: FaultInjected) -> None:
        """Count what goes wrong."""
        self.judged = True
        place = _place(event.place)
        count = self.attempts[place] = self.attempts.get(place, 0) + 1
        if count == ATTEMPTS_MOST + 1:
            self.report_here(f"reply {place} failed {count} times, and was asked for again")


class RetryVisible(Fold):
    """Where a part of a reply was shown, the consumer hears of it before the reply is asked for
    again: by an event `retry`, after which what came of the reply is void.
    """

    id = "RETRY-VISIBLE"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.shown = ""
        self.tells = False
        """Whether the loop tells its consumer of the text as it comes."""
        self.broken: set[str] = set()

    @on(LoopEvent)
    def told(self, event: LoopEvent) -> None:
        """Collect what is shown of the reply that comes."""
        if event.name == "text":
            payload = event.payload
            self.shown += str(payload.get("delta")) if isinstance(payload, dict) else ""
            self.tells = True
        elif event.name in ("retry", "done", "turn_end"):
            self.shown = ""

    @on(FaultInjected)
    def failed(self, event: FaultInjected) -> None:
        """Take note that a reply may break."""
        self.broken.add(_place(event.place))
        self.judged = self.judged or self.tells

    @on(ReplyEnded)
    def cut_off(self, event: ReplyEnded) -> None:
        """Take note that a reply came to a limit, for which no fault was needed."""
        if event.end == "torn":
            self.broken.add(_place(event.reply))
            self.judged = self.judged or self.tells

    @on(RequestSent)
    def requested(self, event: RequestSent) -> None:
        """Judge whether something of the same reply is still shown."""
        again = "~" in event.reply and _place(event.reply) in self.broken
        if event.conversation == "main":
            if again and self.shown:
                self.report_here(
                    f"reply {_place(event.reply)} was asked for again while {self.shown[:40]!r} of "
                    "it is shown, without an event `retry` before"
                )
            self.shown = ""


def _place(reply: str) -> str:
    return reply.partition("~")[0]
