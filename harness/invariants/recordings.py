"""What a run on a cassette asks for, against what was recorded."""

from __future__ import annotations

from harness.core.events import InteractionUnused, RequestMissed, RunStopped
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import Here, on


class Miss(Fold):
    """On a cassette, every request is one that was recorded, and every recorded one is made.

    Requests behind the first that was not recorded only follow from it, and so does what was never
    asked for then, or in a run that stopped.
    """

    id = "MISS"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.judged = facts.recorded
        self.followed = False
        self.unused: list[tuple[str, int]] = []
        """What was never asked for, each with its entry."""

    @on(RequestMissed)
    def missed(self, event: RequestMissed) -> None:
        """Report the first request that was not recorded."""
        if not self.followed:
            self.report_here(event.message)
        self.followed = True

    @on(RunStopped)
    def stopped(self, _event: RunStopped) -> None:
        """Nothing more could be asked for."""
        self.followed = True

    @on(InteractionUnused)
    def left(self, event: InteractionUnused) -> None:
        """Take note of what is left at the end."""
        self.unused.append((f"{event.message}, interaction {event.number}", self.here.index))

    def finish(self) -> None:
        """Report what was never asked for."""
        if self.unused and not self.followed:
            (first, index), *more = self.unused
            others = f", nor were {len(more)} more behind it" if more else ""
            self.report(
                f"the cassette's {first}, was never asked for{others}; see what the agent does "
                "otherwise than when it was recorded, or record all anew (harness record: --mode "
                "all)",
                index,
            )
