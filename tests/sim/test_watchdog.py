"""A step that never gives way is ended and named; nothing else is taken for one."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from harness.core.durations import SECOND
from harness.sim import where
from harness.sim.kernel import Kernel, Limits, Stop
from harness.sim.watchdog import WATCHDOG, Stuck, Watchdog
from tests.sim.common import never

HERE = f"tests/sim/{Path(__file__).name}"


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    """A kernel that has little patience, so that the tests need little."""
    made = Kernel(Limits(work=SECOND // 20))
    yield made
    made.tear_down()
    assert made.callback_errors == []


REAL = [time.process_time]
"""Nothing stands in for a function that is held in a list."""


def work(seconds: float) -> None:
    (clock,) = REAL
    end = clock() + seconds
    while clock() < end:
        pass


def spin() -> None:
    while True:
        pass


async def agent() -> None:
    await asyncio.sleep(1)
    spin()


def test_a_step_that_never_gives_way_is_ended_and_named(kernel: Kernel) -> None:
    async def other() -> None:
        await asyncio.sleep(60)

    task = kernel.spawn(agent(), "1")
    kernel.spawn(other(), "2")
    stop = kernel.run_until(never)
    assert stop.reason == "stuck"
    before, _, after = stop.detail.partition("; ")
    assert before == "task 1 did not give way in 0.05 s of work"
    assert after.startswith(f"it is at {HERE}:")
    assert " in spin, called from " in after
    assert after.endswith(" in agent")
    assert [wait.split(":")[0] for wait in stop.waits] == ["2"]
    assert isinstance(task.exception(), Stuck)
    assert str(task.exception()) == "a step that did not give way was ended"


def test_a_run_that_was_stuck_goes_no_further(kernel: Kernel) -> None:
    log: list[str] = []

    async def other() -> None:
        try:
            await asyncio.sleep(60)
            log.append("slept")
        finally:
            log.append("ended")

    kernel.spawn(agent(), "1")
    kernel.spawn(other(), "2")
    stop = kernel.run_until(never)
    assert kernel.settle() == kernel.drain(100 * SECOND) == stop
    assert (kernel.now(), log) == (SECOND, [])
    kernel.tear_down()
    assert log == ["ended"]


def test_what_had_not_begun_when_a_run_was_stuck_never_begins(kernel: Kernel) -> None:
    entered: list[str] = []

    async def next_turn() -> None:
        entered.append("next turn")

    task = kernel.spawn(agent(), "1")
    assert kernel.run_until(task.done).reason == "stuck"
    kernel.spawn(next_turn(), "2")
    assert kernel.run_until(never).reason == "stuck"
    kernel.tear_down()
    assert entered == []


def test_a_callback_that_never_ends_is_ended_too(kernel: Kernel) -> None:
    kernel.call_soon(spin)
    stop = kernel.run_until(never)
    assert stop.reason == "stuck"
    assert stop.detail.startswith("a callback did not give way in 0.05 s of work; it is at ")


def test_what_catches_it_and_then_gives_way_has_been_stuck_all_the_same(kernel: Kernel) -> None:
    async def careless() -> str:
        try:
            spin()
        except BaseException:
            await asyncio.sleep(0)
        return "done"

    task = kernel.spawn(careless(), "1")
    assert kernel.run_until(task.done).reason == "stuck"
    assert not task.done()


def test_what_catches_it_for_ever_is_told_on_standard_error(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    caught = 0

    async def deaf() -> None:
        nonlocal caught
        while caught < 3:
            try:
                spin()
            except BaseException:
                caught += 1

    kernel.spawn(deaf(), "1")
    assert kernel.run_until(never).reason == "stuck"
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("harness: task 1 did not give way in 0.05 s of work; it is at ")
    assert told.endswith("; it catches what would end it, so end the process")


def test_leftovers_that_never_give_way_are_ended(kernel: Kernel) -> None:
    async def at_its_end() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            spin()

    async def when_closed() -> None:
        for _ in count():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue
            except GeneratorExit:
                spin()

    kernel.spawn(at_its_end(), "1")
    kernel.spawn(when_closed(), "2")
    kernel.settle()
    kernel.tear_down()
    assert kernel.is_closed()


def test_a_run_in_another_thread_is_watched(kernel: Kernel) -> None:
    reasons: list[str] = []

    def run() -> None:
        kernel.spawn(agent(), "1")
        reasons.append(kernel.run_until(never).reason)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert reasons == ["stuck"]


def test_a_run_within_a_run_is_watched_by_itself(kernel: Kernel) -> None:
    async def main() -> str:
        inner = Kernel(Limits(work=SECOND // 20))
        inner.spawn(agent(), "1")
        reason = inner.run_until(never).reason
        inner.tear_down()
        await asyncio.sleep(1)
        return reason

    task = kernel.spawn(main(), "1")
    assert kernel.run_until(task.done) == Stop("done")
    assert task.result() == "stuck"


def test_many_steps_may_work_for_long_together(kernel: Kernel) -> None:
    async def main() -> None:
        for _ in range(30):
            work(0.01)
            await asyncio.sleep(0)

    task = kernel.spawn(main(), "1")
    assert kernel.run_until(task.done) == Stop("done")


def test_many_callbacks_of_one_batch_may_work_for_long_together(kernel: Kernel) -> None:
    for _ in range(30):
        kernel.call_soon(work, 0.01)
    assert kernel.run_until(never) == Stop("quiescent")


def test_an_import_may_take_its_time(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
import time
clock = time.process_time.__wrapped__
end = clock() + 0.3
while clock() < end:
    pass
"""
    (tmp_path / "takes_its_time.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    async def main() -> None:
        importlib.import_module("takes_its_time")

    task = kernel.spawn(main(), "1")
    assert kernel.run_until(task.done) == Stop("done")


@pytest.mark.parametrize("ends", ["by itself", "when it is closed"])
def test_a_run_that_a_module_plays_while_it_is_loaded_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """The import is around the run and not in its step, so it is none that may take its time."""
    text = """
import time
from harness.core.durations import SECOND
from harness.sim.kernel import Kernel, Limits

async def agent():
    spin()

async def deaf():
    while True:
        try:
            await kernel.create_future()
        except GeneratorExit:
            spin()
        except BaseException:
            pass

def spin():
    (clock,) = real
    end = clock() + 5  # so that the test ends where nothing ends the step
    while clock() < end:
        pass
    over.append("nothing ended it")

over = []
real = [time.process_time]
kernel = Kernel(Limits(work=SECOND // 20))
kernel.spawn(AGENT(), "1")
stop = kernel.settle()
kernel.tear_down()
"""
    name = f"plays_a_run_that_ends_{ends.replace(' ', '_')}"
    agent = "agent" if ends == "by itself" else "deaf"
    (tmp_path / f"{name}.py").write_text(text.replace("AGENT", agent))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(name)
    assert module.over == []
    assert module.stop.reason == ("stuck" if agent == "agent" else "deadlock")


def test_what_is_shown_of_a_step_ends_where_the_kernel_began_it(kernel: Kernel) -> None:
    """Also where the kernel closes a task, which is no step of a batch."""
    lines: list[str] = []

    async def closed() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except GeneratorExit:
                lines.extend(where.stack(sys._getframe()))
                return
            except asyncio.CancelledError:
                pass

    kernel.spawn(closed(), "1")
    kernel.settle()
    kernel.tear_down()
    assert [line.rpartition(" in ")[2] for line in lines] == ["closed"]


def test_the_thread_goes_when_nothing_runs_and_comes_back(kernel: Kernel) -> None:
    def threads() -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == "harness watchdog"]

    kernel.settle()
    (first,) = threads()
    first.join(60)
    assert threads() == []
    kernel.settle()
    (second,) = threads()
    assert second.daemon


# --- the rules, without a thread


class Standing:
    """A kernel that does not move unless it is told to."""

    moved = 0

    def __init__(self) -> None:
        self.stuck: list[str] = []

    def progress(self) -> tuple[object, ...]:
        return (self.moved,)

    def patience(self) -> float:
        return 3600

    def acting_thread(self) -> None:
        return None

    def current_path(self) -> str:
        return "1"

    def note_stuck(self, detail: str) -> None:
        self.stuck.append(detail)


class Quiet(Watchdog):
    """A watchdog without a thread, that looks when it is told to."""

    def _start(self) -> None: ...


@pytest.fixture
def watched() -> Iterator[tuple[Standing, Callable[[float], Any]]]:
    watchdog, standing = Quiet(), Standing()
    watch = watchdog.enter(standing)
    watchdog.look(0)
    yield standing, watchdog.look
    watchdog.leave(watch)


def test_time_in_which_the_process_does_not_work_does_not_count(watched: Any) -> None:
    standing, look = watched
    look(3599)
    for _ in range(100):
        look(0)
    assert standing.stuck == []
    with pytest.raises(Stuck):
        look(1)
    assert len(standing.stuck) == 1


def test_whatever_moves_begins_anew(watched: Any) -> None:
    standing, look = watched
    for moved in range(10):
        standing.moved = moved
        look(3599)
    look(3599)
    assert standing.stuck == []


def test_what_comes_when_the_step_has_ended_is_raised_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other thread has decided; then the step ends, and the kernel leaves."""
    watchdog, standing = Quiet(), Standing()
    watch = watchdog.enter(standing)
    look = watchdog.look
    look(0)

    class Late:
        times = 0

        def __enter__(self) -> None:
            self.times += 1
            if self.times == 1:
                look(3600)

        def __exit__(self, *_error: object) -> None: ...

    late = Late()
    monkeypatch.setattr(watchdog, "_lock", late)
    watchdog.leave(watch)
    assert (standing.stuck != [], watch.fired, late.times) == (True, 1, 3)
    look(3600)


def test_a_forked_process_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    watchdog = Watchdog()
    watchdog.leave(watchdog.enter(Standing()))
    started: list[str] = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: started.append(thread.name))
    watchdog.leave(watchdog.enter(Standing()))
    assert started == []
    watchdog.forget()
    watchdog.leave(watchdog.enter(Standing()))
    assert started == ["harness watchdog"]


def test_nothing_is_watched_between_runs(kernel: Kernel) -> None:
    seen: list[int] = []
    kernel.call_soon(lambda: seen.append(len(WATCHDOG._running)))
    kernel.settle()
    assert (seen, WATCHDOG._running) == ([1], {})
