"""The order of what can run at one instant is stock asyncio's, or what the choices say."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import uuid
from collections.abc import Callable, Coroutine
from itertools import permutations
from typing import Any

import pytest

from harness.core.choices import Choices, choices_from
from harness.core.durations import SECOND
from harness.sim import orders
from harness.sim.kernel import Kernel
from harness.sim.orders import ORDERS, Order
from harness.sim.tasks import is_step

Main = Callable[[Callable[[str], None]], Coroutine[Any, Any, Any]]


def played(main: Main, order: Order, choices: Choices | None = None) -> tuple[list[str], Kernel]:
    """What `main` notes, in order."""
    kernel = Kernel(choices=choices or Choices(), order=order)
    log: list[str] = []
    try:
        kernel.spawn(main(log.append), "1")
        stop = kernel.drain(10 * SECOND)
        assert stop.reason == "quiescent", stop
    finally:
        kernel.tear_down()
    return log, kernel


def every_way(main: Main, order: Order, most: int = 2_000) -> set[tuple[str, ...]]:
    """What `main` notes under all choices there are, by going through them like an odometer."""
    seen: set[tuple[str, ...]] = set()
    path: list[tuple[int, int]] = []
    for _ in range(most):
        asked: list[tuple[int, int]] = []

        def pick(_source: str, _label: str, bound: int) -> int:
            at = len(asked)  # noqa: B023 - called before the next round
            value = path[at][0] if at < len(path) else 0  # noqa: B023
            asked.append((value, bound))  # noqa: B023
            return value

        seen.add(tuple(played(main, order, Choices(picker=pick))[0]))
        while asked and asked[-1][0] + 1 == asked[-1][1]:
            asked.pop()
        if not asked:
            return seen
        path = [*asked[:-1], (asked[-1][0] + 1, asked[-1][1])]
    raise AssertionError(f"more than {most} ways")


async def three_sleepers(note: Callable[[str], None]) -> None:
    async def sleeper(name: str) -> None:
        await asyncio.sleep(1)
        note(name)

    await asyncio.gather(*map(sleeper, "abc"))


async def follows(note: Callable[[str], None]) -> None:
    async def first() -> None:
        await asyncio.sleep(1)
        note("a1")
        await asyncio.sleep(0)
        note("a2")

    async def second() -> None:
        await asyncio.sleep(1)
        note("b")

    await asyncio.gather(first(), second())


async def callbacks(note: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    for name in "abc":
        loop.call_soon(note, name)


async def yielding(note: Callable[[str], None]) -> None:
    async def twice(name: str) -> None:
        note(f"{name}1")
        await asyncio.sleep(0)
        note(f"{name}2")

    await asyncio.gather(twice("a"), twice("b"))


PROGRAMS = [three_sleepers, follows, callbacks, yielding]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("main", PROGRAMS)
def test_without_a_deviation_every_order_is_stock(main: Main, order: Order) -> None:
    assert played(main, order)[0] == played(main, "fifo")[0]


def test_nothing_is_asked_where_the_order_is_fixed() -> None:
    def never(*_asked: object) -> int:
        raise AssertionError

    for main in PROGRAMS:
        played(main, "fifo", Choices(picker=never))
    for main in (callbacks, yielding):
        played(main, "completions", Choices(picker=never))


def test_timers_of_one_instant_fire_in_every_order() -> None:
    assert every_way(three_sleepers, "completions") == set(permutations("abc"))


def test_what_a_timer_woke_may_run_before_the_next_timer_of_the_instant() -> None:
    ways = every_way(follows, "completions")
    assert ways == {("a1", "b", "a2"), ("a1", "a2", "b"), ("b", "a1", "a2")}


async def timers_of_the_past(note: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    loop.call_at(loop.time() - 1, note, "past")
    loop.call_at(loop.time() - 2, note, "older")
    loop.call_later(0, note, "now")
    loop.call_at(loop.time(), note, "now too")
    loop.call_soon(note, "soon")
    for name in "ab":
        await asyncio.sleep(0)
        note(name)


def test_a_timer_whose_instant_has_come_fires_at_once_and_in_its_order() -> None:
    """No clock shows less than what it has shown: stock asyncio has no choice."""
    log: list[str] = []
    asyncio.run(timers_of_the_past(log.append))
    assert log == ["soon", "a", "older", "past", "now", "now too", "b"]
    assert every_way(timers_of_the_past, "completions") == {tuple(log)}


def test_waiting_for_no_time_lets_others_make_one_step() -> None:
    async def main(note: Callable[[str], None]) -> None:
        async def steps() -> None:
            await asyncio.sleep(0)

        for tasks in ([asyncio.create_task(steps())], [asyncio.create_task(asyncio.sleep(0))]):
            done, _ = await asyncio.wait(tasks, timeout=0)
            note(f"{len(done)}")

    log: list[str] = []
    asyncio.run(main(log.append))
    assert every_way(main, "completions") == {tuple(log)}


def test_a_timer_that_was_held_back_comes_before_or_after_one_set_for_now() -> None:
    async def main(note: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(1, loop.call_later, 0, note, "set for now")
        loop.call_later(1, note, "of the instant")

    both = {("of the instant", "set for now"), ("set for now", "of the instant")}
    assert every_way(main, "completions") == both


def test_a_job_may_start_when_what_is_ready_has_run() -> None:
    async def main(note: Callable[[str], None]) -> None:
        asyncio.get_running_loop().run_in_executor(None, note, "job")
        for name in "ab":
            await asyncio.sleep(0)
            note(name)

    def pick(source: str, label: str, bound: int) -> int:
        return min(int(source == "tie"), bound - 1)

    assert played(main, "fifo")[0] == ["a", "job", "b"]
    assert played(main, "completions", Choices(picker=pick))[0] == ["a", "b", "job"]


def test_cancelled_timers_are_not_chosen_from() -> None:
    async def main(note: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(1, note, name) for name in "abcd"]
        await asyncio.sleep(0.5)
        timers[1].cancel()
        timers[2].cancel()

    choices = choices_from({("tie", "1"): (1, 2)})
    assert played(main, "completions", choices)[0] == ["d", "a"]


def test_a_timer_that_was_held_back_can_be_cancelled() -> None:
    async def main(note: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(1, note, "timer")
        await asyncio.sleep(1)
        timer.cancel()
        note("cancelled")

    ways = every_way(main, "completions")
    assert ways == {("timer", "cancelled"), ("cancelled",)}


def test_tasks_step_in_every_order_of_their_lanes() -> None:
    ways = every_way(yielding, "tasks")
    assert ways == {
        way
        for way in permutations(("a1", "a2", "b1", "b2"))
        if way.index("a1") < way.index("a2") and way.index("b1") < way.index("b2")
    }


def test_callbacks_keep_the_order_that_asyncio_promises() -> None:
    assert every_way(callbacks, "tasks") == {("a", "b", "c")}
    assert every_way(callbacks, "all") == set(permutations("abc"))


def test_the_choices_of_a_run_are_replayed_exactly() -> None:
    picked = iter(range(1_000))
    choices = Choices(picker=lambda _source, _label, bound: next(picked) % bound)
    log, _ = played(yielding, "tasks", choices)
    assert choices.tape()
    again = Choices(choices.tape())
    assert played(yielding, "tasks", again)[0] == log
    again.check_used()


def test_the_end_of_a_run_asks_nothing() -> None:
    asked: list[str] = []

    def pick(source: str, _label: str, _bound: int) -> int:
        asked.append(source)
        return 0

    async def main() -> None:
        async def clean_up() -> None:
            random.random()  # noqa: TID251 - a loop under test may
            try:
                await asyncio.sleep(3_600)
            finally:
                uuid.uuid4()  # noqa: TID251
                await asyncio.to_thread(len, "")
                await asyncio.sleep(1)

        await asyncio.gather(*[clean_up() for _ in range(3)])

    kernel = Kernel(choices=Choices(picker=pick), order="all")
    kernel.spawn(main(), "1")
    kernel.settle()
    before = asked[:]
    assert {"ready", "entropy"} == set(before)
    kernel.tear_down()
    assert asked == before


def test_run_until_complete_follows_the_choices_too() -> None:
    log: list[str] = []
    kernel = Kernel(choices=choices_from({("ready", "1"): (1, 2)}), order="tasks")
    kernel.run_until_complete(yielding(log.append))
    kernel.tear_down()
    assert log[0] == "b1"


async def crowd(note: Callable[[str], None]) -> None:
    """Many tasks whose steps and callbacks mix."""
    loop = asyncio.get_running_loop()

    async def one(n: int) -> None:
        for at in range(3):
            note(f"{n}.{at}")
            loop.call_soon(note, f"{n}.{at} soon")
            await asyncio.sleep(0)

    await asyncio.gather(*map(one, range(20)))


def test_a_crowd_is_chosen_from_as_a_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def logs() -> list[Any]:
        made = []
        for seed in range(5):
            chance = random.Random(seed)
            choices = Choices(picker=lambda _source, _label, bound: chance.randrange(bound))  # noqa: B023
            made.append((played(crowd, "tasks", choices)[0], choices.tape()))
        return made

    many = logs()
    monkeypatch.setattr(orders, "_MANY", 10**9)
    assert logs() == many


def test_a_crowd_keeps_its_order_where_a_step_ends_the_run() -> None:
    """What is left of the batch is ready still."""

    async def leaves(n: int) -> None:
        log.append(n)
        if n == 5:
            raise SystemExit

    log: list[int] = []
    kernel = Kernel(choices=Choices(), order="tasks")
    for n in range(20):
        kernel.spawn(leaves(n), f"{n}")
    with pytest.raises(SystemExit):
        kernel.drain(SECOND)
    assert log == list(range(6))
    assert kernel.drain(SECOND).reason == "quiescent"
    assert log == list(range(20))
    kernel.tear_down()


def test_a_step_of_a_crowd_costs_no_more_the_more_there_are() -> None:
    def looks(size: int) -> int:
        seen = [0]

        def counted(handle: Any) -> bool:
            seen[0] += 1
            return is_step(handle)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(orders, "is_step", counted)
            kernel = Kernel(choices=Choices(), order="tasks")
            for n in range(size):
                kernel.spawn(asyncio.sleep(0), f"{n}")
            kernel.drain(SECOND)
            kernel.tear_down()
        return seen[0]

    assert looks(400) <= 2 * looks(200)


def pushes(sleepers: int) -> int:
    """How often a timer is put into the heap where what is ready always goes before the next."""

    async def main(_note: Callable[[str], None]) -> None:
        await asyncio.gather(*[asyncio.sleep(1) for _ in range(sleepers)])

    push, pushed = heapq.heappush, itertools.count()

    def counted(heap: list[Any], entry: Any) -> None:
        next(pushed)
        push(heap, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heapq, "heappush", counted)
        played(main, "completions", Choices(picker=lambda _source, _label, bound: bound - 1))
    return next(pushed)


def test_timers_that_are_held_back_cost_the_same_however_many_there_are() -> None:
    assert pushes(2_000) < 4.5 * pushes(500)


def test_a_timer_that_was_held_back_and_cancelled_is_not_chosen_from_again() -> None:
    async def main(note: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(1, note, name) for name in "abc"]

        async def early() -> None:
            await asyncio.sleep(1)
            for timer in timers[1:]:
                timer.cancel()

        await early()

    bounds: list[int] = []

    def pick(_source: str, _label: str, bound: int) -> int:
        bounds.append(bound)
        return 3 if len(bounds) == 1 else bound - 1

    assert played(main, "completions", Choices(picker=pick))[0] == ["a"]
    assert bounds == [4, 4, 4]  # then only one is left, and nothing is asked


def test_what_is_held_back_at_the_end_of_a_run_is_given_up() -> None:
    kernel = Kernel(choices=Choices(picker=lambda _s, _l, bound: bound - 1), order="completions")
    fired: list[int] = []
    for number in range(3):
        kernel.call_later(1, fired.append, number)
    stop = kernel.run_until(lambda: bool(fired))
    assert stop.reason == "done"
    assert fired == [2]
    kernel.spawn(asyncio.sleep(5), "1")
    kernel.tear_down()
    assert sorted(fired) == [0, 1, 2]
