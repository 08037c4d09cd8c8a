"""Who of the threads goes first: every order is reached, none that cannot be, again in replays."""

from __future__ import annotations

import itertools
import os
import queue
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.choices import Choices
from harness.sim.orders import Order
from harness.sim.stop import Limits
from tests.sim.threaded import Played, drawn, play


def few_deviations(program: Callable[[], Any], most: int, order: Order) -> Iterator[Played]:
    """All plays with at most so many choices that are not the ordinary ones."""
    todo: list[tuple[int, ...]] = [()]
    while todo:
        given = todo.pop()
        asked: list[int] = []

        def pick(_source: str, _label: str, bound: int) -> int:
            asked.append(bound)  # noqa: B023
            return given[len(asked) - 1] if len(asked) <= len(given) else 0  # noqa: B023

        yield play(program, order=order, choices=Choices(picker=pick))
        if sum(map(bool, given)) < most:
            for at in range(len(given), len(asked)):
                rest = (0,) * (at - len(given))
                todo += [(*given, *rest, value) for value in range(1, asked[at])]


def two_threads_of_three_puts() -> str:
    made: queue.Queue[str] = queue.Queue()

    def puts(name: str) -> None:
        for _ in range(3):
            made.put(name)

    threads = [threading.Thread(target=puts, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return "".join(made.get() for _ in range(6))


def two_threads_that_count_without_a_lock() -> int:
    count = 0
    event = threading.Event()

    def add() -> None:
        nonlocal count
        before = count
        event.is_set()
        count = before + 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count


EVERY = {"".join(each) for each in itertools.permutations("aaabbb")}


def test_every_interleaving_is_reached_with_few_deviations() -> None:
    seen = {played.value for played in few_deviations(two_threads_of_three_puts, 4, "completions")}
    assert len(EVERY) == 20
    assert EVERY - seen == {"bababa"}  # the one that takes five


def test_one_preemption_reaches_what_one_preemption_can() -> None:
    seen = {played.value for played in few_deviations(two_threads_of_three_puts, 1, "completions")}
    assert seen == {"aaabbb", "bbbaaa", "abbbaa", "aabbba"}


def test_a_lost_update_is_found_with_one_deviation() -> None:
    seen = [
        played.value
        for played in few_deviations(two_threads_that_count_without_a_lock, 1, "completions")
    ]
    assert seen[0] == 2
    assert set(seen) == {1, 2}


def test_without_choices_no_thread_lets_others_go_first() -> None:
    assert play(two_threads_of_three_puts).value == "aaabbb"


# --- random programs

OPERATIONS = ("a", "b", "r", "count", "put", "get", "set", "wait", "clear", "enter", "notify", "go")
Program = list[list[str]]
programs = st.lists(
    st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=5), min_size=2, max_size=4
)


class Shop:
    """What the threads of a program share, what they did, and what each of them waits for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.put: list[tuple[int, int]] = []
        self.got: list[tuple[int, int]] = []
        self.waits: dict[int, str] = {}
        self.log: list[Any] = []
        self.lost: list[int] = []
        self.entered = self.count = self.counted = self.tickets = 0

    def run(self) -> list[Any]:
        self.locks = {"a": threading.Lock(), "b": threading.Lock(), "r": threading.RLock()}
        self.inside = dict.fromkeys("abr", 0)
        self.queue: queue.Queue[tuple[int, int]] = queue.Queue(1)
        self.event, self.limit = threading.Event(), threading.Semaphore(2)
        self.condition = threading.Condition()
        threads = [
            threading.Thread(target=self.work, args=each) for each in enumerate(self.program, 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.log

    def work(self, number: int, names: list[str]) -> None:
        for at, name in enumerate(names):
            self.waits[number] = name
            self.do(name, number, at)
            del self.waits[number]
            self.log.append((number, name))

    def do(self, name: str, number: int, at: int) -> None:
        match name:
            case "a" | "b" | "r":
                with self.locks[name]:
                    self.inside[name] += 1
                    assert self.inside[name] == 1, "two are inside"
                    other = "b" if name == "a" else "a"
                    self.waits[number] = other
                    with self.locks[other]:
                        self.log.append((number, name, other))
                    self.inside[name] -= 1
            case "count":
                with self.locks["r"], self.locks["r"]:
                    before = self.count
                    self.event.is_set()
                    self.count = before + 1
                self.counted += 1
            case "put":
                self.put.append((number, at))
                self.queue.put((number, at))
            case "get":
                self.got.append(self.queue.get())
            case "set":
                self.event.set()
            case "clear":
                self.event.clear()
            case "wait":
                self.event.wait()
            case "enter":
                with self.limit:
                    self.entered += 1
                    assert self.entered <= 2, "three have entered"
                    self.event.is_set()
                    self.entered -= 1
            case "notify":
                with self.condition:
                    self.tickets += 1
                    self.condition.notify()
            case "go":
                with self.condition:
                    while not self.tickets:
                        self.condition.wait()
                    self.tickets -= 1

    def look(self) -> None:
        """Who waits although nothing keeps it from going on."""
        goes_on = {
            "a": not self.locks["a"].locked(),
            "b": not self.locks["b"].locked(),
            "r": not self.locks["r"]._block.locked(),  # type: ignore[attr-defined]
            "count": not self.locks["r"]._block.locked(),  # type: ignore[attr-defined]
            "put": self.queue.qsize() < 1,
            "get": self.queue.qsize() > 0,
            "wait": self.event.is_set(),
            "go": self.tickets > 0,
        }
        self.lost = [number for number, name in self.waits.items() if goes_on.get(name, True)]


@settings(max_examples=150, deadline=None)
@given(programs, st.integers(0, 10**6), st.sampled_from(["fifo", "completions", "tasks", "all"]))
def test_whatever_happens_is_possible(program: Program, seed: int, order: Order) -> None:
    shop = Shop(program)
    choices = None if order == "fifo" else drawn(seed)
    limits = Limits(steps_per_instant=20_000)
    played = play(shop.run, order=order, choices=choices, limits=limits, look=shop.look)
    assert played.errors == []
    assert played.kernel.callback_errors == []
    assert shop.lost == []
    assert shop.count >= shop.counted
    assert sorted(shop.got) == sorted(set(shop.got))
    assert set(shop.got) <= set(shop.put)
    for number in range(1, len(program) + 1):
        mine = [at for who, at in shop.got if who == number]
        assert mine == sorted(mine)
    if played.stop.reason == "done":
        assert len(shop.put) - len(shop.got) == shop.queue.qsize()
        return
    assert played.stop.reason == "deadlock"
    named = [each.partition(":")[0] for each in played.stop.waits]
    assert named == ["1", *[f"1.{number}" for number in sorted(shop.waits)]]


def taped(program: Program, choices: Choices, order: Order) -> Any:
    shop = Shop(program)
    played = play(shop.run, order=order, choices=choices)
    return [shop.log, played.steps, played.stop.reason, played.stop.waits]


@settings(max_examples=50, deadline=None)
@given(programs, st.integers(0, 10**6), st.sampled_from(["completions", "tasks", "all"]))
def test_a_tape_gives_the_same_again(program: Program, seed: int, order: Order) -> None:
    choices = drawn(seed)
    first = taped(program, choices, order)
    again = Choices(choices.tape())
    assert taped(program, again, order) == first
    again.check_used()


def some_plays() -> str:
    chance = random.Random(7)
    orders: tuple[Order, ...] = ("completions", "tasks", "all")
    plays = []
    for number in range(30):
        program = [chance.choices(OPERATIONS, k=4) for _ in range(3)]
        plays.append(taped(program, drawn(number), orders[number % 3]))
    return repr(plays)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_tape_gives_the_same_in_every_process(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from tests.sim.test_thread_orders import *; print(some_plays())"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert done.stdout.strip() == some_plays()
