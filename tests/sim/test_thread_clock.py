"""What `threading` and `queue` wait for with a time limit ends when that has passed, virtually."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest

from harness.core.durations import SECOND
from harness.sim.kernel import Kernel


def waits_for(made: queue.Queue[int] | queue.SimpleQueue[int]) -> None:
    with pytest.raises(queue.Empty):
        made.get(timeout=60)


def condition() -> None:
    changed = threading.Condition()
    with changed:
        assert not changed.wait_for(lambda: False, timeout=60)


def full() -> None:
    made: queue.Queue[int] = queue.Queue(1)
    made.put(1)
    with pytest.raises(queue.Full):
        made.put(2, timeout=60)


@pytest.mark.parametrize(
    "wait",
    [
        lambda: threading.Semaphore(0).acquire(timeout=60),
        lambda: waits_for(queue.Queue()),
        lambda: waits_for(queue.SimpleQueue()),
        condition,
        full,
    ],
)
def test_a_time_limit_is_virtual(kernel: Kernel, wait: Callable[[], object]) -> None:
    took: list[int] = []

    def work() -> None:
        wait()
        took.append(kernel.now())

    async def main() -> None:
        threading.Thread(target=work).start()

    kernel.spawn(main(), "1")
    kernel.run_until(lambda: bool(took), 1_000 * SECOND)
    assert took == [60 * SECOND]
