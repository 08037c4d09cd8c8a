"""Why a run stops, and how much it may take before it does."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.durations import SECOND

Reason: TypeAlias = Literal[
    "done",
    "quiescent",
    "deadline",
    "deadlock",
    "step_limit",
    "instant_limit",
    "time_limit",
    "out_of_simulation",
    "stuck",
]
OVER: frozenset[Reason] = frozenset(
    ["step_limit", "instant_limit", "time_limit", "out_of_simulation", "stuck"]
)
"""The reasons with which a run is over, whatever its scenario has left."""


class Limits(Struct, frozen=True):
    """How much a run may take.

    `steps` of tasks and callbacks are allowed in the whole run, and `steps_per_instant` within one
    instant of virtual time; those are counted anew in each call of `run_until`, `settle` or
    `drain`, so that a run may have as many turns at one instant as it likes. `time` is the whole
    run's, in virtual nanoseconds; two days hold a timer of one day, the longest that a scenario
    can ask for. `work` is what one step may work, in real nanoseconds: no step of a loop that
    waits where it should gets near it.
    """

    steps: int = 1_000_000
    steps_per_instant: int = 100_000
    time: int = 48 * 3_600 * SECOND
    work: int = 10 * SECOND


class Stop(Struct, frozen=True):
    """Why the kernel stopped: a reason, a sentence, and one line for each task that waits.

    ``done``: what was waited for is. ``quiescent``: nothing is left to do. ``deadlock``: tasks
    wait and nothing will ever wake them. ``deadline``: more would happen, but later. ``stuck``: a
    step did not give way and was ended; the kernel runs nothing more but its `tear_down`.
    """

    reason: Reason
    detail: str = ""
    waits: tuple[str, ...] = ()
