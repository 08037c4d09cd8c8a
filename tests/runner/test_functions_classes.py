"""What a cancel of a function comes to: each class once, and which of them are findings."""

# ruff: noqa: ASYNC110, RUF006 - the functions here are wrong on purpose

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress

import pytest

from harness.core.errors import UsageError
from harness.exploration.probe import Mode, Run, Shot
from harness.runner.exploring import sweep
from harness.runner.functions.allow import Allow
from harness.runner.functions.probe import FunctionProbe
from harness.runner.functions.subject import Factory
from harness.sim.stop import Limits

Main = Callable[[], Awaitable[object]]


def shot(path: str, k: int, mode: Mode, step: int | None = None) -> Shot:
    return Shot(path, k, mode, "task", step)


EARLY = shot("1", 1, "early")
AGAIN = shot("1", 2, "early")


def cancelled(factory: Factory, *shots: Shot, allow: tuple[str, ...] = ()) -> Run:
    return FunctionProbe(factory, allow=Allow(allow)).run((), shots)


def came_to(factory: Factory, *shots: Shot) -> list[str]:
    return [landing.came_to for landing in cancelled(factory, *shots).landings]


def keys(run: Run) -> list[str]:
    return [finding.key for finding in run.findings]


def said(run: Run) -> str:
    [finding] = run.findings
    return finding.message


async def sleeps() -> None:
    await asyncio.sleep(1)


async def cleans_up() -> None:
    try:
        await asyncio.sleep(1)
    finally:
        await asyncio.sleep(1)
        await asyncio.sleep(1)


async def value() -> int:
    return await asyncio.create_task(asyncio.sleep(1, 7))


def test_it_propagates_at_once_or_after_a_clean_up() -> None:
    assert came_to(sleeps, shot("1", 0, "start")) == ["propagated"]
    assert came_to(sleeps, EARLY) == ["propagated"]
    assert came_to(sleeps, shot("1", 1, "late")) == ["propagated"]
    assert came_to(cleans_up, EARLY) == ["propagated after 2 awaits"]
    assert keys(cancelled(cleans_up, EARLY)) == []


def test_a_late_cancel_loses_what_was_waited_for() -> None:
    run = cancelled(value, shot("1", 1, "late"))
    assert [landing.came_to for landing in run.landings] == ["result lost"]
    assert keys(run) == []  # whether that matters, only a check can say
    assert came_to(value, EARLY) == ["propagated"]


async def swallows() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1)


async def acknowledges() -> None:
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()


def test_a_cancel_that_is_swallowed_is_told_with_both_counts() -> None:
    run = cancelled(swallows, EARLY)
    assert keys(run) == ["swallowed: swallows"]
    assert said(run) == (
        "swallowed: task 1, swallows, was cancelled and returned as if it had not been; "
        "cancelled() is False, cancelling() is 1"
    )


def test_a_cancel_that_is_acknowledged_is_no_finding() -> None:
    assert came_to(acknowledges, EARLY) == ["acknowledged"]
    assert keys(cancelled(acknowledges, EARLY)) == []


async def converts() -> None:
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        raise ValueError from None


class SaysMore:
    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(converts())


def test_a_cancel_that_becomes_an_error_is_told_once() -> None:
    run = cancelled(converts, EARLY)
    assert keys(run) == ["converted:ValueError: converts"]
    assert "was cancelled, and raised ValueError (tests/runner/" in said(run)
    run = cancelled(SaysMore, shot("1.1", 1, "early"))
    assert keys(run) == ["converted:ValueError: converts"]


async def trips_over_a_cancelled_child() -> None:
    child = asyncio.create_task(asyncio.sleep(1))
    await asyncio.wait([child])
    if child.cancelled():
        raise LookupError("no answer")


def test_an_error_of_the_main_task_is_the_cancel_of_its_child() -> None:
    run = cancelled(trips_over_a_cancelled_child, shot("1.1", 1, "early"))
    assert keys(run) == ["converted:LookupError"]
    assert "the main task raised LookupError: no answer (tests/" in said(run)


async def waits_for_a_cancelled_child() -> None:
    await asyncio.create_task(asyncio.sleep(1))


def test_a_main_task_may_end_with_the_cancel_of_its_child() -> None:
    assert keys(cancelled(waits_for_a_cancelled_child, shot("1.1", 1, "early"))) == []


async def fails() -> None:
    await asyncio.sleep(1)
    raise OSError("no disk at 0x7f00")


async def cancels_itself() -> None:
    raise asyncio.CancelledError


def test_an_error_without_a_cancel_is_a_finding() -> None:
    run = cancelled(fails)
    assert keys(run) == ["error:OSError"]
    assert "no disk (tests/" in said(run)
    assert keys(cancelled(cancels_itself)) == ["error:CancelledError"]


def test_a_second_cancel_may_interrupt_a_clean_up() -> None:
    run = cancelled(cleans_up, EARLY, AGAIN)
    assert [each.came_to for each in run.landings] == [
        "propagated after 1 await",
        "cleanup interrupted",
    ]
    assert keys(run) == ["cleanup interrupted: cleans_up"]
    assert came_to(cleans_up, EARLY, shot("1", 1, "late"))[1] == "propagated after 2 awaits"


class Group:
    """A group waits for its tasks, however often it is cancelled."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(cleans_up())
            await asyncio.sleep(1)


async def goes_on() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1)
    await asyncio.sleep(1)


def test_a_second_cancel_interrupts_nothing_where_nothing_is_cleaned_up() -> None:
    assert came_to(Group, EARLY, AGAIN) == ["propagated after 2 awaits", "propagated after 1 await"]
    assert came_to(Group, EARLY, shot("1", 2, "late")) == ["propagated after 1 await", "propagated"]
    assert came_to(goes_on, EARLY, AGAIN) == ["propagated after 1 await", "propagated"]
    assert keys(cancelled(goes_on, EARLY, AGAIN)) == []


class Shields:
    """Waits behind a shield, in its clean-up too."""

    async def keep(self) -> None:
        await asyncio.sleep(2)

    async def run(self) -> None:
        try:
            await asyncio.shield(self.keep())
        finally:
            await asyncio.shield(self.keep())


class KeepsForEver(Shields):
    async def keep(self) -> None:
        while True:
            await asyncio.sleep(50)


def test_a_shield_that_detaches_is_a_finding_unless_what_it_guards_ends() -> None:
    assert came_to(Shields, EARLY, AGAIN) == ["propagated after 1 await", "shield detached"]
    assert keys(cancelled(Shields, EARLY, AGAIN)) == []
    assert came_to(Shields, EARLY, shot("1", 2, "late")) == [
        "propagated after 1 await",
        "propagated",
    ]
    run = cancelled(KeepsForEver, EARLY, AGAIN)
    assert [key.partition(": ")[0] for key in keys(run)] == ["shield detached"] * 2
    assert "was shielded from the cancel, and goes on 60s after" in run.findings[0].message


async def leaves_a_child() -> None:
    asyncio.create_task(asyncio.sleep(5))
    await asyncio.sleep(1)


async def leaves_a_child_when_cancelled() -> None:
    child = asyncio.create_task(asyncio.sleep(5))
    await asyncio.sleep(1)
    await child


async def leaves_a_child_for_ever() -> None:
    asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(1)


def test_a_child_that_outlives_a_cancelled_main_task_is_an_orphan() -> None:
    run = cancelled(leaves_a_child_when_cancelled, EARLY)
    [key] = keys(run)
    assert key.startswith("orphan child: tests/runner/test_functions_classes.py:")
    assert "outlives the main task; it waits at asyncio/tasks.py:" in said(run)


def test_a_child_that_always_outlives_the_main_task_is_no_orphan() -> None:
    probe = FunctionProbe(leaves_a_child)
    assert [keys(probe.run((), (EARLY,))) for _ in range(2)] == [[], []]


def test_a_task_that_never_ends_is_a_leak_with_or_without_a_cancel() -> None:
    for run in (cancelled(leaves_a_child_for_ever), cancelled(leaves_a_child_for_ever, EARLY)):
        [key] = keys(run)
        assert key.startswith("leaked task: tests/runner/test_functions_classes.py:")
        assert "never ends; it waits at asyncio/locks.py:" in said(run)


async def is_slow() -> None:
    try:
        await asyncio.sleep(1)
    finally:
        await asyncio.sleep(61)


async def has_a_slow_child() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(is_slow())
        await asyncio.sleep(500)


async def is_slow_in_two_parts() -> None:
    try:
        await asyncio.sleep(1)
    finally:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(50)
        await asyncio.sleep(50)


def test_a_task_that_goes_on_for_more_than_a_minute_is_slow() -> None:
    run = cancelled(is_slow, EARLY)
    assert [landing.came_to for landing in run.landings] == ["never ended"]
    assert said(run).startswith("slow: task 1 goes on 60s after its cancel 1#1/early:task; it wait")
    assert keys(cancelled(has_a_slow_child, shot("1.1", 1, "early")))[0].startswith("slow: ")
    assert keys(cancelled(is_slow_in_two_parts, EARLY))[0].startswith("slow: ")
    run = cancelled(is_slow_in_two_parts, EARLY, shot("1", 2, "early"))
    assert run.landings[0].came_to == "propagated after 2 awaits"


async def never_wakes() -> None:
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        await asyncio.gather(asyncio.Event().wait())


def test_a_deadlock_says_who_waits_for_whom() -> None:
    run = cancelled(never_wakes, EARLY)
    assert keys(run)[0].startswith("deadlock: asyncio/locks.py:")
    assert said(run).startswith("deadlock: 1 waits for 1.1 at tests/runner/test_functions_classes")


async def waits_for_a_task_of_a_task() -> None:
    async def child() -> None:
        await asyncio.sleep(1)
        await asyncio.Event().wait()

    await asyncio.create_task(child())


def test_a_deadlock_is_shown_by_the_last_line_of_the_run() -> None:
    run = FunctionProbe(waits_for_a_task_of_a_task, keep_lines=True).run()
    [found] = run.findings
    assert found.key.startswith("deadlock")
    assert found.line == len(run.lines) - 1
    assert run.lines[-1].startswith("1s       1.1    waits     #2 at ")


async def spins() -> None:
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        while True:
            await asyncio.sleep(0)


async def leaves_a_spinning_child() -> None:
    child = asyncio.create_task(spins())
    try:
        await asyncio.sleep(1)
    finally:
        child.cancel()


def test_a_spin_after_a_cancel_names_the_line() -> None:
    probe = FunctionProbe(spins, limits=Limits(steps_per_instant=50))
    run = probe.run((), (EARLY,))
    assert [key.partition(":")[0] for key in keys(run)] == ["cancel spin"]
    assert "50 steps at 0s, and time stands still" in said(run)
    assert "in spins" in said(run)
    probe = FunctionProbe(spins, limits=Limits(steps=50))
    assert [key.partition(":")[0] for key in keys(probe.run((), (EARLY,)))] == ["cancel spin"]


def test_a_spin_after_the_main_task_has_ended_is_found_too() -> None:
    probe = FunctionProbe(leaves_a_spinning_child, limits=Limits(steps_per_instant=50))
    assert [key.partition(":")[0] for key in keys(probe.run((), (EARLY,)))] == ["cancel spin"]


async def two_spin_in_some_order() -> None:
    first = asyncio.create_task(asyncio.sleep(0))
    await asyncio.sleep(0)
    while not first.done():
        await asyncio.sleep(0)


def test_a_spin_without_a_cancel_is_a_livelock() -> None:
    def starve(source: str, label: str, bound: int) -> int:
        return bound - 1 if source == "ready" else 0

    limits = Limits(steps_per_instant=50)
    run = FunctionProbe(two_spin_in_some_order, "tasks", limits=limits).run((), (), starve)
    assert [key.partition(":")[0] for key in keys(run)] == ["livelock"]


async def is_crowded() -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(60):
            group.create_task(sleeps())


async def is_crowded_and_spins() -> None:
    async def spins_for_ever() -> None:
        while True:
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(60):
            group.create_task(spins_for_ever())


def test_a_crowd_at_one_instant_is_no_livelock() -> None:
    limits = Limits(steps_per_instant=100)
    assert keys(FunctionProbe(is_crowded, limits=limits).run()) == []
    run = FunctionProbe(is_crowded_and_spins, limits=limits).run(picker=lambda *_: 0)
    assert [key.partition(":")[0] for key in keys(run)] == ["livelock"]
    assert run.steps < 1_100


async def lets_go() -> None:
    await asyncio.sleep(1)
    loop = asyncio.get_running_loop()
    loop.create_future().set_exception(ValueError("number 5"))
    loop.call_soon(lambda: 1 / 0)


def test_errors_that_nobody_sees_are_findings() -> None:
    assert sorted(keys(cancelled(lets_go))) == [
        "unseen error: Future exception was never retrieved: ValueError: number #",
        "unseen error: exception in callback lets_go.<locals>.<lambda>: ZeroDivisionError: "
        "division by zero",
    ]


async def forgets_a_child() -> None:
    task = asyncio.create_task(fails())
    await asyncio.sleep(2)
    assert task.done()


def test_the_error_of_a_task_that_nobody_asks_is_a_finding() -> None:
    assert keys(cancelled(forgets_a_child)) == [
        "unseen error: Task exception was never retrieved in #.#: OSError: no disk"
    ]


async def exits() -> None:
    await asyncio.sleep(1)
    raise SystemExit(3)


async def has_a_child_that_exits() -> None:
    await asyncio.create_task(exits())


async def leaves_one_that_exits() -> None:
    asyncio.create_task(exits())


async def interrupts() -> None:
    raise KeyboardInterrupt


async def has_a_child_that_interrupts() -> None:
    await asyncio.create_task(interrupts())


async def is_interrupted_in_the_end() -> None:
    async def goes_on() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await interrupts()

    asyncio.create_task(goes_on())


def presses_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


async def is_stopped() -> None:
    await asyncio.sleep(1)
    presses_ctrl_c()


async def has_a_child_that_is_stopped() -> None:
    await asyncio.create_task(is_stopped())


async def is_stopped_in_the_end() -> None:
    async def goes_on() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            presses_ctrl_c()

    asyncio.create_task(goes_on())
    await asyncio.sleep(0)


class IsStoppedInItsCheck:
    async def run(self) -> None:
        await asyncio.sleep(1)

    def check(self) -> None:
        presses_ctrl_c()


@pytest.mark.parametrize(
    "factory",
    [is_stopped, has_a_child_that_is_stopped, is_stopped_in_the_end, IsStoppedInItsCheck],
)
def test_ctrl_c_is_nobodys_finding_and_ends_all(factory: Factory) -> None:
    # A process that was begun in the background of a shell ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            sweep(factory)
    finally:
        signal.signal(signal.SIGINT, before)
    sweep(sleeps).check()  # and nothing is left behind


def test_what_asks_the_process_to_end_is_an_error() -> None:
    assert keys(cancelled(exits)) == ["error:SystemExit"]
    run = cancelled(has_a_child_that_exits)
    assert keys(run) == ["error:SystemExit"]
    assert said(run).startswith("error:SystemExit: a task raised SystemExit: 3 (tests/runner/")
    assert keys(cancelled(leaves_one_that_exits)) == ["error:SystemExit"]
    assert keys(cancelled(interrupts)) == ["error:KeyboardInterrupt"]
    run = cancelled(has_a_child_that_interrupts)
    assert said(run).startswith("error:KeyboardInterrupt: a task raised KeyboardInterrupt: (tests/")
    assert "leaked task: " in keys(cancelled(is_interrupted_in_the_end))[0]


class Checked:
    def __init__(self) -> None:
        self.open = 0

    async def run(self) -> None:
        self.open += 1
        await asyncio.sleep(1)
        self.open -= 1

    def check(self) -> None:
        assert self.open == 0, f"{self.open} handles are open"


class CheckedLater(Checked):
    async def check(self) -> None:  # type: ignore[override]
        await asyncio.sleep(60 if self.open else 0)


class CheckedByACancel(Checked):
    async def check(self) -> None:  # type: ignore[override]
        raise asyncio.CancelledError


def test_a_check_is_made_after_a_cancel_too() -> None:
    assert keys(cancelled(Checked)) == []
    run = cancelled(Checked, EARLY)
    assert keys(run) == ["check:AssertionError: # handles are open"]
    assert said(run).startswith("check:AssertionError: 1 handles are open\nassert 1 == 0")
    assert " (tests/runner/test_functions_classes.py:" in said(run)
    assert " at 0x" not in said(run)
    assert cancelled(Checked).steps == cancelled(CheckedLater).steps  # a check is no part of it
    run = cancelled(CheckedByACancel)
    assert said(run).startswith("check:CancelledError: it was cancelled (tests/runner/test_")


class Yields(Checked):
    def check(self) -> Iterator[None]:  # type: ignore[override]
        yield
        raise AssertionError


class YieldsLater(Checked):
    async def check(self) -> AsyncIterator[None]:  # type: ignore[override]
        yield
        raise AssertionError


class SaysFalse(Checked):
    async def check(self) -> bool:  # type: ignore[override]
        return self.open == 1


@pytest.mark.parametrize(
    ("factory", "gave"),
    [
        (Yields, "an object of class generator"),
        (YieldsLater, "an object of class async_generator"),
        (SaysFalse, "False"),
    ],
)
def test_a_check_that_gives_something_is_a_mistake(factory: Factory, gave: str) -> None:
    with pytest.raises(UsageError, match=f"'s check gave {gave}, which nobody looks at; it must"):
        cancelled(factory)


class Lists(Checked):
    def check(self) -> None:
        raise AssertionError(f"left: {[*range(self.open)]}")


def test_what_is_said_of_more_values_or_fewer_is_the_same() -> None:
    assert keys(cancelled(Lists)) == keys(cancelled(Lists, EARLY))


class SaysMuch(Checked):
    def check(self) -> None:
        raise ValueError("x" * 100_000)


def test_a_long_text_is_cut_in_its_middle() -> None:
    message = said(cancelled(SaysMuch))
    assert len(message) < 2_100
    assert message.endswith("in SaysMuch.check)")


class WaitsInItsCheck(Checked):
    async def check(self) -> None:  # type: ignore[override]
        await asyncio.sleep(61)


def test_a_check_has_a_minute() -> None:
    assert keys(cancelled(CheckedLater, EARLY)) == []
    run = cancelled(WaitsInItsCheck)
    assert keys(run) == ["check"]
    assert "it had not ended: the next timer is due at 62s, past 61s; check: waits at" in said(run)


def test_no_check_is_made_of_what_has_not_ended() -> None:
    class Stuck(Checked):
        async def run(self) -> None:
            self.open += 1
            await asyncio.Event().wait()

    assert [key.partition(":")[0] for key in keys(cancelled(Stuck))] == ["deadlock"]


def test_what_is_allowed_is_tolerated() -> None:
    run = cancelled(swallows, EARLY, allow=("swallowed",))
    assert (keys(run), [each.key for each in run.tolerated]) == ([], ["swallowed: swallows"])
    for name in ("converted", "converted:ValueError"):
        assert keys(cancelled(converts, EARLY, allow=(name,))) == []
    assert keys(cancelled(converts, EARLY, allow=("converted:OSError",))) != []


def test_a_cancel_that_finds_nobody_is_told() -> None:
    assert came_to(sleeps, shot("1", 7, "early")) == ["not reached"]
    assert came_to(sleeps, shot("1", 1, "mid", 2)) == ["refused"]
    assert keys(cancelled(sleeps, shot("1", 7, "early"))) == []


def test_a_cancel_can_come_after_the_step_of_another_task() -> None:
    assert came_to(value, shot("1", 1, "mid", 2)) == ["propagated"]


@pytest.mark.parametrize("mode", ["start", "late"])
def test_a_cancel_of_the_task_that_closes_a_generator_is_the_interpreters(mode: Mode) -> None:
    async def numbers():  # type: ignore[no-untyped-def]
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(1)

    async def first() -> None:
        async for _ in numbers():
            break
        await asyncio.sleep(5)

    run = cancelled(first, shot("gen.numbers.1", 0 if mode == "start" else 1, mode))
    assert keys(run) == ["abandoned generator: numbers"]


async def takes_over_what_was_not_begun() -> None:
    async def supervised(work: Awaitable[object]) -> None:
        await work

    work = asyncio.sleep(1)
    task = asyncio.create_task(supervised(work))
    await asyncio.wait([task])
    if task.cancelled():
        await work


async def loses_what_was_not_begun() -> None:
    async def supervised(work: Awaitable[object]) -> None:
        await work

    await asyncio.wait([asyncio.create_task(supervised(asyncio.sleep(1)))])


def test_what_a_cancelled_task_was_handed_gives_no_warning_and_may_be_used() -> None:
    start = shot("1.1", 0, "start")
    assert keys(cancelled(takes_over_what_was_not_begun, start)) == []
    assert keys(cancelled(loses_what_was_not_begun, start)) == []  # warnings are errors here


async def ends_behind_a_shield() -> None:
    worker = asyncio.create_task(cleans_up())

    async def finish() -> None:
        worker.cancel()
        await asyncio.wait([worker])

    await asyncio.sleep(0.5)
    await asyncio.shield(finish())


def test_who_ends_behind_a_shield_may_be_waited_for_there() -> None:
    assert keys(cancelled(ends_behind_a_shield, AGAIN)) == []
