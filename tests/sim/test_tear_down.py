"""The end of a run leaves nothing: no task, no generator, no noise, nothing for the next run."""

from __future__ import annotations

import asyncio
import gc
from asyncio import events
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

import pytest

from harness.core.durations import SECOND
from harness.sim.kernel import Kernel
from harness.sim.outer import Outer
from harness.sim.watchdog import WATCHDOG
from tests.sim.common import never

MakeKernel: TypeAlias = Callable[..., Kernel]


@pytest.fixture
def silent(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Any:
    """Nothing is printed or logged, also when what is left is collected; warnings are errors."""
    yield
    gc.collect()
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


def test_leftovers_are_cancelled_in_the_order_they_were_made(silent: None) -> None:
    kernel = Kernel()
    log: list[str] = []

    async def leftover(name: str) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            log.append(name)

    async def main() -> None:
        for n in range(10):
            kernel.create_task(leftover(f"child {n}"))

    kernel.spawn(leftover("root"), "1")
    kernel.spawn(main(), "2")
    kernel.settle()
    kernel.tear_down()
    assert log == ["root", *(f"child {n}" for n in range(10))]
    assert kernel.is_closed()


def test_clean_up_may_take_virtual_hours_and_wait_often(silent: None) -> None:
    kernel = Kernel()
    log: list[str] = []

    async def careful() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(100):
                await asyncio.sleep(300)
            log.append("clean")

    kernel.spawn(careful(), "1")
    kernel.settle()
    kernel.tear_down()
    assert log == ["clean"]


def test_clean_up_that_waits_for_ever_is_cancelled_again(silent: None) -> None:
    kernel = Kernel()
    log: list[str] = []

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await asyncio.Event().wait()
            finally:
                log.append("out")

    kernel.spawn(stuck(), "1")
    kernel.settle()
    kernel.tear_down()
    assert log == ["out"]


def test_a_deadlock_ends_quietly(silent: None) -> None:
    kernel = Kernel()

    async def locked(lock: asyncio.Lock) -> None:
        async with lock:
            await asyncio.Event().wait()

    lock = asyncio.Lock()
    for n in range(3):
        kernel.spawn(locked(lock), str(n))
    assert kernel.run_until(never).reason == "deadlock"
    kernel.tear_down()
    assert kernel.callback_errors == []


@pytest.mark.parametrize("span", [0, 0.001, 3_600])
def test_a_task_that_ignores_cancels_is_closed_where_it_stands(silent: None, span: float) -> None:
    kernel = Kernel()
    steps = 0
    log: list[str] = []

    async def deaf() -> None:
        nonlocal steps
        try:
            for _ in count():
                steps += 1
                try:
                    await asyncio.sleep(span)
                except asyncio.CancelledError:
                    log.append("ignored")
        finally:
            log.append("closed")

    task = kernel.spawn(deaf(), "1")
    kernel.run_until(lambda: steps == 10)
    kernel.tear_down()
    assert log[0] == "ignored"
    assert log[-1] == "closed"
    assert steps < 20_000
    assert not task.done()
    del task
    gc.collect()
    assert kernel.callback_errors == []


def test_a_task_that_ignores_even_closing_is_left_alone(silent: None) -> None:
    kernel = Kernel()
    log: list[str] = []

    async def deaf() -> None:
        for _ in count():
            try:
                async with asyncio.timeout(1):
                    await asyncio.Event().wait()
            except BaseException as error:
                log.append(type(error).__name__)

    kernel.spawn(deaf(), "1")
    kernel.settle()
    kernel.tear_down()
    assert log.count("GeneratorExit") == 1
    assert log[-1] == "GeneratorExit"


async def pump() -> None:
    for _ in count():
        with suppress(BaseException):
            await asyncio.sleep(1)


async def pumped() -> AsyncIterator[int]:
    await pump()
    yield 1


async def pumped_at_its_end() -> AsyncIterator[int]:
    try:
        yield 1
    finally:
        await pump()


async def awaits_it() -> None:
    await pump()


async def awaits_it_again() -> None:
    try:
        await pump()
    except RuntimeError:
        await pump()


async def awaits_it_and_goes_on() -> None:
    with suppress(RuntimeError):
        await pump()


async def reads_it() -> None:
    with suppress(RuntimeError):
        async for _ in pumped():
            pass


async def asks_it_with_a_default() -> None:
    with suppress(RuntimeError):
        await anext(pumped(), None)


async def leaves_it() -> None:
    async for _ in pumped_at_its_end():
        break


async def has_it_in_a_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(awaits_it())


@pytest.mark.parametrize(
    "main",
    [
        awaits_it,
        awaits_it_again,
        awaits_it_and_goes_on,
        reads_it,
        asks_it_with_a_default,
        leaves_it,
        has_it_in_a_group,
    ],
)
def test_what_ignores_closing_deep_inside_makes_no_noise(
    silent: None, main: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    kernel = Kernel()
    kernel.spawn(main(), "1")
    kernel.run_until(never, 3 * SECOND)
    kernel.tear_down()
    assert kernel.alive() == []


def test_tasks_made_in_clean_up_are_ended_too(silent: None) -> None:
    kernel = Kernel()
    log: list[str] = []

    async def orphan(depth: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            log.append(f"orphan {depth}")
            if depth:
                kernel.create_task(orphan(depth - 1))

    kernel.spawn(orphan(3), "1")
    kernel.settle()
    kernel.tear_down()
    assert log == [f"orphan {n}" for n in (3, 2, 1, 0)]


def test_tasks_made_without_end_come_to_an_end(silent: None) -> None:
    kernel = Kernel()

    async def hydra() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            kernel.create_task(hydra())

    kernel.spawn(hydra(), "1")
    kernel.settle()
    kernel.tear_down()
    assert kernel.alive() == []


def test_a_task_that_was_not_started_is_never_entered(silent: None) -> None:
    kernel = Kernel()
    log: list[str] = []

    async def main() -> None:
        log.append("entered")

    kernel.spawn(main(), "1").cancel()
    kernel.tear_down()
    assert log == []


def test_a_leftover_that_exits_does_not_spoil_the_rest(silent: None) -> None:
    kernel = Kernel()
    log: list[str] = []

    async def exits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise SystemExit(3)

    async def other() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            log.append("other")

    tasks = [kernel.spawn(exits(), "1"), kernel.spawn(other(), "2")]
    kernel.settle()
    kernel.tear_down()
    assert log == ["other"]
    assert isinstance(tasks[0].exception(), SystemExit)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("closed", [False, True], ids=["cancelled", "closed"])
def test_an_interrupt_waits_until_all_is_ended(
    silent: None, error: type[BaseException], closed: bool
) -> None:
    kernel = Kernel()
    log: list[str] = []

    async def stops() -> None:
        for _ in count():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if not closed:
                    raise error from None
            except GeneratorExit:
                raise error from None

    async def other() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            log.append("other")

    kernel.spawn(stops(), "1")
    kernel.spawn(other(), "2")
    kernel.spawn(stops(), "3")
    kernel.settle()
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            kernel.tear_down()
    else:
        kernel.tear_down()
    assert log == ["other"]
    assert kernel.is_closed()
    kernel.tear_down()
    assert gc.isenabled()


def test_timers_that_set_themselves_again_do_not_keep_a_run_alive(silent: None) -> None:
    kernel = Kernel()

    def beat() -> None:
        kernel.call_later(1, beat)

    beat()
    kernel.spawn(asyncio.sleep(60), "1")
    kernel.run_until(never, 3 * SECOND)
    kernel.tear_down()
    assert kernel.now() == 3 * SECOND


def test_a_second_tear_down_does_nothing() -> None:
    kernel = Kernel()
    kernel.spawn(asyncio.sleep(60), "1")
    kernel.settle()
    kernel.tear_down()
    kernel.tear_down()
    assert kernel.is_closed()
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        kernel.run_until(never)


def test_a_kernel_may_be_torn_down_within_another_loop() -> None:
    async def outer() -> None:
        kernel = Kernel()
        kernel.spawn(asyncio.sleep(60), "1")
        kernel.settle()
        kernel.tear_down()
        async with asyncio.timeout(5):
            await asyncio.sleep(0)

    asyncio.run(outer())


# --- async generators


async def numbers() -> AsyncIterator[int]:
    try:
        for n in count():
            yield n
            await asyncio.sleep(1)
    finally:
        closed.append("numbers")


async def letters() -> AsyncIterator[str]:
    try:
        yield "a"
        yield "b"
    finally:
        await asyncio.sleep(1)
        closed.append("letters")


closed: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_closed() -> None:
    closed.clear()


async def first_of(stream: AsyncIterator[Any]) -> Any:
    async for item in stream:
        return item
    return None


def test_a_generator_that_is_dropped_is_closed_by_a_task_of_its_own(kernel: Kernel) -> None:
    told: list[str] = []
    kernel.on_abandoned = told.append

    async def main() -> None:
        for _ in range(2):
            await first_of(letters())
        await asyncio.sleep(5)

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert told == ["letters", "letters"]
    assert closed == ["letters", "letters"]
    assert ("gen.letters.1", 1) in kernel.points
    assert ("gen.letters.2", 1) in kernel.points


def test_the_name_of_a_generator_is_its_qualified_name(kernel: Kernel) -> None:
    told: list[str] = []
    kernel.on_abandoned = told.append

    class Model:
        async def stream(self) -> AsyncIterator[int]:
            yield 1

    kernel.spawn(first_of(Model().stream()), "1")
    kernel.run_until(never)
    name = "test_the_name_of_a_generator_is_its_qualified_name.<locals>.Model.stream"
    assert told == [name]
    assert kernel.points == []


def test_a_generator_that_is_closed_or_read_to_its_end_is_not_abandoned(kernel: Kernel) -> None:
    told: list[str] = []
    kernel.on_abandoned = told.append

    async def main() -> None:
        async for _ in letters():
            pass
        stream = numbers()
        await anext(stream)
        await stream.aclose()

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    kernel.tear_down()
    assert told == []
    assert closed == ["letters", "numbers"]


def test_generators_that_are_still_held_are_closed_in_the_order_they_began(silent: None) -> None:
    kernel = Kernel()
    told: list[str] = []
    kernel.on_abandoned = told.append
    held = [letters() if n % 3 else numbers() for n in range(9)]

    async def main() -> None:
        for stream in reversed(held):
            await anext(stream)

    kernel.spawn(main(), "1")
    kernel.run_until(never)
    assert told == []
    kernel.tear_down()
    assert told == ["letters", "letters", "numbers"] * 3
    assert sorted(closed) == sorted(told)
    assert [stream.ag_frame for stream in held] == [None] * 9


def test_a_generator_that_ends_with_its_cancelled_reader_is_not_called_abandoned(
    silent: None,
) -> None:
    kernel = Kernel()
    told: list[str] = []
    kernel.on_abandoned = told.append

    async def reader() -> None:
        async for _ in letters():
            await asyncio.sleep(60)

    kernel.spawn(reader(), "1")
    kernel.run_until(never, 5 * SECOND)
    kernel.tear_down()
    assert told == []
    assert closed == ["letters"]


def test_a_generator_that_will_not_close_is_kept_as_an_error(silent: None) -> None:
    kernel = Kernel()

    async def deaf() -> AsyncIterator[int]:
        for n in count():
            with suppress(GeneratorExit):
                yield n

    stream = deaf()
    kernel.spawn(first_of(stream), "1")
    kernel.run_until(never)
    kernel.tear_down()
    del stream
    gc.collect()
    assert kernel.callback_errors == [
        "Task exception was never retrieved in gen.deaf.1: "
        "RuntimeError: async generator ignored GeneratorExit"
    ]


def test_the_generators_of_a_loop_can_be_shut_down_as_in_stock_asyncio(kernel: Kernel) -> None:
    async def main() -> None:
        held = [numbers(), letters()]
        for stream in held:
            await anext(stream)
        await kernel.shutdown_asyncgens()
        assert closed == ["numbers", "letters"]

    task = kernel.spawn(main(), "1")
    kernel.run_until(task.done)
    task.result()


# --- the next run


def test_nothing_of_a_run_reaches_the_next() -> None:
    log: list[str] = []

    def run(number: int) -> None:
        kernel = Kernel()

        async def leftover() -> None:
            try:
                await asyncio.sleep(1)
                log.append(f"{number} woke")
            except asyncio.CancelledError:
                log.append(f"{number} cancelled at {kernel.now()}")

        async def main() -> None:
            kernel.create_task(leftover())
            kernel.call_later(0.5, log.append, f"{number} timer")

        task = kernel.spawn(main(), "1")
        kernel.run_until(task.done)
        kernel.tear_down()

    for number in range(3):
        run(number)
    assert log == [f"{n} cancelled at 0" for n in range(3)]


@pytest.mark.parametrize(
    ("owner", "name"), [(Outer, "leave"), (Outer, "enter"), (type(WATCHDOG), "leave")]
)
def test_an_interrupt_between_the_steps_of_a_run_leaves_nothing_behind(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel()
    kernel.call_soon(lambda: None)
    real = getattr(owner, name)

    def interrupted(*_args: Any) -> None:
        monkeypatch.setattr(owner, name, real)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel.settle()
    kernel.tear_down()
    assert events._get_running_loop() is None
    assert kernel.is_closed()
