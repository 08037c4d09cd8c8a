"""The tools of a session, and what the model is told of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct, field

from harness.core.json_text import Json


def _no_arguments() -> Json:
    return {"type": "object", "properties": {}}


class Stamp(Struct, frozen=True):
    """When a run began: how many cancels and how many runs its session had seen."""

    cancels: int
    runs: int


class Running(Struct):
    """A call while its tool runs: the run that it belongs to, and a diff that the tool may note."""

    call_id: str
    stamp: Stamp
    diff: str | None = None


RunTool: TypeAlias = Callable[[dict[str, Json], Running], Any]
"""Runs a tool with its arguments; may return a `PendingToolResult`, and raises where it fails."""


class Tool(Struct, frozen=True):
    """A tool; `parameters` is a JSON Schema, an `interactive` one asks the user something."""

    name: str
    run: RunTool
    description: str = ""
    parameters: Json = field(default_factory=_no_arguments)
    interactive: bool = False

    def spec(self) -> Json:
        """What the model is told."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }

    def missing(self, arguments: dict[str, Json]) -> list[str]:
        """The required arguments that are not there, in the schema's order; null is there."""
        return [name for name in self.parameters.get("required", ()) if name not in arguments]


class Registry:
    """Tools by name, in the order in which they were registered."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def register(self, tool: Tool) -> None:
        """Add a tool, or replace the one of its name."""
        self._tools[tool.name] = tool

    def unregister(self, name: str) -> None:
        """Take a tool away, if it is there."""
        self._tools.pop(name, None)

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def specs(self, without: frozenset[str] = frozenset()) -> list[Json]:
        """What the model is told of all tools, but those in `without`."""
        return [tool.spec() for name, tool in list(self._tools.items()) if name not in without]
