"""What code under test says that it has come to: goals that a search is to reach."""

from __future__ import annotations

from harness.sim.boundary import simulation
from harness.sim.sites import SiteKernel


def sometimes(name: str) -> None:
    """Say that this place is reached, so that a search can tell whether any run came here.

    Call it from an agent, a tool or a function where something rare must happen in some run, such
    as ``sometimes("cache full")``; a search asks for it as the goal ``reached cache full``. It does
    nothing outside of a simulation, nor while a run is torn down.
    """
    loop = simulation()
    if isinstance(loop, SiteKernel) and loop.watched:
        loop.reached.add(name)
