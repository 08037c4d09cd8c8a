"""A small scripted world for turns: a model, tools, and one turn played on the kernel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from harness.core.cancel_signal import CancelSignal
from harness.core.events import InsideEvent
from harness.core.messages import Message, ModelRequest, Text, ToolCall, ToolSchema
from harness.core.outcome import Outcome
from harness.core.pairing import breaches
from harness.core.reply import ReplyDone, ReplyPart
from harness.core.rows import (
    AssistantRow,
    Row,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
)
from harness.loops.turn.config import AgentConfig
from harness.loops.turn.events import (
    CallTold,
    DoneTold,
    EndTold,
    ResultTold,
    ThinkingTold,
    TurnEvent,
)
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.loop import Bindings, TurnLoop, create_loop
from harness.loops.turn.policy import SAFE, Policy
from harness.loops.turn.registry import ALLOW, ToolOutput
from harness.loops.turn.usage import UsageTracker
from harness.sim.kernel import Kernel

HANG = "hang"


def call(call_id: str, args: Any = None, **more: Any) -> ToolCall:
    """A call of the tool `t`."""
    return ToolCall(call_id, "t", {} if args is None else args, **more)


def done(text: str = "", *calls: ToolCall) -> ReplyDone:
    """The end of a reply."""
    return ReplyDone(Message("assistant", (*((Text(text),) if text else ()), *calls)))


class ScriptModel:
    """Gives one list of parts a request; an exception in it is raised, HANG never comes back.

    Each part is preceded by one bare suspension, so that a cancel can land there.
    """

    def __init__(self, steps: Sequence[Any]) -> None:
        self.steps = list(steps)
        self.requests: list[ModelRequest] = []
        self.closed: list[bool] = []

    async def generate(self, request: ModelRequest) -> AsyncIterator[ReplyPart]:
        self.requests.append(request)
        step = self.steps.pop(0) if self.steps else [done("done")]
        await asyncio.sleep(0)
        if isinstance(step, BaseException):
            raise step
        if step == HANG:
            await asyncio.get_running_loop().create_future()
        self.closed.append(False)
        return Stream(self, step, len(self.closed) - 1)


class Stream:
    """One reply; knows whether it was closed."""

    def __init__(self, model: ScriptModel, parts: Sequence[Any], number: int) -> None:
        self.model = model
        self.parts = list(parts)
        self.number = number

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> ReplyPart:
        await asyncio.sleep(0)
        if not self.parts:
            raise StopAsyncIteration
        part = self.parts.pop(0)
        if part == HANG:
            await asyncio.get_running_loop().create_future()
        if isinstance(part, BaseException):
            raise part
        return part

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.model.closed[self.number] = True


class ScriptTools:
    """Runs a call by what `does` says for its id: a value, an exception, HANG or a function."""

    def __init__(self, does: dict[str, Any] | None = None) -> None:
        self.does = does or {}
        self.began: list[str] = []
        self.over: list[str] = []

    def schemas(self) -> tuple[ToolSchema, ...]:
        return (ToolSchema("t"),)

    async def dispatch(self, wanted: ToolCall) -> ToolOutput:
        self.began.append(wanted.id)
        deed = self.does.get(wanted.id, {"ok": True})
        if callable(deed):
            deed = await deed()
        await asyncio.sleep(0)
        if deed == HANG:
            await asyncio.get_running_loop().create_future()
        if isinstance(deed, BaseException):
            raise deed
        self.over.append(wanted.id)
        return deed if isinstance(deed, ToolOutput) else ToolOutput(wanted.id, deed, decision=ALLOW)


class World:
    """A loop on scripted services, and what was seen of it."""

    def __init__(
        self,
        steps: Sequence[Any],
        does: dict[str, Any] | None = None,
        *,
        policy: Policy = SAFE,
        watch: Callable[[InsideEvent], None] | None = None,
        **config: Any,
    ) -> None:
        self.model = ScriptModel(steps)
        self.tools = ScriptTools(does)
        self.log = MemoryLog(policy)
        self.policy = policy
        self.signal = CancelSignal()
        self.usage = UsageTracker()
        self.events: list[TurnEvent] = []
        self.inside: list[InsideEvent] = []
        self.watch = watch
        self.points: list[tuple[str, int]] = []
        """The suspensions of all tasks while the last turn was played: path and number."""
        self.alive: list[str] = []
        """The tasks that the last turn left behind."""
        self.config = AgentConfig(**config)

    def loop(self) -> TurnLoop:
        bindings = Bindings(
            signal=self.signal, sink=self.events.append, usage=self.usage, observe=self.observe
        )
        return create_loop(
            self.model, self.log, self.tools, self.config, bindings, policy=self.policy
        )

    def observe(self, event: InsideEvent) -> None:
        self.inside.append(event)
        if self.watch is not None:
            self.watch(event)

    def rows(self, kind: type[Row] | None = None) -> list[Row]:
        return [row for row in self.log.rows() if kind is None or isinstance(row, kind)]

    def results(self) -> list[tuple[str, Any, str | None]]:
        return [(r.id, r.value, r.error) for r in self.log.rows() if isinstance(r, ToolResultRow)]

    def kinds(self) -> list[str]:
        return [str(row.__struct_config__.tag) for row in self.log.rows()]


def play(
    world: World,
    text: str | None = "hi",
    prepare: Callable[[Kernel, asyncio.Task[Outcome]], None] | None = None,
) -> Outcome | BaseException:
    """Play one turn on a kernel of its own: its outcome, or what it raised.

    Whatever happened, the kernel had nothing to log and the signal has no listener left.
    """
    kernel = Kernel()
    try:
        task = kernel.spawn(world.loop().run(text), "1")
        if prepare is not None:
            prepare(kernel, task)
        stop = kernel.run_until(task.done)
        assert task.done(), stop
        kernel.settle()
        world.points = list(kernel.points)
        world.alive = [info.path for info in kernel.alive()]
        assert kernel.callback_errors == []
        assert world.signal.listeners == 0
        if task.cancelled():
            return asyncio.CancelledError()
        return task.exception() or task.result()
    finally:
        kernel.tear_down()


def check_turn(world: World) -> None:
    """What holds of every turn: one end, every call answered once, rows and events agree."""
    rows, events = world.log.rows(), world.events
    assert [type(row) for row in rows].count(TurnEndRow) == 1
    assert isinstance(rows[-1], TurnEndRow)
    assert [type(event) for event in events].count(EndTold) == 1
    assert events[-1] == EndTold(rows[-1].outcome)
    calls = [(row.id, row.name, row.args) for row in rows if isinstance(row, ToolCallRow)]
    assert calls == [(e.id, e.name, e.args) for e in events if isinstance(e, CallTold)]
    results = [e for e in events if isinstance(e, ResultTold)]
    assert world.results() == [(e.call_id, e.value, e.error) for e in results]
    assert sorted(row[0] for row in calls) == sorted(e.call_id for e in results)
    thought = [row.text for row in rows if isinstance(row, ThinkingRow)]
    assert "".join(thought) == "".join(e.delta for e in events if isinstance(e, ThinkingTold))
    told = iter([e.text for e in events if isinstance(e, DoneTold)])
    assert all(row.text in told for row in rows if isinstance(row, AssistantRow))
    assert breaches(world.log.derive_messages()) == ()
