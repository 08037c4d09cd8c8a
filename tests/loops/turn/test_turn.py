from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.cancel_signal import CancelSignal
from harness.core.errors import AgentError
from harness.core.events import LogRow, LoopEvent
from harness.core.messages import Message, ModelRequest, Usage
from harness.core.outcome import CANCELLED, COMPLETED, Error
from harness.core.reply import (
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.core.rows import Row, ThinkingRow, ToolCallRow, ToolResultRow, TurnEndRow, UserRow
from harness.loops.turn import sse
from harness.loops.turn.config import AgentConfig
from harness.loops.turn.context import LOG, MODEL, TOOLS, Context
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.loop import LOOP, Bindings, create_loop, loop_plugin
from harness.loops.turn.policy import POLICIES, SAFE, Policy
from harness.loops.turn.trim import UNTRIMMED
from harness.sim.cancel import Point
from harness.sim.kernel import Kernel
from tests.loops.turn.world import HANG, ScriptTools, World, call, check_turn, done, play

A, B, C = call("a"), call("b"), call("c")


def busy(policy: Policy = SAFE, **config: Any) -> World:
    """A turn of two steps with everything in it."""
    return World(
        [
            [
                ThinkingDelta("hm"),
                TextDelta("let me "),
                UsageReport(Usage(1, 2, 3)),
                ThinkingDelta("well"),
                done("let me see", A, B, C),
                ThinkingDelta("late"),
            ],
            [ThinkingDelta("so"), TextDelta("done"), done("done")],
        ],
        {"b": ValueError("broke")},
        policy=policy,
        **{"max_parallel_tool_calls": 2, **config},
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_a_busy_turn(policy: Policy) -> None:
    world = busy(policy)
    assert play(world) == COMPLETED
    check_turn(world)
    assert [row.text for row in world.log.rows() if isinstance(row, ThinkingRow)] == [
        "hm",
        "well",
        "late",
        "so",
    ]
    assert world.results() == [
        ("a", {"ok": True}, None),
        ("b", None, "broke"),
        ("c", {"ok": True}, None),
    ]
    assert world.usage.total() == Usage(1, 2, 3)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_inside_is_reported_as_it_was_written_and_told(policy: Policy) -> None:
    world = busy(policy)
    play(world)
    rows = [event.row for event in world.inside if isinstance(event, LogRow)]
    frames = [(e.name, e.payload) for e in world.inside if isinstance(e, LoopEvent)]
    assert tuple(rows) == world.log.rows()
    assert frames == [sse.frame(event) for event in world.events]


def test_a_resume_writes_no_user_row() -> None:
    world = World([[done("go on")]])
    assert play(world, None) == COMPLETED
    assert world.kinds() == ["turn_start", "assistant_message", "turn_end"]


# --- cancelling the turn's task


def waits(world: World) -> int:
    """How often the turn's own task suspended."""
    return sum(path == "1" for path, _ in world.points)


def at(point: Point, stop: Callable[[asyncio.Task[Any]], object]) -> Any:
    """What makes `play` stop something at a point."""
    return lambda kernel, _task: kernel.plan(point, stop)


def cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


POINTS = [Point("1", 0, "start")] + [
    Point("1", k, mode) for k in range(1, 5) for mode in ("early", "late")
]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_turn_waits_once_a_step_and_once_a_batch(policy: Policy) -> None:
    world = busy(policy)
    play(world)
    assert waits(world) == 4  # two steps, two batches


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_cancelled_task_leaves_a_valid_log_and_stays_cancelled(
    policy: Policy, point: Point
) -> None:
    world = busy(policy)
    outcome = play(world, prepare=at(point, cancel))
    assert isinstance(outcome, asyncio.CancelledError)
    if point.mode == "start":
        assert world.log.rows() == ()
        return
    assert world.rows()[-1] == TurnEndRow("turn-0", CANCELLED)
    check_turn(world)


@pytest.mark.parametrize("point", POINTS[1:], ids=str)
def test_a_second_cancel_changes_no_row(point: Point) -> None:
    once, twice = busy(), busy()
    play(once, prepare=at(point, cancel))
    found = play(twice, prepare=at(point, lambda task: (cancel(task), cancel(task))))
    assert isinstance(found, asyncio.CancelledError)
    assert twice.log.rows() == once.log.rows()


def test_the_cancel_that_is_raised_again_is_the_one_that_came() -> None:
    world = World([HANG])

    async def main() -> None:
        task = asyncio.ensure_future(world.loop().run("hi"))
        await asyncio.sleep(0)
        task.cancel("the user left")
        with pytest.raises(asyncio.CancelledError, match="the user left"):
            await task

    asyncio.run(main())
    assert world.kinds() == ["turn_start", "user_message", "turn_end"]


def test_a_cancel_while_the_grace_runs_ends_it() -> None:
    ends: list[str] = []

    async def slow_to_stop() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            ends.append("stopped")
            raise

    def prepare(kernel: Kernel, task: asyncio.Task[Any]) -> None:
        kernel.call_later(0.001, world.signal.abort)
        kernel.call_later(0.002, task.cancel)

    world = World([[done("", A)]], {"a": slow_to_stop}, cancel_grace=5_000_000_000)
    assert isinstance(play(world, prepare=prepare), asyncio.CancelledError)
    assert ends == []
    check_turn(world)


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("1.1", Error("generate", "CancelledError")),
        ("1.2", COMPLETED),
    ],
)
@pytest.mark.parametrize(("k", "mode"), [(0, "start"), (1, "early"), (1, "late")])
def test_a_cancel_of_the_work_alone_is_the_works_failure(
    path: str, outcome: Any, k: int, mode: Any
) -> None:
    world = World([[done("", A, B)]])
    point = Point(path, k, mode)
    found = play(world, prepare=at(point, cancel))
    assert found == outcome
    if path == "1.2":
        assert world.results() == [("a", None, "CancelledError"), ("b", {"ok": True}, None)]
    check_turn(world)


def test_a_cancel_of_the_stream_alone_is_the_streams_failure() -> None:
    world = World([[TextDelta("a"), done("a")]])
    point = Point("1.1", 2, "early")
    found = play(world, prepare=at(point, cancel))
    assert found == Error("stream", "CancelledError")
    assert world.model.closed == [True]


def test_a_request_that_throws_a_cancel_is_a_failure_of_the_request() -> None:
    """Nobody stopped the turn: the model threw before there was anything to wait for."""

    def throw(_request: ModelRequest) -> Any:
        raise asyncio.CancelledError

    world = World([])
    world.model.generate = throw  # type: ignore[method-assign]
    assert play(world) == Error("generate", "CancelledError")
    check_turn(world)


# --- stopping the turn by its signal, anywhere


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", ["early", "late"])
def test_a_signal_at_any_suspension_of_any_task_leaves_a_valid_log(
    policy: Policy, mode: Any
) -> None:
    undisturbed = busy(policy)
    play(undisturbed)
    assert len(undisturbed.points) == 20
    for path, k in undisturbed.points:
        world = busy(policy)
        stop = world.signal.abort
        outcome = play(world, prepare=at(Point(path, k, mode), lambda _task, stop=stop: stop()))
        assert outcome in (CANCELLED, COMPLETED), (path, k)
        check_turn(world)


def test_the_places_to_cancel_a_turn_do_not_depend_on_how_the_reply_is_cut() -> None:
    short = World([[TextDelta("hello"), done("hello")]])
    long = World([[*[TextDelta(letter) for letter in "hello"], done("hello")]])
    assert [play(short), play(long)] == [COMPLETED, COMPLETED]
    assert waits(short) == waits(long) == 1


def test_an_aborted_signal_stops_the_next_turn_at_once() -> None:
    world = World([])
    world.signal.abort()
    assert play(world) == CANCELLED
    assert world.model.requests == []
    check_turn(world)


async def cancelled_into_an_error() -> Any:
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        raise ValueError("I was busy") from None


class TurnsCancelsIntoErrors:
    """A model that raises something else when it is cancelled; its streams cannot be closed."""

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once

    async def generate(self, _request: ModelRequest) -> Any:
        return await cancelled_into_an_error() if self.at_once else self

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await cancelled_into_an_error()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_model_that_turns_its_cancel_into_an_error_does_not_change_the_outcome(
    at_once: bool,
) -> None:
    world = World([])
    world.model = TurnsCancelsIntoErrors(at_once=at_once)  # type: ignore[assignment]
    stop = world.signal.abort
    assert play(world, prepare=lambda kernel, _: kernel.call_later(0.001, stop)) == CANCELLED
    check_turn(world)


class AbortsWhileItWorks:
    """A model whose own code has the turn stopped, and which then goes on to wait for ever."""

    def __init__(self, signal: CancelSignal, *, at_once: bool) -> None:
        self.signal = signal
        self.at_once = at_once

    async def work(self) -> Any:
        self.signal.abort()
        await asyncio.get_running_loop().create_future()

    async def generate(self, _request: ModelRequest) -> Any:
        return await self.work() if self.at_once else self

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await self.work()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_turn_that_its_model_stops_leaves_no_task_behind(policy: Policy, at_once: bool) -> None:
    world = World([], policy=policy)
    world.model = AbortsWhileItWorks(world.signal, at_once=at_once)  # type: ignore[assignment]
    assert play(world) == CANCELLED
    assert world.alive == []
    check_turn(world)


# --- properties

parts = st.lists(
    st.one_of(
        st.builds(TextDelta, st.sampled_from(["", "x", "漢"])),
        st.builds(ThinkingDelta, st.sampled_from(["", "hm", "so"])),
        st.builds(UsageReport, st.just(Usage(1, 1, 2))),
        st.builds(
            lambda text, count: done(text, *[call(f"c{n}") for n in range(count)]),
            st.sampled_from(["", "answer"]),
            st.integers(0, 4),
        ),
        st.sampled_from([ReplyFailed("stream", "f"), ReplyInterrupted(), ValueError("e"), HANG]),
    ),
    max_size=5,
)
steps = st.lists(parts | st.sampled_from([ValueError("refused"), HANG]), max_size=3)
deeds = st.dictionaries(
    st.sampled_from(["c0", "c1", "c2", "c3"]), st.sampled_from([1, None, ValueError("e"), HANG])
)


@settings(max_examples=150)
@given(
    steps,
    deeds,
    st.sampled_from(POLICIES),
    st.integers(-1, 3),
    st.integers(-1, 5),
    st.integers(0, 40),
    st.booleans(),
)
def test_rows_and_events_of_any_turn_agree(
    script: list[Any],
    does: dict[str, Any],
    policy: Policy,
    budget: int,
    parallel: int,
    stop_after: int,
    by_task: bool,
) -> None:
    world = World(script, does, policy=policy, max_steps=budget, max_parallel_tool_calls=parallel)

    def prepare(kernel: Kernel, task: asyncio.Task[Any]) -> None:
        stop = task.cancel if by_task else world.signal.abort
        kernel.call_later(1, stop)  # whatever hangs
        left = stop_after

        def tick() -> None:
            nonlocal left
            left -= 1
            if left > 0:
                kernel.call_soon(tick)
            elif left == 0:
                stop()

        kernel.call_soon(tick)

    play(world, prepare=prepare)
    if world.log.rows() and (policy is SAFE or _calls_are_unique(world)):
        check_turn(world)


def _calls_are_unique(world: World) -> bool:
    ids = [row.id for row in world.log.rows() if isinstance(row, ToolCallRow)]
    return len(set(ids)) == len(ids)


# --- seams that throw


class Broken(Exception):
    """What a seam throws."""


@pytest.mark.parametrize(
    "where", ["generate", "schemas", "derive", "append", "sink", "trim", "estimate"]
)
def test_a_seam_that_throws_ends_the_turn_and_is_heard_of(where: str) -> None:
    world = World([[TextDelta("a"), done("", A)], [done("done")]])

    def throw(*_args: Any, **_more: Any) -> Any:
        raise Broken(where)

    def throwing_append(row: Row) -> None:
        if isinstance(row, ToolResultRow):
            throw()
        MemoryLog.append(world.log, row)

    bindings: dict[str, Any] = {"sink": world.events.append}
    match where:
        case "generate":
            world.model.generate = throw  # type: ignore[method-assign]
        case "schemas":
            world.tools.schemas = throw  # type: ignore[method-assign]
        case "derive":
            world.log.ledger = throw  # type: ignore[method-assign]
        case "append":
            world.log.append = throwing_append  # type: ignore[method-assign]
        case "sink":

            def sink(event: Any) -> None:
                world.events.append(event)
                if type(event).__name__ == "TextTold":
                    throw()

            bindings["sink"] = sink
        case "trim" | "estimate":
            bindings[where] = throw
    loop = create_loop(world.model, world.log, world.tools, world.config, Bindings(**bindings))
    with pytest.raises(Broken, match=where):
        asyncio.run(loop.run("hi"))
    assert world.rows()[-1] == TurnEndRow("turn-0", Error("generate", where))
    assert [type(row) for row in world.rows()].count(TurnEndRow) == 1


def test_a_seam_that_throws_all_the_time_is_heard_of_by_its_first_error() -> None:
    world = World([])
    said = iter(range(10))

    def append(_row: Row) -> None:
        raise Broken(str(next(said)))

    world.log.append = append  # type: ignore[method-assign]
    with pytest.raises(Broken, match="0"):
        asyncio.run(world.loop().run("hi"))


def test_a_seam_that_throws_does_not_swallow_a_cancel() -> None:
    world = World([[done("", A)]], {"a": HANG})

    def watch(event: Any) -> None:
        if type(event).__name__ == "ResultSynthesized":
            raise Broken("no")

    world.watch = watch
    outcome = play(world, prepare=lambda kernel, task: kernel.call_later(0.001, task.cancel))
    assert isinstance(outcome, asyncio.CancelledError)


# --- where a turn runs


async def answers(text: str) -> AsyncIterator[ReplyPart]:
    for letter in text:
        await asyncio.sleep(0)
        yield TextDelta(letter)
    yield done(text)


class GeneratorModel:
    """A model as people write one: an async generator behind a coroutine."""

    async def generate(self, request: ModelRequest) -> AsyncIterator[ReplyPart]:
        return answers(f"heard {len(request.messages)}")


def test_a_turn_runs_under_stock_asyncio_and_leaves_nothing_to_complain_about() -> None:
    complaints: list[Any] = []

    async def main() -> list[Any]:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(context)
        )
        log, signal = MemoryLog(), CancelSignal()
        loop = create_loop(GeneratorModel(), log, ScriptTools(), bindings=Bindings(signal=signal))
        outcomes = [await loop.run("one"), await loop.run("two")]
        stopped = asyncio.ensure_future(loop.run("three"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        signal.abort()
        outcomes.append(await stopped)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert [m.text for m in log.derive_messages()] == [
            "one",
            "heard 1",
            "two",
            "heard 3",
            "three",
        ]
        return outcomes

    assert asyncio.run(main()) == [COMPLETED, COMPLETED, CANCELLED]
    gc.collect()
    assert complaints == []


def test_what_given_up_work_raises_late_is_retrieved() -> None:
    async def late() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            raise ValueError("too late") from None

    world = World([[done("", A)]], {"a": late})
    kernel = Kernel()
    try:
        task = kernel.spawn(world.loop().run("hi"), "1")
        kernel.call_later(0.001, world.signal.abort)
        kernel.run_until(task.done)
        assert task.result() == CANCELLED
        assert len(kernel.alive()) == 1
        kernel.drain(kernel.now() + 5_000_000_000)
        assert kernel.alive() == []
        gc.collect()
        assert kernel.callback_errors == []
    finally:
        kernel.tear_down()


# --- the loop's parts


def test_seams_are_looked_up_when_the_turn_starts() -> None:
    world = World([[done("from the world")]])
    context = Context()
    loop_plugin(AgentConfig()).mount(context)
    loop = context.get(LOOP)
    assert loop is not None
    with pytest.raises(AgentError, match="missing LlmService in context"):
        asyncio.run(loop.run("hi"))
    context.provide(MODEL, world.model)
    with pytest.raises(AgentError, match="missing SessionLog service in context"):
        asyncio.run(loop.run("hi"))
    context.provide(LOG, world.log)
    with pytest.raises(AgentError, match="missing ToolRegistryService in context"):
        asyncio.run(loop.run("hi"))
    assert world.log.rows() == ()
    context.provide(TOOLS, world.tools)
    assert asyncio.run(loop.run("hi")) == COMPLETED


def test_a_snapshot_is_the_next_request_and_changes_nothing() -> None:
    world = World([[done("", A)], [done("done")]])
    play(world)
    rows, events, inside = world.log.rows(), len(world.events), len(world.inside)
    snapshot = world.loop().snapshot()
    assert snapshot.messages == world.log.derive_messages()
    assert snapshot.tools == world.tools.schemas()
    assert (snapshot.system, snapshot.model) == (world.config.system_prompt, world.config.model)
    assert (world.log.rows(), len(world.events), len(world.inside)) == (rows, events, inside)


def test_what_is_bound_can_be_read() -> None:
    world = World([])
    assert world.loop().config is world.config
    assert world.loop().usage is world.usage


def test_a_bound_trim_takes_the_place_of_the_usual_one() -> None:
    world = World([[done("done")]])
    asked: list[Any] = []

    def bound(messages: Any, *limits: Any) -> Any:
        asked.append((len(messages), *limits[1:]))
        return (Message("user", ()),), UNTRIMMED

    loop = create_loop(world.model, world.log, world.tools, world.config, Bindings(trim=bound))
    assert asyncio.run(loop.run("hi")) == COMPLETED
    assert asked == [(1, 65536, 0.8, 10)]
    assert world.model.requests[0].messages == (Message("user", ()),)


def test_an_estimate_holds_within_its_block_whatever_happens() -> None:
    world = World([], context_window_tokens=100, context_keep_recent=2)
    for n in range(9):
        world.log.append(UserRow(str(n)))
    loop = world.loop()
    whole = len(loop.snapshot().messages)
    with loop.estimating(lambda _message: 50):
        assert len(loop.snapshot().messages) < whole
    assert len(loop.snapshot().messages) == whole
    with pytest.raises(Broken), loop.estimating(lambda _message: 50):
        raise Broken
    assert len(loop.snapshot().messages) == whole


def test_a_log_without_sizes_of_its_own_is_trimmed_all_the_same() -> None:
    class Plain:
        """A session log as somebody else writes it."""

        def __init__(self) -> None:
            self.inner = MemoryLog()
            self.append = self.inner.append
            self.rows = self.inner.rows
            self.derive_messages = self.inner.derive_messages
            self.next_turn_id = self.inner.next_turn_id
            self.clear = self.inner.clear

    world = World([[done("a" * 900)], [done("b" * 900)], [done("c")]])
    loop = create_loop(world.model, Plain(), world.tools, AgentConfig(context_window_tokens=300))
    for text in ("one", "two", "three"):
        assert asyncio.run(loop.run(text)) == COMPLETED
    assert world.model.requests[-1].messages[0].text.startswith("[context-trimmed]")
