"""How a file spells a scenario: its top-level keys, and the JSON Schema of the whole."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.json_text import Json
from harness.fakes.script import Also, AlsoWhen
from harness.loops.kind import LoopKind
from harness.runner.files.fields import Fields, Found, Key
from harness.runner.files.script_format import REPLIES
from harness.runner.files.shapes import (
    AnyJson,
    Attempt,
    Duration,
    Flag,
    ListOf,
    OneOf,
    Text,
    hoisted,
    is_duration,
)
from harness.runner.files.tool_format import TOOLS
from harness.runner.files.turn_format import TURN
from harness.runner.files.verdict_format import ALLOW, BUDGET


def _when(found: Found) -> AlsoWhen:
    if not found.values:
        raise found.refused(None, "when: names no condition, such as {system_contains: Summarize}")
    return AlsoWhen(**found.values)


_WHEN = Fields(
    "a condition",
    [
        Key("system_contains", Text(empty=False), "A text that the system prompt holds."),
        Key("message_contains", Text(empty=False), "A text that the last message holds."),
        Key("user_contains", Text(empty=False), "A text that a message of the user holds."),
        Key("model", Text(empty=False), "The model that is asked."),
    ],
    _when,
    example="{system_contains: Summarize}",
    extra={"minProperties": 1},
)

_ALSO = Fields(
    "an entry of `also`",
    [
        Key("name", Text(empty=False), "What messages and traces call it.", required=True),
        Key("when", _WHEN, "Which requests it answers; all that is said must hold.", required=True),
        Key("model", REPLIES, "The replies, in order.", required=True),
    ],
    lambda found: Also(found.get("name"), found.get("when"), found.get("model")),
    example="{name: title, when: {system_contains: title}, model: [{say: Weather}]}",
    define="also",
)

SCENARIO: Fields[Found] = Fields(
    "a scenario",
    [
        Key("about", Text(empty=False), "What it protects against, in a sentence.", required=True),
        Key(
            "loops",
            ListOf(Text(empty=False), example="turn", least=1, most=100),
            "The reference loops that it is for.",
        ),
        Key(
            "config",
            AnyJson(mapping=True, example="{max_steps: 3}"),
            "The loops' settings; those of one loop stand under its name.",
        ),
        Key("tools", TOOLS, "The tools, by name, and what they do."),
        Key(
            "turns",
            ListOf(
                Attempt(TURN), example="{user: Hello, model: [{say: Hi.}]}", least=1, name="turn"
            ),
            "What is said, turn by turn.",
            required=True,
        ),
        Key(
            "also",
            ListOf(_ALSO, example="{name: title, when: {…}, model: […]}", most=1_000),
            "Replies for requests outside the main conversation: titles, summaries, sub-agents.",
        ),
        Key("budget", BUDGET, "What the agent may spend, beside what a loop's settings say."),
        Key("allow", ALLOW, "Findings that are known and accepted."),
        Key(
            "order",
            OneOf(("place", "calls")),
            "Whether a reply is found by what the request shows (place), or replies are given "
            "in plain order (calls).",
        ),
        Key(
            "strict",
            Flag(),
            "Whether the fake provider refuses a history that a real one would refuse; it does "
            "where this is left out.",
        ),
    ],
    lambda found: found,
    example="{about: …, turns: […]}",
    whole=False,
)


def scenario_schema(loops: Sequence[LoopKind]) -> dict[str, Json]:
    """The JSON Schema of scenario files, for the settings of these loops."""
    definitions: dict[str, Json] = {}
    schema: dict[str, Json] = hoisted(SCENARIO.schema(), definitions)
    schema["properties"]["config"] = hoisted(_config_schema(loops), definitions)
    if loops:
        schema["properties"]["loops"]["items"] = {"enum": [kind.name for kind in loops]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario",
        "description": "What is said to an agent, what its model and tools do, what must come out.",
        **schema,
        "$defs": dict(sorted(definitions.items())),
    }


def _config_schema(loops: Sequence[LoopKind]) -> dict[str, Json]:
    shared: dict[str, Json] = {}
    own: dict[str, Json] = {}
    for kind in loops:
        settings = {name: _setting_schema(value) for name, value in kind.settings.items()}
        shared.update(settings)
        own[kind.name] = {
            "type": "object",
            "properties": settings,
            "additionalProperties": False,
            "description": f"Settings of the loop {kind.name} only.",
        }
    return {
        "type": "object",
        "properties": {**shared, **own},
        "additionalProperties": not loops,
        "description": "The loops' settings; those of one loop stand under its name.",
    }


def _setting_schema(default: Json) -> dict[str, Json]:
    if is_duration(default):
        return {**Duration().schema(), "default": default}
    match default:
        case bool():
            kind = "boolean"
        case int():
            kind = "integer"
        case float():
            kind = "number"
        case str():
            kind = "string"
        case list() | tuple():
            kind = "array"
        case dict():
            kind = "object"
        case _:
            return {"default": default}
    return {"type": kind, "default": default}
