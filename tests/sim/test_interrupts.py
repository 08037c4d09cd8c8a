"""Interrupts of the main thread where it waits: what it waits for is left as it was."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from harness.core.durations import SECOND
from harness.runner.blocking import Frame
from harness.sim.kernel import Kernel


def interrupted(body: Callable[[], Any]) -> Any:
    """What a function gives that is interrupted after a second."""
    kernel = Kernel()
    frame = Frame(kernel, "1", lambda: None)
    task = frame.start()
    kernel.call_in(SECOND, task.cancel)
    given: list[Any] = []
    stop = frame.play(lambda: given.append(body()), kernel.run_until)
    left = [each.path for each in kernel.alive()]
    kernel.tear_down()
    assert (stop.reason, left, kernel.callback_errors) == ("done", [], [])
    [value] = given
    return value


def lock() -> Any:
    made: Any = threading.Lock()
    made.acquire()
    with pytest.raises(KeyboardInterrupt):
        made.acquire()
    waiting = len(made.waiters)
    made.release()
    return waiting, made.acquire(blocking=False)


def within_a_lock() -> Any:
    made = threading.Lock()
    with suppress(KeyboardInterrupt), made:
        time.sleep(5)
    return made.locked()


def reentrant_lock() -> Any:
    made, go = threading.RLock(), threading.Event()

    def holds() -> None:
        with made:
            go.wait()

    thread = threading.Thread(target=holds)
    thread.start()
    time.sleep(0.1)
    with suppress(KeyboardInterrupt), made:
        pass
    go.set()
    thread.join()
    with made:
        return made._is_owned()  # type: ignore[attr-defined]


def condition(timeout: float | None = None) -> Any:
    made = threading.Condition()
    with suppress(KeyboardInterrupt), made:
        made.wait(timeout)
    return len(made._waiters), made.acquire(blocking=False)  # type: ignore[attr-defined]


def condition_in_time() -> Any:
    return condition(10)


def items() -> Any:
    made: queue.Queue[int] = queue.Queue()
    with suppress(KeyboardInterrupt):
        made.get()
    made.put(1)
    return made.get(), len(made.not_empty._waiters)  # type: ignore[attr-defined]


def simple_items() -> Any:
    made: queue.SimpleQueue[int] = queue.SimpleQueue()
    with suppress(KeyboardInterrupt):
        made.get()
    made.put(1)
    return made.get()


def join() -> Any:
    go = threading.Event()
    thread = threading.Thread(target=go.wait)
    thread.start()
    with suppress(KeyboardInterrupt):
        thread.join()
    alive = thread.is_alive()
    go.set()
    thread.join()
    return alive, thread.is_alive()


def result() -> Any:
    go = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        future: Future[bool] = pool.submit(go.wait)
        with suppress(KeyboardInterrupt):
            future.result()
        go.set()
        return future.result(), len(future._condition._waiters)  # type: ignore[attr-defined]


def semaphore() -> Any:
    made: Any = threading.Semaphore(0)
    with suppress(KeyboardInterrupt):
        made.acquire()
    made.release()
    return made.acquire(blocking=False), len(made._cond._waiters)


def event() -> Any:
    made: Any = threading.Event()
    with suppress(KeyboardInterrupt):
        made.wait()
    made.set()
    return made.wait(), len(made._cond._waiters)


def barrier() -> Any:
    made = threading.Barrier(2)
    with suppress(KeyboardInterrupt):
        made.wait()
    return made.broken, made.n_waiting


def run() -> Any:
    told = []

    async def main() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    with suppress(KeyboardInterrupt):
        asyncio.run(main())
    return told


def background_loop() -> Any:
    loop = asyncio.new_event_loop()
    with suppress(KeyboardInterrupt):
        loop.run_forever()
    return loop.is_running()


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (lock, (0, True)),
        (within_a_lock, False),
        (reentrant_lock, True),
        (condition, (0, True)),
        (condition_in_time, (0, True)),
        (items, (1, 0)),
        (simple_items, 1),
        (join, (True, False)),
        (result, (True, 0)),
        (semaphore, (True, 0)),
        (event, (True, 0)),
        (barrier, (False, 0)),
        (run, ["cancelled"]),
        (background_loop, False),
    ],
)
def test_what_an_interrupt_leaves_can_be_used_on(body: Callable[[], Any], value: Any) -> None:
    assert interrupted(body) == value


def test_what_lets_others_go_on_is_done_although_it_is_interrupted() -> None:
    kernel = Kernel()
    frame = Frame(kernel, "1", lambda: None)
    task = frame.start()
    seen: list[bool] = []
    kernel.run_until(lambda: bool(task.k))

    def code() -> None:
        made = threading.Event()
        task.cancel()
        with suppress(KeyboardInterrupt):
            made.set()
            seen.append(False)
        seen.append(made.is_set())
        task.cancel()
        with suppress(KeyboardInterrupt):
            made.is_set()
            seen.append(False)

    assert frame.play(code, kernel.run_until).reason == "done"
    kernel.tear_down()
    assert seen == [True]


def test_a_pool_that_is_left_by_an_interrupt_goes_on() -> None:
    kernel = Kernel()
    frame = Frame(kernel, "1", lambda: None)
    task = frame.start()
    kernel.call_in(SECOND, task.cancel)

    def code() -> None:
        with suppress(KeyboardInterrupt), ThreadPoolExecutor(1) as pool:
            pool.submit(time.sleep, 20)
        time.sleep(30)

    assert frame.play(code, kernel.run_until).reason == "done"
    assert kernel.alive() == []
    assert kernel.now() == 31 * SECOND
    kernel.tear_down()


# --- what a task of a loop may not do


def in_a_task(body: Callable[[Any], object]) -> str:
    """Why a run stops in which a task does what blocks, while a thread holds what there is."""
    kernel = Kernel()

    async def main() -> None:
        made = {"lock": threading.Lock(), "again": threading.RLock(), "go": threading.Event()}
        made["queue"] = queue.Queue()  # type: ignore[assignment]

        def holds() -> None:
            with made["lock"], made["again"]:  # type: ignore[attr-defined]
                made["go"].wait()  # type: ignore[attr-defined]

        made["thread"] = threading.Thread(target=holds)  # type: ignore[assignment]
        made["thread"].start()  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        body(made)

    task = kernel.spawn(main(), "1")
    stop = kernel.run_until(task.done)
    kernel.tear_down()
    return f"{stop.reason}: {stop.detail}"


@pytest.mark.parametrize(
    "body",
    [
        lambda made: made["lock"].acquire(),
        lambda made: made["lock"].acquire(timeout=1),
        lambda made: made["again"].acquire(),
        lambda made: made["go"].wait(),
        lambda made: made["go"].wait(1),
        lambda made: made["queue"].get(),
        lambda made: made["queue"].join() if made["queue"].put(1) is None else None,
        lambda made: made["thread"].join(),
        lambda made: Future[int]().result(),
        lambda made: ThreadPoolExecutor(1).submit(time.sleep, 1).result(),
        lambda made: time.sleep(1),
        lambda made: threading.Barrier(2).wait(),
        lambda made: threading.Semaphore(0).acquire(),
    ],
)
def test_a_task_may_not_block(body: Callable[[Any], object]) -> None:
    told = in_a_task(body)
    assert told.startswith("out_of_simulation: ")
    assert "test_interrupts.py" in told


@pytest.mark.parametrize(
    "body",
    [
        lambda made: made["lock"].acquire(blocking=False),
        lambda made: made["lock"].acquire(timeout=0),
        lambda made: made["again"].acquire(blocking=False),
        lambda made: made["go"].wait(0),
        lambda made: made["go"].set(),
        lambda made: made["queue"].put(1),
        lambda made: made["thread"].is_alive(),
        lambda made: made["thread"].join(0),
        lambda made: Future[int]().cancel(),
        lambda made: threading.Lock().acquire(),
    ],
)
def test_a_task_may_do_what_does_not_block(body: Callable[[Any], object]) -> None:
    assert in_a_task(body).startswith("done")


def test_a_task_wakes_a_thread() -> None:
    kernel = Kernel()
    told: list[Any] = []

    async def main() -> None:
        made: queue.Queue[int] = queue.Queue()
        lock = threading.Lock()
        lock.acquire()

        def waits() -> None:
            with lock:
                told.append(made.get())

        thread = threading.Thread(target=waits)
        thread.start()
        await asyncio.sleep(1)
        lock.release()
        await asyncio.sleep(1)
        made.put(7)
        await asyncio.to_thread(thread.join)

    task = kernel.spawn(main(), "1")
    assert kernel.run_until(task.done).reason == "done"
    kernel.tear_down()
    assert told == [7]
