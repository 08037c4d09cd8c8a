"""Tools as the turn loop sees them: what they are called, and one way to run a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from harness.core.json_text import Json
from harness.core.messages import ToolCall, ToolSchema
from harness.core.ports import ToolFailed


class Allow(Struct, frozen=True, tag_field="kind", tag="allow"):
    """The call may run."""


class Deny(Struct, frozen=True, tag_field="kind", tag="deny"):
    """The call may not run."""

    reason: str = ""


class Ask(Struct, frozen=True, tag_field="kind", tag="ask"):
    """The call may run only if somebody is asked first."""

    reason: str = ""


Decision: TypeAlias = Allow | Deny | Ask

ALLOW = Allow()


class ToolOutput(Struct, frozen=True):
    """What a call came to.

    `error` is None where it succeeded; `render` is for people and never reaches log or model;
    `decision` is None where nobody decided.
    """

    call_id: str
    value: Json = None
    render: str | None = None
    error: str | None = None
    decision: Decision | None = None


class Dispatcher(Protocol):
    """What the loop needs of its tools."""

    def schemas(self) -> Sequence[ToolSchema]:
        """What to tell the model about the tools."""
        ...

    def dispatch(self, call: ToolCall) -> Awaitable[ToolOutput]:
        """Run a call; should turn failures into outputs, but what it raises is contained."""
        ...


Tool: TypeAlias = Callable[[ToolCall], Awaitable[Json]]
"""Runs a call and gives its value; raises `ToolFailed` where the tool answers with an error."""

Guard: TypeAlias = Callable[[ToolCall], Decision]
"""Decides whether a call may run."""


class ToolRegistry:
    """Tools by name, behind guards; the first guard that does not allow a call decides it."""

    def __init__(self, guards: Iterable[Guard] = ()) -> None:
        self._guards = tuple(guards)
        self._tools: dict[str, tuple[ToolSchema, Tool]] = {}

    def register(self, schema: ToolSchema, tool: Tool) -> None:
        """Offer `tool` under its schema's name; a later one of that name takes its place."""
        self._tools[schema.name] = (schema, tool)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """What to tell a model about the tools, sorted by name."""
        return tuple([self._tools[name][0] for name in sorted(self._tools)])

    async def dispatch(self, call: ToolCall) -> ToolOutput:
        """Run `call` if it is known and allowed; an error of the tool is an output."""
        if call.name not in self._tools:
            error = f"unknown tool: {call.name}"
            return ToolOutput(call.id, error=error, decision=Deny(error))
        decision = self._decide(call)
        match decision:
            case Deny(reason=reason):
                return ToolOutput(call.id, error=f"denied: {reason}", decision=decision)
            case Ask(reason=reason):
                return ToolOutput(call.id, error=f"ask: {reason}", decision=decision)
            case Allow():
                _, tool = self._tools[call.name]
        try:
            return ToolOutput(call.id, await tool(call), decision=decision)
        except ToolFailed as failure:
            return ToolOutput(call.id, error=str(failure), decision=decision)

    def _decide(self, call: ToolCall) -> Decision:
        decisions = (guard(call) for guard in self._guards)
        return next((found for found in decisions if not isinstance(found, Allow)), ALLOW)
