"""Nothing real is reached from a run."""

from __future__ import annotations

from harness.core.events import NetworkReached
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

    @on(NetworkReached)
    def reached(self, event: NetworkReached) -> None:
        """Tell of one attempt, which was refused."""
        self.report_here(event.message)
