"""No program that is right is blamed, wherever it is cancelled and in whatever order it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.exploration.sweep import MODES
from harness.runner.exploring import explore, sweep
from harness.sim.orders import Order
from tests.known_bugs import right, right_shared

Program = Callable[[], Any]

PROGRAMS: list[Program] = [
    right.GroupWithCleanUp,
    right.gathers_with_exceptions,
    right.waits_under_a_timeout,
    right.retries,
    right.ShieldedCommit,
    right.WorkersWithSentinel,
    right.WorkersWithJoin,
    right.Guarded,
    right.Meeting,
    right.Connects,
    right.Stacks,
    right.reads_some,
    right.uses_anyio,
    right.moves_on,
    right.anyio_streams,
    right.has_a_heartbeat,
    right.works_in_a_thread,
    right.Debounce,
    right.fans_out_and_in,
    right_shared.Bounded,
    right_shared.RateLimited,
    right_shared.SingleFlight,
    right_shared.Leases,
    right_shared.Locked,
    right_shared.races,
    right_shared.waits_with_wait_for,
    right_shared.gathers,
    right_shared.polls,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_cancel_is_blamed_unless_it_cuts_a_clean_up_short(program: Program) -> None:
    swept = sweep(program, modes=MODES)
    blamed = {group.key.partition(": ")[0]: group for group in swept.report.failed}
    assert set(blamed) <= {"cleanup interrupted"}
    assert all(len(group.shots) == 2 for group in blamed.values())
    assert not swept.report.incomplete


@pytest.mark.parametrize("order", ["completions", "tasks"])
@pytest.mark.parametrize("program", [*PROGRAMS, right_shared.Service])
def test_no_order_is_blamed(program: Program, order: Order) -> None:
    explore(program, order=order, runs=60).check()


def test_what_a_shielded_task_waits_for_is_no_orphan() -> None:
    """Its own cancel, which nobody but the end of the process sends, would leave all behind."""
    sweep(right_shared.Service, roles=["turn"]).check()
