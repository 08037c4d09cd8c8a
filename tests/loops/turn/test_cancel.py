from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.core.cancel_signal import CancelSignal
from harness.loops.turn.cancel import Aborted, Cancellation, Failed, Job, Ok, drop, race
from harness.sim.kernel import Kernel


def on_kernel(make: Callable[[], Any]) -> Any:
    """Run a coroutine function on a fresh kernel that must have nothing to complain about."""
    kernel = Kernel()
    try:
        task = kernel.spawn(make(), "1")
        kernel.run_until(task.done)
        kernel.settle()
        gc.collect()
        assert kernel.callback_errors == []
        return task.result()
    finally:
        kernel.tear_down()


async def after(ms: int, value: object) -> object:
    await asyncio.sleep(ms / 1000)
    if isinstance(value, BaseException):
        raise value
    return value


def test_a_race_leaves_no_listener_behind() -> None:
    signal = CancelSignal()

    async def main() -> None:
        for _ in range(50):
            assert await race(after(1, 7), signal) == Ok(7)
            assert signal.listeners == 0

    on_kernel(main)


def test_work_that_loses_is_cancelled_and_its_late_failure_is_nobodys() -> None:
    signal = CancelSignal()
    ends: list[str] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            ends.append("cancelled")
            await asyncio.sleep(1)
            raise ValueError("late") from None

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.005, signal.abort)
        assert await race(stubborn(), signal) == Aborted()
        await asyncio.sleep(2)

    on_kernel(main)
    assert ends == ["cancelled"]


def test_with_the_signal_aborted_the_work_does_not_begin() -> None:
    signal = CancelSignal()
    signal.abort()
    began: list[bool] = []

    async def work() -> None:
        began.append(True)

    async def main() -> None:
        assert await race(work(), signal) == Aborted()
        future = asyncio.get_running_loop().create_future()
        assert await race(future, signal) == Aborted()
        assert future.cancelled()

    on_kernel(main)
    assert began == []


def test_a_future_that_is_dropped_may_fail_unseen() -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        future.set_exception(ValueError("nobody looks"))
        drop(future)

    on_kernel(main)


def test_cancelling_the_racer_gives_the_work_up_and_goes_on() -> None:
    ends: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            ends.append("over")

    async def main() -> str:
        racer = asyncio.ensure_future(race(work(), CancelSignal()))
        await asyncio.sleep(0.001)
        racer.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await racer
        await asyncio.sleep(0)
        return "went on"

    assert on_kernel(main) == "went on"
    assert ends == ["over"]


def test_a_cancelled_error_out_of_the_work_is_the_works_failure() -> None:
    async def main() -> Any:
        return await race(after(1, asyncio.CancelledError("inner")), CancelSignal())

    raced = on_kernel(main)
    assert isinstance(raced, Failed)
    assert isinstance(raced.error, asyncio.CancelledError)


@pytest.mark.parametrize("suspensions", [0, 1, 2])
def test_a_cancel_of_the_works_task_alone_is_the_works_failure(suspensions: int) -> None:
    """Also before the work has begun: the signal was not aborted."""

    async def stop_others() -> None:
        for _ in range(suspensions):
            await asyncio.sleep(0)
        mine = {asyncio.current_task(), racer}
        for task in asyncio.all_tasks() - mine:
            task.cancel()

    async def main() -> Any:
        nonlocal racer
        racer = asyncio.current_task()
        stopping = asyncio.create_task(stop_others())
        raced = await race(after(1, 7), CancelSignal())
        await stopping
        return raced

    racer: asyncio.Task[Any] | None = None
    raced = on_kernel(main)
    assert isinstance(raced, Failed)
    assert isinstance(raced.error, asyncio.CancelledError)


def test_an_abort_counts_from_the_moment_it_is_signalled() -> None:
    signal = CancelSignal()

    async def work() -> int:
        await asyncio.sleep(0.001)
        signal.abort()
        return 7

    async def main() -> None:
        assert await race(work(), signal) == Aborted()

    on_kernel(main)


def test_another_thread_may_abort() -> None:
    signal = CancelSignal()

    async def main() -> None:
        thread = threading.Thread(target=signal.abort)
        asyncio.get_running_loop().call_soon(thread.start)
        assert await race(asyncio.sleep(60), signal) == Aborted()

    asyncio.run(main())
    assert signal.listeners == 0


def test_within_the_loop_an_abort_wakes_nobody_through_the_thread_safe_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signal = CancelSignal()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_soon_threadsafe", None)
        loop.call_soon(signal.abort)
        assert await race(asyncio.sleep(60), signal) == Aborted()

    on_kernel(main)


async def cleaning_up(ms: int, ends: list[str]) -> None:
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        await asyncio.sleep(ms / 1000)
        ends.append("clean")
        raise


@pytest.mark.parametrize(
    ("grace", "needs", "waited", "ends"),
    [(0, 5, 0, []), (0.01, 5, 5, ["clean"]), (0.01, 50, 10, []), (0.01, 0, 0, ["clean"])],
)
def test_given_up_work_is_waited_for_no_longer_than_the_grace(
    grace: float, needs: int, waited: int, ends: list[str]
) -> None:
    signal = CancelSignal()
    found: list[str] = []

    async def main() -> float:
        loop = asyncio.get_running_loop()
        cancellation = Cancellation(signal, grace)
        job = Job(lambda: cleaning_up(needs, found))
        loop.call_later(0.001, signal.abort)
        assert not await cancellation.settle([job])
        return round(1000 * (loop.time() - 1000)) - 1

    assert on_kernel(main) == waited
    assert found[: len(ends)] == ends


def test_cancelling_the_waiter_ends_the_grace() -> None:
    signal = CancelSignal()
    found: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        cancellation = Cancellation(signal, 5)
        job = Job(lambda: cleaning_up(1000, found))
        me = asyncio.current_task()
        assert me is not None
        loop.call_later(0.001, signal.abort)
        loop.call_later(0.002, me.cancel, "now")
        assert not await cancellation.settle([job])
        assert str(cancellation.native) == "now"
        me.uncancel()

    on_kernel(main)
    assert found == []


def test_nothing_to_wait_for_is_no_suspension() -> None:
    async def waiting() -> bool:
        return await Cancellation(None).settle([])

    async def at_once() -> None:
        coroutine = waiting()
        with pytest.raises(StopIteration) as stopped:
            coroutine.send(None)
        assert stopped.value.value is True

    asyncio.run(at_once())


@pytest.mark.parametrize("cancels", [0, 1, 2])
def test_a_cancel_that_the_task_has_got_counts_before_its_next_wait(cancels: int) -> None:
    async def turn() -> bool:
        cancellation = Cancellation(None)
        task = asyncio.current_task()
        assert task is not None
        for _ in range(cancels):
            task.cancel("enough")
        stopped = await cancellation.stopped_by_now()
        assert await cancellation.stopped_by_now() == stopped
        assert str(cancellation.native) == ("enough" if stopped else "None")
        return stopped

    assert asyncio.run(turn()) == (cancels > 0)


def test_a_cancel_of_long_ago_counts_no_more() -> None:
    async def turn() -> bool:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        return await Cancellation(None).stopped_by_now()

    assert asyncio.run(turn()) is False


@pytest.mark.parametrize(
    ("sees", "over"), [(True, ["closed in peace"]), (False, ["cut while it waited"])]
)
def test_work_that_aborts_its_own_turn_is_cut_where_it_then_waits_unless_it_sees_it(
    sees: bool, over: list[str]
) -> None:
    signal = CancelSignal()
    ends: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0)
        signal.abort()
        try:
            await asyncio.sleep(0.005)
            ends.append("closed in peace")
        except asyncio.CancelledError:
            ends.append("cut while it waited")
            raise

    async def main() -> None:
        job = Job(work, noticed=lambda: sees and signal.aborted)
        assert not await Cancellation(signal).settle([job])
        await asyncio.wait([job.task])

    on_kernel(main)
    assert ends == over


@pytest.mark.parametrize(("anyway", "began"), [(True, ["a", "b"]), (False, ["a"])])
def test_of_a_batch_that_is_stopped_by_its_first_the_others_begin_only_if_told_to(
    anyway: bool, began: list[str]
) -> None:
    signal = CancelSignal()
    found: list[str] = []

    async def work(name: str) -> None:
        found.append(name)
        signal.abort()
        await asyncio.sleep(0)
        found.append(f"{name} went on")

    async def main() -> None:
        jobs = [Job(lambda name=name: work(name), begins_anyway=anyway) for name in "ab"]
        assert not await Cancellation(signal).settle(jobs)
        await asyncio.sleep(0.001)
        assert [job.started for job in jobs] == [True, anyway]

    on_kernel(main)
    assert found == began
