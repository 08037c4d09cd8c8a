"""What a provider refuses by a rule of its own."""

from __future__ import annotations

from harness.core.events import Received
from harness.invariants.invariant import Fold
from harness.invariants.reader import on


class Accepted(Fold):
    """No request breaks a rule of the provider that it is sent to; the rules are those of the
    protocol in which it comes, so this is judged where requests go over HTTP.
    """

    id = "ACCEPTED"
    needs = (Received,)

    @on(Received)
    def received(self, event: Received) -> None:
        """Judge one request."""
        if event.rule is not None:
            self.report_here(
                f"request {event.reply} breaks {event.rule} of {event.protocol}: {event.message}"
            )
