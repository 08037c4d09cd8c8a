"""The clock that loops and fakes see is the kernel's."""

from __future__ import annotations

from harness.core.durations import SECOND
from harness.core.ports import Clock
from harness.sim.clock import VirtualClock
from harness.sim.kernel import Kernel


def test_a_clock_waits_to_the_nanosecond(kernel: Kernel) -> None:
    clock: Clock = VirtualClock(kernel)
    seen: list[int] = []

    async def waiter() -> None:
        for span in (1, 999_999_999, 0, 123_456_789_012, 1):
            await clock.sleep(span)
            seen.append(clock.now())

    task = kernel.spawn(waiter(), "1")
    kernel.run_until(task.done)
    assert seen == [1, SECOND, SECOND, 124_456_789_012, 124_456_789_013]


def test_a_wait_of_nothing_lets_others_run(kernel: Kernel) -> None:
    clock = VirtualClock(kernel)
    log: list[str] = []

    async def first() -> None:
        log.append("first")
        await clock.sleep(0)
        log.append("first again")

    async def second() -> None:
        log.append("second")

    kernel.spawn(first(), "1")
    kernel.spawn(second(), "2")
    kernel.settle()
    assert log == ["first", "second", "first again"]
