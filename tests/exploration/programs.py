"""What toy worlds play: sound programs, and one planted bug each."""

from __future__ import annotations

from typing import Any

from harness.exploration.probe import Run
from tests.exploration.toys import Cancelled, Promise, Steps, Turn, World


def run_all(tasks: list[Any]) -> Steps:
    """Wait for each of the tasks; gives what they gave."""
    values: list[Any] = []
    for task in tasks:
        value = yield task
        values.append(value)
    return values


def fan_out(tools: int) -> Turn:
    """The turn waits for tools, of which each waits once; the next always wakes later."""

    def tool(world: World, span: int) -> Steps:
        yield world.sleep(span)
        world.log(f"tool after {span}")

    def turn(world: World) -> Steps:
        started = [world.spawn(tool(world, 10 * n), "tool") for n in range(1, tools + 1)]
        yield from run_all(started)

    return turn


def yields(count: int) -> Turn:
    """One task that lets others go first, though there are none."""

    def turn(world: World) -> Steps:
        for _ in range(count):
            yield

    return turn


def hand_off(world: World) -> Steps:
    """A pool whose permit is lost where the one that gets it is cancelled before it resumes."""
    free = [1]
    queue: list[Promise] = []

    def acquire() -> Steps:
        if free[0]:
            free[0] -= 1
            return
        promise = world.promise()
        queue.append(promise)
        try:
            yield promise
        except Cancelled:
            if promise in queue:
                queue.remove(promise)
            raise

    def release() -> None:
        if queue:
            queue.pop(0).resolve()
        else:
            free[0] += 1

    def user(span: int) -> Steps:
        yield from acquire()
        try:
            yield world.sleep(span)
        finally:
            release()

    def check() -> None:
        if free[0] != 1:
            world.find("permit lost", f"{free[0]} of 1 permits are free at the end")

    world.checks.append(check)
    for task in [world.spawn(user(10 + n), "tool") for n in range(3)]:
        yield world.settled(task)


def swallower(world: World) -> Steps:
    """A tool that takes its cancel for a failed attempt and goes on."""

    def stubborn() -> Steps:
        for attempt in range(2):
            try:
                yield world.sleep(10)
                return
            except Cancelled:
                world.log(f"attempt {attempt} failed")

    yield world.spawn(stubborn(), "tool")


def torn_clean_up(world: World) -> Steps:
    """A clean-up of two halves that a second cancel tears."""
    halves = []

    def check() -> None:
        if len(halves) == 1:
            world.find("half clean-up", "the clean-up was begun and not ended")

    world.checks.append(check)
    try:
        yield world.sleep(10)
    except Cancelled:
        halves.append("first")
        yield world.sleep(1)
        halves.append("second")
        raise


def stoppable(world: World) -> Steps:
    """An agent with a stop of its own, which refuses once its answer is under way."""
    answering = False
    tool = world.spawn(iter_sleep(world), "tool")

    def stop() -> bool:
        if answering:
            return False
        tool.cancel()
        return True

    world.stop = stop
    try:
        yield tool
    except Cancelled:
        world.log("stopped")
        return
    answering = True
    yield world.sleep(5)


def iter_sleep(world: World) -> Steps:
    """Wait twice."""
    yield world.sleep(10)
    yield world.sleep(10)


def lost_update(tasks: int) -> Turn:
    """Each task adds one to a number, by a read and a later write; in turn, where nobody waits."""

    def add(world: World, number: list[int], n: int) -> Steps:
        for _ in range(2 * n):
            yield
        read = number[0]
        yield
        number[0] = read + 1
        world.log(f"writes {read + 1}")

    def turn(world: World) -> Steps:
        number = [0]
        yield from run_all([world.spawn(add(world, number, n)) for n in range(tasks)])
        if number[0] != tasks:
            world.find("lost update", f"{number[0]} of {tasks} were counted")

    return turn


def order_of_three(world: World) -> Steps:
    """Wrong only if one task is overtaken in the middle, and overtakes in the middle again."""
    seen = [0]

    def first() -> Steps:
        yield
        seen[0] = 1
        yield
        seen[0] = 3 if seen[0] == 2 else 0
        world.log(f"first leaves {seen[0]}")

    def second() -> Steps:
        for _ in range(4):
            yield
        if seen[0] == 1:
            seen[0] = 2
        world.log(f"second leaves {seen[0]}")
        yield
        if seen[0] == 3:
            world.find("order", "one was overtaken, and overtook")

    def other() -> Steps:
        for _ in range(4):
            yield

    parts = [first(), second(), other(), other(), other()]
    yield from run_all([world.spawn(part) for part in parts])


def starvation(world: World) -> Steps:
    """A task that must not wait while others take sixteen steps."""
    taken = [0]

    def victim() -> Steps:
        for _ in range(4):
            before = taken[0]
            yield
            if taken[0] - before >= 16:
                world.find("starved", f"waited while others took {taken[0] - before} steps")
                return

    def worker() -> Steps:
        for _ in range(8):
            taken[0] += 1
            yield

    parts = [victim(), *[worker() for _ in range(4)]]
    yield from run_all([world.spawn(part) for part in parts])


def slow_tool(world: World) -> Steps:
    """Two tools of which the second must not answer first; only latencies can have it so."""
    answers = []

    def tool(name: str, span: int) -> Steps:
        factor = (1, 0, 2, 10)[world.choose("latency", name, 4)]
        yield world.sleep(span * factor)
        answers.append(name)

    yield from run_all([world.spawn(tool("a", 10)), world.spawn(tool("b", 50))])
    if answers[0] == "b":
        world.find("answers", "b before a")


def spinner(world: World) -> Steps:
    """A tool that spins for ever where it is cancelled while it waits."""

    def tool() -> Steps:
        try:
            yield world.sleep(10)
        except Cancelled:
            while True:
                yield

    yield world.spawn(tool(), "tool")


def coins(count: int, bound: int) -> Turn:
    """So many choices, each of the same number of values, of which none matters."""

    def turn(world: World) -> Steps:
        for n in range(count):
            world.log(f"{n} is {world.choose('coin', str(n), bound)}")
        yield

    return turn


def keys(run: Run) -> set[str]:
    """What a run found."""
    return {finding.key for finding in run.findings}
