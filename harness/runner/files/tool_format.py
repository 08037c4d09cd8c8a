"""How a scenario spells what its tools do."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec.structs import replace

from harness.core.json_text import Json
from harness.core.located import MapNode, Node, Problems, Scalar
from harness.fakes.tool_spec import (
    Action,
    Answers,
    Behaviour,
    CancelsItself,
    Case,
    Hangs,
    Raises,
    Returns,
    ToolSpec,
)
from harness.runner.files.fields import Fields, Found, Key, MapOf
from harness.runner.files.shapes import (
    AnyJson,
    Duration,
    Flag,
    ListOf,
    OneOf,
    Shape,
    Text,
    one_of,
    refused,
)

OnCancel: TypeAlias = tuple[Literal["honour", "cleanup", "ignore"], int]

_CLEANUP = Fields(
    "what a tool does on a cancel",
    [Key("cleanup", Duration(), "How long the tool goes on after the cancel.", required=True)],
    lambda found: int(found.get("cleanup")),
    example="{cleanup: 50ms}",
)


class _OnCancel:
    """`honour`, `ignore`, or `{cleanup: 50ms}`."""

    def read(self, node: Node, name: str, problems: Problems) -> OnCancel:
        """The way, and how long it takes."""
        match node:
            case Scalar(value="honour"):
                return "honour", 0
            case Scalar(value="ignore"):
                return "ignore", 0
            case MapNode():
                return "cleanup", _CLEANUP.read(node, name, problems)
            case _:
                words = ("honour", "ignore", "{cleanup: 50ms}")
                raise refused(problems, node, f"{name}: {one_of(node, words)}")

    def schema(self) -> dict[str, Json]:
        """One of the three."""
        return {"oneOf": [{"enum": ["honour", "ignore"]}, _CLEANUP.schema()]}


_ACTIONS = ("returns", "error", "raises", "hangs", "cancels_itself")
_ONE_ACTION = {
    "not": {
        "anyOf": [
            {"required": [first, second]}
            for index, first in enumerate(_ACTIONS)
            for second in _ACTIONS[index + 1 :]
        ]
    }
}
_BEHAVIOUR_KEYS = [
    Key("returns", AnyJson(), "The value that it gives, any at all; null where left out."),
    Key("error", Text(), "It answers with this error."),
    Key("raises", Text(), "It breaks with an exception of this text."),
    Key("hangs", Flag(only=True), "It never comes back by itself."),
    Key(
        "cancels_itself",
        Flag(only=True),
        "A cancellation comes out of it although nobody cancelled it.",
    ),
    Key("takes", Duration(), "How long it takes."),
    Key(
        "effect",
        OneOf(("end", "start", "none")),
        "When it does what cannot be undone: at the end of its time, at the start, or never.",
    ),
    Key(
        "on_cancel",
        _OnCancel(),
        "On a cancel it stops at once, after a while, or goes on as if nothing had happened.",
    ),
]
_BEHAVIOUR_NAMES = tuple(key.name for key in _BEHAVIOUR_KEYS)


def _behaviour(found: Found) -> Behaviour:
    on_cancel, cleanup = found.get("on_cancel", ("honour", 0))
    return Behaviour(
        _action(found), found.get("takes", 0), found.get("effect", "end"), on_cancel, cleanup
    )


def _action(found: Found) -> Action:
    match found.at_most_one(_ACTIONS):
        case "error":
            return Answers(found.get("error"))
        case "raises":
            return Raises(found.get("raises"))
        case "hangs":
            return Hangs()
        case "cancels_itself":
            return CancelsItself()
        case _:
            return Returns(found.get("returns"))


_BEHAVIOUR = Fields(
    "what one call does",
    _BEHAVIOUR_KEYS,
    _behaviour,
    example="{returns: sunny, takes: 2s}",
    define="behaviour",
    extra=_ONE_ACTION,
)

_CASE = Fields(
    "a case",
    [
        Key(
            "args",
            AnyJson(mapping=True, example="{city: Paris}"),
            "The arguments that a call must have, among others.",
            required=True,
        ),
        *_BEHAVIOUR_KEYS,
    ],
    lambda found: Case(found.get("args"), _behaviour(found)),
    example="{args: {city: Paris}, returns: sunny}",
    define="case",
    extra=_ONE_ACTION,
)


def _tool(found: Found) -> ToolSpec:
    if found.has("calls"):
        useless = next((key for key in found.values if key in _BEHAVIOUR_NAMES), None)
        if useless:
            raise found.refused(
                useless,
                f"{useless}: is never used, since `calls` says what every call does; "
                "put it into the entries of `calls`",
            )
    return ToolSpec(
        "",
        _behaviour(found),
        found.get("when", ()),
        found.get("calls", ()),
        found.get("description", ""),
        found.get("parameters"),
    )


_TOOL = Fields(
    "a tool",
    [
        *_BEHAVIOUR_KEYS,
        Key(
            "when",
            ListOf(_CASE, example="{args: {city: Paris}, returns: sunny}", least=1, most=1_000),
            "What it does for certain arguments; the first that fits counts.",
        ),
        Key(
            "calls",
            ListOf(_BEHAVIOUR, example="{error: busy}", least=1),
            "What it does the first time, the second time and so on; the last is repeated.",
        ),
        Key("description", Text(), "What the model is told about it."),
        Key(
            "parameters",
            AnyJson(mapping=True, example="{type: object}"),
            "The JSON Schema of its arguments.",
        ),
    ],
    _tool,
    example='{returns: "14:05", takes: 10ms}',
    define="tool",
    extra=_ONE_ACTION,
)

_BY_NAME = MapOf("a tool", _TOOL, example='{clock: {returns: "14:05"}}', most=1_000)


class _Tools:
    """All the tools, by name."""

    def read(self, node: Node, name: str, problems: Problems) -> tuple[ToolSpec, ...]:
        """The tools in the order of the file."""
        by_name = _BY_NAME.read(node, name, problems)
        return tuple([replace(spec, name=key) for key, spec in by_name.items()])

    def schema(self) -> dict[str, Json]:
        """An object, a property a tool."""
        return _BY_NAME.schema()


TOOLS: Shape[tuple[ToolSpec, ...]] = _Tools()
