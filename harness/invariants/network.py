"""Nothing real is reached from a run."""

from __future__ import annotations

from harness.core.events import NetworkReached, RunStopped
from harness.invariants.invariant import Facts, Fold
from harness.invariants.reader import Here, on


class NoNet(Fold):
    """Nothing reaches for the network: what an agent asks for is answered in the process, or by a
    server on this machine that is part of the run.
    """

    id = "NO-NET"

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(facts, here)
        self.judged = True  # the guard is there in every run
        self.reached: list[tuple[str, int, int]] = []
        """Attempts that no stop of the run has told of: the message, the entry, the turn."""

    @on(NetworkReached)
    def attempted(self, event: NetworkReached) -> None:
        """Take note of an attempt, which was refused; the run stops for it."""
        self.reached.append((event.message, self.here.index, self.here.turn))

    @on(RunStopped)
    def stopped(self, event: RunStopped) -> None:
        """Tell of what the run stopped for, where it did."""
        if any(message == event.detail for message, _entry, _turn in self.reached):
            self.reached.clear()
            self.report_here(event.detail)

    def finish(self) -> None:
        """Tell of an attempt that something else came before."""
        for message, entry, turn in self.reached[:1]:
            self.report(message, entry, turn)
