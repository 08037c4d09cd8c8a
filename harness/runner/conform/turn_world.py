"""The scripted world that a turn vector plays in: its model, its tools, its cancel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import msgspec

from harness.core.cancel_signal import CancelSignal
from harness.core.json_text import Json
from harness.core.messages import ModelRequest, ToolCall, ToolSchema, Usage
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.core.rows import Row
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.registry import Decision, ToolOutput
from harness.runner.conform.common import message_from_json, only_keys

PARKED_FOR = 0.004
"""Seconds between something that hangs and the cancel of the point ``parked``."""

_POINTS = {
    "before_turn", "parked", "event", "append", "generate", "stream_next", "tool_start", "tool_end",
    "never",
}  # fmt: skip
_TOOL_KEYS = {"behaviour", "value", "message", "render", "decision", "ms", "call_id", "raw"}
ANSWER_DONE: Json = [
    {
        "kind": "done",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "content": "done"}],
            "tool_call_id": None,
        },
    }
]


class Thrown(Exception):
    """What a vector's model or tools throw; `name` is the class it was recorded with."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Cancel:
    """Aborts the signal when its point is hit for the nth time; without a spec there is none."""

    def __init__(self, spec: Json) -> None:
        self.signal = None if spec is None else CancelSignal()
        self.fired = False
        self._spec = only_keys(spec or {}, {"point", "match", "nth"}, "a cancel")
        self._seen = 0
        point = self._spec.get("point")
        if spec is not None and point not in _POINTS:
            raise ValueError(f"unknown cancel point {point!r}")

    def hit(self, point: str, name: str | None = None) -> None:
        """Something happened at `point`."""
        if self._spec.get("point") != point or self.fired:
            return
        if self._spec.get("match") not in (None, name):
            return
        self._seen += 1
        if self._seen == (self._spec.get("nth") or 1):
            if point == "parked":
                asyncio.get_running_loop().call_later(PARKED_FOR, self._fire)
            else:
                self._fire()

    def _fire(self) -> None:
        assert self.signal is not None
        self.fired = True
        self.signal.abort()


class ScriptedModel:
    """Answers request n with step n; keeps what it was asked."""

    def __init__(self, steps: Json, default: Json, cancel: Cancel) -> None:
        self.requests: list[ModelRequest] = []
        self.streams: list[ScriptedStream] = []
        self._steps = steps
        self._default = default
        self._cancel = cancel

    def generate(self, request: ModelRequest) -> Awaitable[AsyncIterator[ReplyPart]]:
        """Ask for a reply; some steps throw right here."""
        index = len(self.requests)
        self.requests.append(request)
        self._cancel.hit("generate", str(index))
        step = self._steps[index] if index < len(self._steps) else self._default
        if isinstance(step, list):
            self.streams.append(ScriptedStream(step, self._cancel))
            return _given(self.streams[-1])
        only_keys(
            step,
            {"generate_error", "after_ms", "raw", "generate_throw_sync", "generate_hang"},
            "a step",
        )
        if "generate_throw_sync" in step:
            raise Thrown("LlmError", step["generate_throw_sync"])
        if "generate_hang" in step:
            return self._hang()
        return self._refuse(step["generate_error"], step.get("after_ms") or 0)

    async def _hang(self) -> AsyncIterator[ReplyPart]:
        self._cancel.hit("parked")
        await asyncio.get_running_loop().create_future()
        raise AssertionError("what hangs never comes back")

    async def _refuse(self, message: str, after_ms: int) -> AsyncIterator[ReplyPart]:
        await asyncio.sleep(after_ms / 1000)
        raise Thrown("LlmError", message)


async def _given(stream: AsyncIterator[ReplyPart]) -> AsyncIterator[ReplyPart]:
    return stream


class ScriptedStream:
    """Gives the items of one step."""

    def __init__(self, items: Json, cancel: Cancel) -> None:
        self.closed = False
        self._parts = [_part(item) for item in items]
        self._at = 0
        self._cancel = cancel

    def __aiter__(self) -> ScriptedStream:
        return self

    async def __anext__(self) -> ReplyPart:
        self._cancel.hit("stream_next", str(self._at))
        if self._at >= len(self._parts):
            raise StopAsyncIteration
        part = self._parts[self._at]
        self._at += 1
        if isinstance(part, Thrown):
            raise part
        if part is None:
            self._cancel.hit("parked")
            await asyncio.get_running_loop().create_future()
        assert part is not None
        return part

    async def aclose(self) -> None:
        """Note that the stream was closed."""
        self.closed = True


class ScriptedTools:
    """Runs calls as the vector says, by call id or by name."""

    def __init__(self, scenario: Json, cancel: Cancel) -> None:
        self.dispatched: list[str] = []
        self.max_active = 0
        self._active = 0
        self._specs = scenario.get("tools") or {}
        self._schemas = scenario.get("schemas") or []
        self._throws = scenario.get("schemas_throw")
        self._cancel = cancel

    def schemas(self) -> tuple[ToolSchema, ...]:
        """The vector's schemas."""
        if self._throws is not None:
            raise Thrown("Error", self._throws)
        return tuple([ToolSchema(**schema) for schema in self._schemas])

    def dispatch(self, call: ToolCall) -> Awaitable[ToolOutput]:
        """Start a call; some tools throw right here."""
        spec = self._specs.get(call.id) or self._specs.get(call.name) or {"behaviour": "return"}
        only_keys(spec, _TOOL_KEYS, "a tool")
        self.dispatched.append(call.id)
        self._active += 1
        self.max_active = max(self.max_active, self._active)
        self._cancel.hit("tool_start", call.id)
        if spec["behaviour"] == "throw_sync":
            self._active -= 1
            raise Thrown("Error", spec.get("message", ""))
        return self._run(call, spec)

    async def _run(self, call: ToolCall, spec: Json) -> ToolOutput:
        try:
            if spec["behaviour"] == "hang":
                self._cancel.hit("parked")
                await asyncio.get_running_loop().create_future()
            await asyncio.sleep((spec.get("ms") or 0) / 1000)
            self._cancel.hit("tool_end", call.id)
            return _output(call, spec)
        finally:
            self._active -= 1


class WatchedLog(MemoryLog):
    """A log whose appends may be the cancel's point."""

    watch: Cancel | None = None

    def append(self, row: Row) -> None:
        """Write a row."""
        super().append(row)
        if self.watch is not None:
            self.watch.hit("append", str(row.__struct_config__.tag))


def _output(call: ToolCall, spec: Json) -> ToolOutput:
    decision: Decision | None = msgspec.convert(
        spec.get("decision", {"kind": "allow"}), Decision | None
    )
    call_id, render = spec.get("call_id", call.id), spec.get("render")
    match spec["behaviour"]:
        case "return":
            value: Any = spec.get("value", {"ok": True})
            return ToolOutput(call_id, value, render, None, decision)
        case "echo":
            return ToolOutput(call_id, call.args, render, None, decision)
        case "error":
            error = spec.get("message", "")
            return ToolOutput(call_id, spec.get("value"), render, error, decision)
        case "throw":
            raise Thrown("Error", spec.get("message", ""))
        case behaviour:
            raise ValueError(f"unknown tool behaviour {behaviour!r}")


def _part(item: Json) -> ReplyPart | Thrown | None:
    """A stream item: a part, an error to raise, or None for a hang."""
    match item:
        case {"kind": "text", "text": str(text)}:
            return TextDelta(text)
        case {"kind": "thinking", "text": str(text)}:
            return ThinkingDelta(text)
        case {"kind": "usage", "usage": dict(usage)}:
            return UsageReport(Usage(**usage))
        case {"kind": "done", "message": message}:
            return ReplyDone(message_from_json(message))
        case {"kind": "failed", "kindOf": "generate" | "stream" as kind, "message": str(message)}:
            return ReplyFailed(kind, message)
        case {"kind": "interrupted"}:
            return ReplyInterrupted()
        case {"kind": "throw", "message": str(message)}:
            return Thrown("Error", message)
        case {"kind": "hang"}:
            return None
        case _:
            raise ValueError(f"unknown stream item {item!r}")
