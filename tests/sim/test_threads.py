"""Threads of a run: how they end, what they leave behind, and what breaks a run that has them."""

# ruff: noqa: TID251 - what is banned elsewhere is what is tested here

from __future__ import annotations

import asyncio
import contextvars
import gc
import importlib
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.sim import stillness
from harness.sim.hold import kept
from harness.sim.kernel import Kernel
from tests.sim.threaded import QUICK, WAYS, Body, Played, drawn, play


def others() -> list[str]:
    """The names of the threads that live beside those of the test."""
    return sorted(each.name for each in threading.enumerate() if "watchdog" not in each.name)


@pytest.fixture(autouse=True)
def leaves_no_thread_behind() -> Iterator[None]:
    before = others()
    yield
    assert others() == before


def gone_soon() -> None:
    """Wait until a thread is gone that a run has left where it was, and that goes on after it."""
    for _ in range(200):
        if len(others()) == 1:
            break
        time.sleep(0.01)


def forever(lock: Any) -> None:
    """Catches its end, whatever it is."""
    while True:
        try:
            with lock:
                threading.Event().wait()
        except BaseException:
            pass


# --- how threads end


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_threads_that_wait_for_ever_are_named_and_end(
    way: Callable[[Played, Body], None],
) -> None:
    ended: list[str] = []

    def main() -> None:
        def waits(name: str) -> None:
            try:
                event.wait()
            finally:
                ended.append(name)

        event = threading.Event()
        threads = [threading.Thread(target=waits, args=(name,), name=name) for name in "ab"]
        for thread in threads:
            thread.start()
        threads[0].join()

    played = play(main, way)
    assert played.stop.reason == "deadlock"
    assert sum("in waits" in each for each in played.stop.waits) == 2
    assert sum(" a: " in each or " b: " in each for each in played.stop.waits) == 2
    assert sorted(ended) == ["a", "b"]


def test_a_thread_that_ends_may_clean_up_what_waits_for_nothing() -> None:
    lock, told = [], []

    def main() -> None:
        lock.append(threading.Lock())
        items: queue.Queue[int] = queue.Queue()

        def waits() -> None:
            try:
                with lock[0]:
                    threading.Event().wait()
            finally:
                with lock[0]:
                    items.put(1)
                    told.append(items.get())

        thread = threading.Thread(target=waits)
        thread.start()
        thread.join()

    assert play(main).stop.reason == "deadlock"
    assert told == [1]
    assert lock[0].acquire(blocking=False)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_thread_that_catches_its_end_for_ever_is_driven_out(
    way: Callable[[Played, Body], None],
) -> None:
    def main() -> None:
        lock = threading.Lock()
        thread = threading.Thread(target=forever, args=(lock,))
        thread.start()
        thread.join()

    trace = sys.gettrace()
    for _ in range(2):
        assert play(main, way).stop.reason == "deadlock"
    assert sys.gettrace() is trace


def test_a_job_that_catches_its_end_for_ever_is_driven_out() -> None:
    def main() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(forever, threading.Lock()).result()

    assert play(main).stop.reason == "deadlock"


def test_a_thread_that_takes_free_locks_for_ever_is_driven_out() -> None:
    def takes(lock: threading.Lock) -> None:
        threading.Event().wait(5)
        while True:
            try:
                with lock:
                    pass
            except BaseException:
                pass

    def main() -> None:
        threading.Thread(target=takes, args=(threading.Lock(),), daemon=True).start()
        time.sleep(1)

    assert play(main).stop.reason == "done"


def test_a_daemon_thread_does_not_outlive_the_run() -> None:
    def main() -> str:
        threading.Thread(target=time.sleep, args=(10_000,), daemon=True).start()
        return "over"

    assert play(main).value == "over"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_thread_that_never_gives_way_is_ended(way: Callable[[Played, Body], None]) -> None:
    def spins() -> None:
        while True:
            pass

    def main() -> None:
        thread = threading.Thread(target=spins)
        thread.start()
        thread.join()

    played = play(main, way, limits=QUICK)
    assert played.stop.reason == "stuck"
    assert "in spins" in played.stop.detail
    assert play(lambda: 7, way).value == 7


def test_two_hundred_runs_leave_nothing_behind() -> None:
    def main() -> None:
        lock = threading.Lock()
        threads = [threading.Thread(target=forever, args=(lock,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(str, range(4)))
        threads[0].join()

    def kept() -> int:
        """How many objects there are; a tracer, such as coverage's, keeps some for each thread."""
        gc.collect()
        packages = ("harness", "threading", "concurrent", "_thread", "_asyncio", "builtins")
        found = [type(each) for each in gc.get_objects()]
        kinds = [each for each in found if str(each.__module__).partition(".")[0] in packages]
        traced = ("builtin_function_or_method", "method")
        return sum(each.__name__ not in traced for each in kinds)

    def plays(runs: int) -> None:
        for _ in range(runs):
            assert play(main).stop.reason == "deadlock"

    plays(20)
    before = kept()
    plays(180)
    assert kept() - before < 180


def test_a_thread_that_keeps_what_it_is_driven_out_with_is_left() -> None:
    """In a process of its own, where that thread is left."""
    program = """
import threading, time
from tests.sim.threaded import play
def keeps():
    kept = []
    while True:
        try:
            while True:
                try:
                    while True:
                        threading.Event().wait()
                except BaseException as error:
                    kept.append(error)
        except BaseException as error:
            kept.append(error)
def main():
    threading.Thread(target=keeps).start()
    time.sleep(1)
print(play(main).stop.reason, threading.active_count())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split()[0] == "done"


def test_a_job_that_stands_still_for_real_is_left_until_it_goes_on() -> None:
    made: queue.SimpleQueue[int] = queue.SimpleQueue()

    async def main() -> None:
        await asyncio.to_thread(made.get)

    kernel = Kernel()
    task = kernel.spawn(main(), "1")
    stop = kernel.run_until(task.done)
    kernel.tear_down()
    made.put(1)
    assert stop.reason == "stuck"
    assert "the thread 1.job1 has stood still" in stop.detail
    gone_soon()


# --- interrupts from outside


def test_ctrl_c_in_the_first_turn_of_a_job_is_raised_after_it() -> None:
    def main() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(signal.raise_signal, signal.SIGINT)

    for way in WAYS:
        with pytest.raises(KeyboardInterrupt):
            play(main, way)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_ctrl_c_while_a_thread_has_its_turn_is_raised_after_it(
    way: Callable[[Played, Body], None],
) -> None:
    told: list[str] = []

    def interrupts() -> None:
        signal.raise_signal(signal.SIGINT)
        for _ in range(100_000):
            pass
        told.append("went on")

    def main() -> None:
        thread = threading.Thread(target=interrupts)
        thread.start()
        thread.join()

    with pytest.raises(KeyboardInterrupt):
        play(main, way)
    assert told == ["went on"]


def test_ctrl_c_in_the_agents_own_code_is_its_own() -> None:
    def main() -> str:
        lock = threading.Lock()
        try:
            with lock:
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return f"interrupted, {lock.locked()}"
        return "went on"

    assert play(main).value == "interrupted, False"


# --- what outlives a run


def test_a_lock_outlives_its_run() -> None:
    made: list[Any] = []

    def makes() -> None:
        made.extend([threading.Lock(), threading.RLock(), threading.Condition(), queue.Queue()])
        made[3].put(1)

    def uses() -> list[Any]:
        with made[0], made[1], made[1], made[2]:
            made[2].notify()
            told = [made[2].wait(0.001)]
        made[3].put(2)
        return [*told, made[3].get(), made[3].get()]

    play(makes)
    assert play(uses).value == [False, 1, 2]
    made[3].put(1)
    assert uses() == [False, 1, 2]


@pytest.mark.parametrize("kind", [threading.Lock, threading.RLock, threading.Condition])
def test_a_lock_that_was_held_when_its_run_ended_is_free(kind: Any) -> None:
    made: list[Any] = []

    def holds() -> None:
        made.append(kind())

        def sleeps() -> None:
            with made[0]:
                time.sleep(1_000)

        threading.Thread(target=sleeps, daemon=True).start()
        time.sleep(1)

    def takes() -> str:
        with made[0]:
            return "taken"

    def make() -> None:
        made.append(kind())

    play(holds)
    assert play(takes).value == "taken"


def test_a_lock_that_was_left_held_is_waited_for_and_named() -> None:
    made: list[Any] = []

    def holds() -> None:
        made.append(threading.Lock())
        made[0].acquire()

    def takes() -> None:
        made[0].acquire()

    play(holds)
    played = play(takes)
    assert played.stop.reason == "deadlock"
    assert "in takes" in played.stop.waits[0]
    assert made[0].waiters == []


def test_a_lock_that_a_thread_from_before_releases_is_named() -> None:
    made: list[Any] = []
    asked: queue.SimpleQueue[int] = queue.SimpleQueue()
    told: queue.SimpleQueue[int] = queue.SimpleQueue()

    def releases() -> None:
        asked.get()
        made[0].release()
        told.put(1)

    thread = threading.Thread(target=releases)
    thread.start()

    def main() -> None:
        made.append(threading.Lock())
        made[0].acquire()
        threading.Thread(target=made[0].acquire).start()
        time.sleep(1)
        asked.put(1)
        told.get()
        time.sleep(1)

    played = play(main)
    thread.join()
    assert played.stop.reason == "out_of_simulation"
    assert "a thread that is no part of the run released a lock" in played.stop.detail


def test_a_simple_queue_from_before_that_is_waited_for_is_stuck_and_named() -> None:
    made: queue.SimpleQueue[int] = queue.SimpleQueue()

    def main() -> None:
        def gets() -> None:
            made.get()

        thread = threading.Thread(target=gets)
        thread.start()
        thread.join()

    played = play(main, WAYS[0])
    made.put(1)
    assert played.stop.reason == "stuck"
    assert "1.job1.1" in played.stop.detail
    assert "in gets" in played.stop.detail
    gone_soon()


def test_a_lock_is_made_anew_in_a_forked_process() -> None:
    """`os.fork` calls it for the locks of the standard library."""
    made: list[Any] = []
    play(lambda: made.append(threading.Lock()))
    made[0].acquire()
    made[0]._at_fork_reinit()
    assert made[0].acquire(blocking=False)
    assert repr(made[0]) == "<locked lock of a run>"


def test_a_thread_from_before_is_not_waited_for() -> None:
    go: queue.SimpleQueue[int] = queue.SimpleQueue()
    thread = threading.Thread(target=go.get)
    thread.start()
    played = play(lambda: thread.join())  # noqa: PLW0108 - looked up in the run
    go.put(1)
    thread.join()
    assert played.stop.reason == "out_of_simulation"


def test_a_pool_beside_a_run_is_as_ever() -> None:
    with kept():
        play(int)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(len, "xx").result() == 2


def test_a_task_may_not_wait_for_jobs_that_have_begun() -> None:
    async def main() -> None:
        pool = ThreadPoolExecutor(1)
        pool.submit(time.sleep, 5)
        await asyncio.sleep(1)
        pool.shutdown()

    kernel = Kernel()
    task = kernel.spawn(main(), "1")
    stop = kernel.run_until(task.done)
    kernel.tear_down()
    assert stop.reason == "out_of_simulation"
    assert "a pool that waits for its jobs" in stop.detail


def test_a_thread_that_a_debugger_holds_is_not_still(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 100.0])
    monkeypatch.setattr(stillness, "monotonic", lambda: next(times))
    monkeypatch.setattr(stillness, "process_time", lambda: 0.0)
    monkeypatch.setattr("harness.sim.where.debugged", lambda _frame: True)
    watched = stillness.Stillness(threading.get_ident())
    assert [watched.found() for _ in range(2)] == [False, False]


# --- what threads may meet


def test_fork_is_refused_in_a_thread() -> None:
    def main() -> None:
        thread = threading.Thread(target=os.fork)
        thread.start()
        thread.join()

    played = play(main)
    assert played.stop.reason == "out_of_simulation"
    assert "os.fork()" in played.stop.detail


def test_a_run_plays_in_a_thread_of_a_run() -> None:
    def inner() -> float:
        thread = threading.Thread(target=time.sleep, args=(5,))
        thread.start()
        thread.join()
        return time.time()

    def main() -> Any:
        before = time.time()
        spent = [play(inner, way).value - before for way in WAYS]
        return spent, time.time() - before

    for way in WAYS:
        assert play(main, way).value == ([5.0, 5.0, 5.0], 0.0)


def test_a_whole_run_plays_beside_the_main_thread() -> None:
    values: list[Any] = []

    def runs() -> None:
        values.extend([play(inner, way).value for way in WAYS])

    def inner() -> list[str]:
        made: queue.Queue[str] = queue.Queue()
        thread = threading.Thread(target=made.put, args=("x",))
        thread.start()
        got = made.get()
        thread.join()
        return [got]

    thread = threading.Thread(target=runs)
    thread.start()
    thread.join()
    assert values == [["x"]] * 3


def test_a_module_is_loaded_in_a_thread(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "loaded_in_a_thread.py").write_text(
        "import threading\nLOCK = threading.Lock()\nwith LOCK: value = 7\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def main() -> list[int]:
        told: list[int] = []

        def loads() -> None:
            told.append(importlib.import_module("loaded_in_a_thread").value)

        threads = [threading.Thread(target=loads) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return told

    steps = []
    for _ in range(2):
        played = play(main, order="tasks", choices=drawn(1, often=1))
        assert played.value == [7, 7]
        steps.append(played.steps)
    assert steps[0] == steps[1]
    sys.modules.pop("loaded_in_a_thread")


def test_threads_that_wait_for_each_others_import_are_stuck_and_named(
    tmp_path: Any, monkeypatch: Any
) -> None:
    (tmp_path / "waits_as_it_loads.py").write_text("import time\ntime.sleep(1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def main() -> None:
        def loads() -> None:
            importlib.import_module("waits_as_it_loads")

        threads = [threading.Thread(target=loads) for _ in range(2)]
        for thread in threads:
            thread.start()
        threads[0].join()

    played = play(main)
    assert played.stop.reason == "stuck"
    assert "the thread 1.2 has stood still" in played.stop.detail
    assert "in loads" in played.stop.detail
    sys.modules.pop("waits_as_it_loads", None)
    gone_soon()


def test_threads_log(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("threads of a run")

    def main() -> None:
        def logs(number: int) -> None:
            for n in range(3):
                logger.warning("%s %s", number, n)
                time.sleep(0.1)

        threads = [threading.Thread(target=logs, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for seed in range(5):
        caplog.clear()
        assert play(main, order="tasks", choices=drawn(seed)).stop.reason == "done"
        assert sorted(caplog.messages) == sorted(f"{a} {b}" for a in range(2) for b in range(3))
        assert all(each.threadName.startswith("Thread-") for each in caplog.records)


def test_a_handler_of_the_run_logs_from_threads() -> None:
    told: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            time.sleep(0.1)
            told.append(record.getMessage())

    def main() -> None:
        logger = logging.getLogger("handled in a run")
        handler = Handler()
        logger.addHandler(handler)
        threads = [threading.Thread(target=logger.error, args=(n,)) for n in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        logger.removeHandler(handler)

    assert play(main).stop.reason == "done"
    assert sorted(told) == ["a", "b", "c"]


def test_threads_are_traced() -> None:
    lines: list[str] = []

    def trace(frame: Any, event: str, _argument: Any) -> Any:
        if event == "call" and frame.f_code.co_name == "traced":
            lines.append("traced")
        return None

    def traced() -> None:
        time.sleep(1)

    def main() -> None:
        threading.settrace(trace)
        try:
            thread = threading.Thread(target=traced)
            thread.start()
            thread.join()
        finally:
            threading.settrace(before)  # type: ignore[arg-type]

    before = threading.gettrace()
    assert play(main).stop.reason == "done"
    assert lines == ["traced"]


def test_threads_warn() -> None:
    def main() -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            thread = threading.Thread(target=warnings.warn, args=("careful",))
            thread.start()
            thread.join()
        return [str(each.message) for each in caught]

    assert play(main).value == ["careful"]


def test_a_generator_is_closed_in_another_thread() -> None:
    told: list[str] = []

    def main() -> None:
        lock = threading.Lock()

        def parts() -> Iterator[int]:
            try:
                with lock:
                    yield 1
            finally:
                time.sleep(1)
                with lock:
                    told.append(threading.current_thread().name)

        made = parts()
        next(made)
        thread = threading.Thread(target=made.close, name="closer")  # type: ignore[attr-defined]
        thread.start()
        thread.join()

    assert play(main).stop.reason == "done"
    assert told == ["closer"]


def test_finalizers_take_locks() -> None:
    told: list[str] = []

    class Held:
        def __init__(self, lock: Any) -> None:
            self.lock = lock

        def __del__(self) -> None:
            with self.lock:
                told.append("deleted")

    def main() -> None:
        lock = threading.Lock()
        keeps: list[Any] = [Held(lock), Held(lock)]
        weakref.finalize(keeps[0], lambda: (lock.acquire(), lock.release(), told.append("final")))

        def drops() -> None:
            keeps.pop(0)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(lambda _held: None, keeps.pop(0)).result()

        thread = threading.Thread(target=drops)
        thread.start()
        thread.join()

    assert play(main).stop.reason == "done"
    assert sorted(told) == ["deleted", "deleted", "final"]


def test_contexts_of_threads_are_their_own() -> None:
    var: contextvars.ContextVar[int] = contextvars.ContextVar("var", default=0)

    def main() -> list[int]:
        told: list[int] = []

        def counts(number: int) -> None:
            var.set(number)
            time.sleep(0.1)
            told.append(var.get())

        threads = [threading.Thread(target=counts, args=(n,)) for n in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [*told, var.get()]

    assert play(main).value == [1, 2, 0]


# --- what differs between processes must not be seen


def seen() -> str:
    """All that a run shows of its threads."""
    before = threading.enumerate()  # another test may have left one that never ends

    def main() -> list[Any]:
        told: list[Any] = []
        go = threading.Event()
        threads = [threading.Thread(target=go.wait) for _ in range(3)]
        threads += [threading.Timer(1, int), threading.Thread(target=go.wait, name="given")]
        for thread in threads:
            thread.start()
        told += [thread.name for thread in threads]
        mine = [thread.name for thread in threading.enumerate() if thread not in before]
        told += [name for name in mine if "watchdog" not in name]  # it comes with a first run
        pool = ThreadPoolExecutor(2)
        told += list(pool.map(lambda _: threading.current_thread().name, range(3)))
        futures = [pool.submit(len, "x" * n) for n in range(8)]
        pool.shutdown()
        from concurrent.futures import as_completed, wait

        told += [each.result() for each in as_completed(futures)]
        told += [each.result() for each in wait(futures).done]
        told += [time.monotonic(), time.time()]
        go.set()
        for thread in threads:
            thread.join()
            told.append(thread.is_alive())
        return told

    played = play(main)
    return repr([played.value, played.steps])


def test_nothing_of_the_process_is_seen() -> None:
    for _ in range(3):
        threading.Thread(target=int).start()
        ThreadPoolExecutor(1).shutdown()
    here = seen()
    assert seen() == here
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", "from tests.sim.test_threads import *; print(seen())"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.stdout.strip() == here
