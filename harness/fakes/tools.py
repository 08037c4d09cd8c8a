"""The fake tools: each run of one does what the scenario says, and is recorded as it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from harness.core.choices import Choices
from harness.core.errors import UnknownFakeTool, UnrequestedTool, UsageError, unknown
from harness.core.events import ToolEffect, ToolEnded, ToolStarted
from harness.core.json_text import Json, copy, dumps
from harness.core.messages import ToolSchema
from harness.core.ports import ToolFailed
from harness.core.trace import Recorder
from harness.fakes.issued import IssuedCall
from harness.fakes.latency import latency
from harness.fakes.place import Stage
from harness.fakes.signature import as_function
from harness.fakes.tool_spec import (
    Answers,
    Behaviour,
    CancelsItself,
    Hangs,
    Raises,
    Returns,
    ToolSpec,
)

NS = 1_000_000_000
ANY_OBJECT = {"type": "object"}
"""The schema of a tool that declares none."""

ToolFunction: TypeAlias = Callable[..., Awaitable[Json]]


class FakeTools:
    """The tools of a run; implements `harness.core.ports.Tools`."""

    def __init__(
        self, specs: Iterable[ToolSpec], stage: Stage, recorder: Recorder, choices: Choices
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._stage = stage
        self._recorder = recorder
        self._choices = choices
        self._counted: dict[str, int] = {}
        self._runs: dict[tuple[str, str], int] = {}
        self._stubborn: dict[str, None] = {}
        self._schemas: tuple[ToolSchema, ...] | None = None

    async def call(self, name: str, args: Json, call_id: str | None = None) -> Json:
        """Run a tool for the model's call `call_id`, or without an id for the oldest call of that
        name with equal arguments that waits.

        ToolFailed where the tool answers with an error, RuntimeError where it breaks,
        CancelledError where it cancels itself;
        UnknownFakeTool and UnrequestedTool where the scenario has no such tool or call.
        """
        return await self._run(name, args, {}, call_id)

    def functions(self) -> Mapping[str, ToolFunction]:
        """The tools as async functions of keyword arguments, by name; the call id is inferred."""
        return {name: as_function(self._specs[name], self._run) for name in sorted(self._specs)}

    def schemas(self, provider: str = "neutral") -> Sequence[Any]:
        """What to tell a model about the tools, sorted by name."""
        if provider != "neutral":
            raise UsageError(unknown("provider", provider, ["neutral"]))
        if self._schemas is None:
            self._schemas = tuple(
                ToolSchema(
                    spec.name,
                    spec.description,
                    copy(ANY_OBJECT if spec.parameters is None else spec.parameters),
                )
                for _name, spec in sorted(self._specs.items())
            )
        return self._schemas

    def stubborn_paths(self) -> tuple[str, ...]:
        """The tasks that a fake tool keeps alive although they were told to stop: it ignores its
        cancel, or is cleaning up after it.
        """
        return tuple(self._stubborn)

    async def _run(
        self, name: str, args: Json, defaults: dict[str, Json], call_id: str | None = None
    ) -> Json:
        spec = self._specs.get(name)
        if spec is None:
            raise self._unknown(name, call_id)
        issued, given = self._claim(name, args, defaults, call_id)
        behaviour = self._behaviour(spec, given)
        takes = behaviour.takes
        if not self._choices.plain and not isinstance(behaviour.action, Hangs):
            takes = self._latency(issued, takes)
        run = _Run(issued.call.id, name, behaviour, self._recorder, self._stubborn)
        self._recorder.record(ToolStarted(issued.call.id, name, given, call_id is None))
        return await run.play(takes)

    def _unknown(self, name: str, call_id: str | None) -> UnknownFakeTool:
        """A script may have the model ask for a tool that there is not, to see what the agent does;
        an agent that asks by itself does not fit the scenario.
        """
        error = UnknownFakeTool(unknown("tool", name, sorted(self._specs)))
        if not self._stage.asked(name, call_id):
            self._stage.mismatch(error)
        return error

    def _claim(
        self, name: str, args: Json, defaults: dict[str, Json], call_id: str | None
    ) -> tuple[IssuedCall, Json]:
        """The call that this run answers to, and the arguments as they are now: the trace must not
        change where the agent changes them later.
        """
        try:
            issued = self._stage.claim(name, args, call_id, defaults)
            given = copy(args)
            if given != issued.call.args:
                dumps(given)
        except TypeError as error:
            raise self._stage.mismatch(
                UnrequestedTool(f"{name} was run with what no model can ask for: {error}")
            ) from None
        return issued, given

    def _behaviour(self, spec: ToolSpec, args: Json) -> Behaviour:
        """What this run does; counts it where it is one of the tool's `calls`."""
        count = self._counted.get(spec.name, 0)
        behaviour, counts = _pick(spec, args, count)
        if counts:
            self._counted[spec.name] = count + 1
        return behaviour

    def _latency(self, issued: IssuedCall, takes: int) -> int:
        """The time of this run, among the times of all calls of the reply, as they stand now."""
        call = issued.call
        spans = [self._declared(each) for each in issued.beside]
        spans[issued.index] = takes
        key = (call.name, call.id)
        runs = self._runs[key] = self._runs.get(key, 0) + 1
        label = f"{call.name} {call.id}" if runs == 1 else f"{call.name} {call.id}~{runs}"
        return latency(self._choices, label, spans, issued.index)

    def _declared(self, issued: IssuedCall) -> int:
        spec = self._specs.get(issued.call.name)
        if spec is None:
            return 0
        return _pick(spec, issued.call.args, self._counted.get(spec.name, 0))[0].takes


class _Run:
    """One run of a tool."""

    __slots__ = ("_behaviour", "_call_id", "_name", "_recorder", "_stubborn", "_told")

    def __init__(
        self,
        call_id: str,
        name: str,
        behaviour: Behaviour,
        recorder: Recorder,
        stubborn: dict[str, None],
    ) -> None:
        self._call_id = call_id
        self._name = name
        self._behaviour = behaviour
        self._recorder = recorder
        self._stubborn = stubborn
        self._told = False

    async def play(self, takes: int) -> Json:
        """Take the time, have the effect, end as the behaviour says; `takes` in nanoseconds."""
        behaviour = self._behaviour
        if behaviour.effect == "start":
            self._effect()
        try:
            await self._last(None if isinstance(behaviour.action, Hangs) else takes / NS)
        except asyncio.CancelledError:
            self._recorder.record(ToolEnded(self._call_id, self._name, "cancelled"))
            raise
        if behaviour.effect == "end":
            self._effect()
        match behaviour.action:
            case Returns(value=value):
                self._recorder.record(ToolEnded(self._call_id, self._name, "returned", value))
                return copy(value)
            case Answers(message=message):
                self._recorder.record(ToolEnded(self._call_id, self._name, "error", error=message))
                raise ToolFailed(message)
            case Raises(message=message):
                self._recorder.record(ToolEnded(self._call_id, self._name, "raised", error=message))
                raise RuntimeError(message)
            case CancelsItself():
                error = asyncio.CancelledError.__name__
                self._recorder.record(ToolEnded(self._call_id, self._name, "raised", error=error))
                raise asyncio.CancelledError
            case Hangs():
                raise AssertionError("a tool that hangs came back")

    def _effect(self) -> None:
        self._recorder.record(ToolEffect(self._call_id, self._name, self._told))

    async def _last(self, seconds: float | None) -> None:
        """Wait (None: for ever), and meet a cancel as the behaviour says."""
        match self._behaviour.on_cancel:
            case "honour":
                await _wait(seconds)
            case "cleanup":
                try:
                    await _wait(seconds)
                except asyncio.CancelledError:
                    path = self._recorder.task()
                    self._stubborn[path] = None
                    try:
                        await asyncio.sleep(self._behaviour.cleanup / NS)
                    finally:
                        del self._stubborn[path]
                    raise
            case "ignore":
                await self._ignore(seconds)

    async def _ignore(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        path = self._recorder.task()
        try:
            while True:
                try:
                    return await _wait(seconds)
                except asyncio.CancelledError:
                    self._told = True
                    self._stubborn[path] = None
                    seconds = None if end is None else max(0, end - loop.time())
        finally:
            self._stubborn.pop(path, None)


async def _wait(seconds: float | None) -> None:
    if seconds is None:
        await asyncio.get_running_loop().create_future()
    else:
        await asyncio.sleep(seconds)


def _pick(spec: ToolSpec, args: Json, count: int) -> tuple[Behaviour, bool]:
    """What a run with `args` does after `count` runs that no case took; whether it is one more."""
    for case in spec.cases:
        if fits(case.args, args):
            return case.behaviour, False
    if spec.calls:
        return spec.calls[min(count, len(spec.calls) - 1)], True
    return spec.behaviour, True


def fits(part: Json, whole: Json) -> bool:
    """Whether `whole` holds all of `part`: objects key by key, anything else as it is.

    >>> fits({"at": {"city": "Paris"}}, {"at": {"city": "Paris", "zone": 1}, "n": 2})
    True
    >>> fits({"n": 1}, {"n": True})
    False
    """
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and fits(value, whole[key]) for key, value in part.items()
        )
    if isinstance(part, list | tuple):
        return (
            isinstance(whole, list | tuple)
            and len(part) == len(whole)
            and all(map(fits, part, whole))
        )
    if isinstance(part, bool) or isinstance(whole, bool):
        return part is whole
    return bool(part == whole)
