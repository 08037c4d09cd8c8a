"""Exploring functions that block: they run as the main thread of a run, and Ctrl-C is tried."""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from harness.core.errors import NoPoints, UsageError
from harness.exploration.probe import Shot
from harness.exploration.sweep import MODES
from harness.runner.exploring import explore, replay, sweep
from harness.runner.functions.probe import FunctionProbe
from harness.sim.draws import choose
from harness.sim.goals import sometimes
from harness.sim.stop import Limits

WAITS = Shot("1", 2, "early", "task")
BEGINS = Shot("1", 0, "start", "task")


def worker(items: queue.Queue[Any]) -> threading.Thread:
    thread = threading.Thread(target=lambda: [None for _ in iter(items.get, None)])
    thread.start()
    return thread


def ends_its_thread() -> None:
    items: queue.Queue[Any] = queue.Queue()
    thread = worker(items)
    try:
        items.put(1)
        time.sleep(2)
    finally:
        items.put(None)
        thread.join()


def leaves_its_thread() -> None:
    items: queue.Queue[Any] = queue.Queue()
    thread = worker(items)
    time.sleep(2)
    items.put(None)
    thread.join()


def leaves_it_always() -> None:
    worker(queue.Queue())
    time.sleep(1)


def uses_a_pool() -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(time.sleep, [1, 2, 3]))


def swallows() -> None:
    with suppress(BaseException):
        time.sleep(1)


def converts() -> None:
    try:
        time.sleep(1)
    except BaseException as error:
        raise ValueError("no") from error


def cleans_up() -> None:
    try:
        time.sleep(1)
    finally:
        time.sleep(2)
        time.sleep(2)


def is_slow() -> None:
    try:
        time.sleep(1)
    finally:
        time.sleep(100)


def fails() -> None:
    time.sleep(1)
    raise ValueError("no")


def waits_for_ever() -> None:
    threading.Event().wait()


def runs_asyncio() -> None:
    async def main() -> None:
        task = asyncio.create_task(asyncio.sleep(1))
        await asyncio.sleep(2)
        await task

    asyncio.run(main())


def keys(what: Any, **options: Any) -> list[str]:
    return sorted({group.key.partition(": ")[0] for group in sweep(what, **options).report.failed})


@pytest.mark.parametrize("function", [ends_its_thread, uses_a_pool, cleans_up])
def test_what_is_right_passes_every_interrupt(function: Callable[[], None]) -> None:
    swept = sweep(function, modes=MODES)
    assert swept.status == "PASS", str(swept)
    assert swept.report.whom == ("task",)
    assert " on threads" in str(swept)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (leaves_its_thread, ["orphan child"]),
        (leaves_it_always, ["leaked task"]),
        (swallows, ["swallowed"]),
        (converts, ["converted:ValueError"]),
        (is_slow, ["slow"]),
        (fails, ["error:ValueError"]),
        (waits_for_ever, ["deadlock"]),
    ],
)
def test_what_is_wrong_is_found(function: Callable[[], None], found: list[str]) -> None:
    assert keys(function) == found
    swept = sweep(function)
    assert function.__name__ in str(swept) or "thread" in str(swept)
    if swept.report.failed[0].shots:
        token = str(swept).partition("replay('")[2].partition("'")[0]
        assert not replay(token, function).ok


def test_texts_name_the_interrupt_and_the_thread() -> None:
    assert "swallows, in the main thread, got KeyboardInterrupt and returned as" in str(
        sweep(swallows)
    )
    assert "got KeyboardInterrupt, and raised ValueError: no" in str(sweep(converts))
    assert "thread 1.1, started at tests/runner/test_plain_functions.py:" in str(
        sweep(leaves_its_thread)
    )


def test_landings() -> None:
    def came_to(function: Callable[[], None], shot: Shot) -> str:
        return FunctionProbe(function).run((), (shot,)).landings[0].came_to

    assert came_to(ends_its_thread, BEGINS) == "propagated"
    assert came_to(cleans_up, WAITS) == "propagated after 2 waits"
    assert came_to(leaves_its_thread, Shot("1", 99, "early", "task")) == "not reached"
    twice = FunctionProbe(cleans_up).run((), (WAITS, Shot("1", 4, "early", "task")))
    assert [each.came_to for each in twice.landings] == ["propagated after 1 wait", "propagated"]


def test_sites_are_where_the_main_thread_waits() -> None:
    run = FunctionProbe(ends_its_thread).run()
    own = [site for site in run.sites if site.path == "1" and not site.thread]
    assert {site.role for site in run.sites} == {"turn", "thread"}
    assert own[0].k == 0
    assert [site.where.partition(" in ")[2] for site in own[1:]] == ["ends_its_thread"] * 2


def test_tasks_of_a_loop_in_the_main_thread_are_cancelled_too() -> None:
    swept = sweep(runs_asyncio)
    assert {site.role for site in swept.report.baseline.sites} == {"turn", "other"}
    assert swept.report.runs > 5


class Counts:
    """Loses an update where one thread goes first in the middle of another."""

    def __init__(self) -> None:
        self.count = 0
        self.lock = threading.Lock()

    def add(self) -> None:
        before = self.count
        with self.lock:
            self.count = before + 1

    def run(self) -> None:
        threads = [threading.Thread(target=self.add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(choose("how long", 3))

    def check(self) -> None:
        time.sleep(1)
        assert self.count == 2, "an update was lost"


class Locked(Counts):
    def add(self) -> None:
        with self.lock:
            self.count += 1
        sometimes("added")


class ChecksForEver(Locked):
    def check(self) -> None:
        threading.Event().wait()


class ChecksInAsyncio(Locked):
    async def check(self) -> None:
        await asyncio.sleep(1)
        assert self.count == 2


class GivesSomething(Locked):
    def check(self) -> Any:
        return False


def test_a_search_finds_a_lost_update_and_replays_it() -> None:
    found = explore(Counts)
    assert found.status == "FAIL"
    assert "check:AssertionError: an update was lost" in str(found)
    token = str(found).partition("replay('")[2].partition("'")[0]
    assert "switch" in token
    assert not replay(token, Counts).ok


def test_a_search_of_what_is_right_finds_nothing() -> None:
    found = explore(Locked, runs=200, goals=["reached added"])
    assert found.status == "PASS", str(found)
    assert explore(ChecksInAsyncio, runs=20).ok


def test_a_check_that_blocks_for_ever_is_told_and_one_must_give_nothing() -> None:
    assert keys(ChecksForEver) == ["check"]
    with pytest.raises(UsageError, match="check gave False"):
        sweep(GivesSomething)


def two_locks() -> None:
    first, second = threading.Lock(), threading.Lock()

    def takes(one: Any, other: Any) -> None:
        with one, other:
            pass

    threads = [
        threading.Thread(target=takes, args=each) for each in ((first, second), (second, first))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_search_finds_a_deadlock() -> None:
    found = str(explore(two_locks))
    assert "in a circle: 1.1 waits for 1.2 waits for 1.1" in found


def test_a_function_that_makes_what_is_run_is_called_anew_for_each_run() -> None:
    made: list[Any] = []

    def makes() -> Any:
        made.append(Locked())
        return made[-1]

    probe = FunctionProbe(makes)
    for _ in range(2):
        assert probe.run().findings == ()
    assert len(made) == 3  # one to see what it gives
    assert made[2].count == 2


def test_what_comes_to_no_end_by_itself_is_an_error() -> None:
    def spins() -> None:
        time.sleep(1)
        while True:
            pass

    def polls() -> None:
        while True:
            time.sleep(60)

    def looks_again_and_again() -> None:
        stop = threading.Event()
        threading.Timer(1, stop.set).start()
        while not stop.is_set():
            pass

    with pytest.raises(UsageError, match="steps at 0s, and time stands still"):
        FunctionProbe(looks_again_and_again).run()
    with pytest.raises(UsageError, match=r"does not end by itself; .*in .*spins"):
        FunctionProbe(spins, limits=Limits(work=200_000_000)).run()
    with pytest.raises(UsageError, match="does not end by itself; the run took 50 steps"):
        FunctionProbe(polls, limits=Limits(steps=50)).run()


def test_a_function_that_gives_a_coroutine_later_on_is_an_error() -> None:
    given: list[Any] = [None]

    def gives() -> Any:
        return given[0]

    probe = FunctionProbe(gives)
    with pytest.raises(NoPoints):
        sweep(gives)
    probe.run()
    given[0] = asyncio.sleep(1)
    with pytest.raises(UsageError, match=r"gave a coroutine where .*write `async def`"):
        probe.run()


def test_a_builtin_is_run_too() -> None:
    assert FunctionProbe(threading.active_count).run().findings == ()


def test_a_function_that_makes_tasks_for_what_it_gives_is_called_in_a_loop() -> None:
    class Program:
        def __init__(self) -> None:
            self.ready = asyncio.get_running_loop().create_future()

        async def run(self) -> None:
            self.ready.set_result(None)
            await self.ready

    assert FunctionProbe(lambda: Program()).run().findings == ()  # noqa: PLW0108


def asks_the_process_to_end() -> None:
    raise SystemExit(3)


def interrupts_itself() -> None:
    time.sleep(1)
    raise KeyboardInterrupt


def leaves_from_a_task() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    async def main() -> None:
        task = asyncio.create_task(leaves())
        await asyncio.sleep(1)
        await task

    asyncio.run(main())


@pytest.mark.parametrize(
    ("function", "key"),
    [
        (asks_the_process_to_end, "error:SystemExit"),
        (interrupts_itself, "error:KeyboardInterrupt"),
        (leaves_from_a_task, "error:SystemExit"),
    ],
)
def test_what_asks_the_process_to_end_is_found(function: Callable[[], None], key: str) -> None:
    run = FunctionProbe(function).run()
    assert [each.key for each in run.findings] == [key]


def test_ctrl_c_ends_all() -> None:
    def presses() -> None:
        time.sleep(1)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        FunctionProbe(presses).run()


def hands_over_in_passing() -> None:
    condition = threading.Condition()

    def wait() -> None:
        with condition:
            condition.wait()

    threading.Thread(target=wait).start()
    time.sleep(1)
    with condition:
        condition.notify()


def test_where_a_thread_could_have_lost_its_turn_is_told_by_its_own_line() -> None:
    run = FunctionProbe(hands_over_in_passing, keep_lines=True).run()
    assert "sim/threads.py" not in "".join(run.lines)
    own = [site.where for site in run.sites if site.path == "1.1" and site.k]
    assert all("test_plain_functions.py" in each for each in own), own
    assert any(each.endswith(" in wait") for each in own), own
