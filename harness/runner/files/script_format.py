"""How a scenario spells what the model says: replies and calls."""

from __future__ import annotations

from typing import get_args

from harness.core.json_text import Json, loads
from harness.core.located import MapNode, Node, Problems, Scalar, describe, quoted
from harness.core.messages import Usage
from harness.core.wording import counted
from harness.fakes.script import Reply, ScriptedCall, Stop
from harness.runner.files.fault_format import FAULT
from harness.runner.files.fields import Fields, Found, Key
from harness.runner.files.reach import too_far
from harness.runner.files.shapes import (
    AnyJson,
    Count,
    Duration,
    Flag,
    ListOf,
    OneOf,
    Shape,
    Text,
    refused,
)


def _long_call(found: Found) -> ScriptedCall:
    raw = found.get("raw")
    if raw is None:
        return ScriptedCall(found.get("tool"), found.get("args", {}), None, found.get("id"))
    found.at_most_one(("args", "raw"))
    try:
        loads(raw)
    except ValueError:
        return ScriptedCall(found.get("tool"), None, raw, found.get("id"))
    raise found.refused(
        "raw", f"raw: {quoted(raw)} is JSON; write args instead, raw is for what is not"
    )


CALL_KEYS = ("tool", "args", "raw", "id", "undeclared")

_LONG_CALL = Fields(
    "a call",
    [
        Key("tool", Text(empty=False), "The tool's name.", required=True),
        Key("args", AnyJson(), "The arguments, any value; an empty mapping where left out."),
        Key("raw", Text(), "What the model writes in place of arguments, where it is not JSON."),
        Key("id", Text(), "The call's id, where the ordinary call_<turn>_<step>_<i> will not do."),
        Key(
            "undeclared",
            Flag(only=True),
            "The tool is none of the scenario's on purpose, to see what the loop answers.",
        ),
    ],
    _long_call,
    example="{tool: clock, args: {zone: UTC}}",
    define="call",
    extra={"not": {"required": ["args", "raw"]}},
)


class Call:
    """A call: `clock`, `{clock: {zone: UTC}}`, or the long form with the key `tool`."""

    def read(self, node: Node, name: str, problems: Problems) -> ScriptedCall:
        """The call."""
        match node:
            case Scalar(value=str(tool)) if tool:
                return ScriptedCall(tool)
            case MapNode(entries=entries) if entries:
                if "tool" in entries:
                    return _LONG_CALL.read(node, name, problems)
                return self._short(node, problems)
            case _:
                raise refused(
                    problems,
                    node,
                    f"{name}: expected a tool's name, or its name with arguments such as "
                    f"{{clock: {{zone: UTC}}}}; found {describe(node)}",
                )

    def _short(self, node: MapNode, problems: Problems) -> ScriptedCall:
        entries = list(node.entries.values())
        if any(entry.key in CALL_KEYS for entry in entries):
            keys = ", ".join(quoted(entry.key) for entry in entries[:5])
            raise refused(
                problems, node, f"a call in its long form needs the key 'tool'; found {keys}"
            )
        if len(entries) > 1:
            raise refused(
                problems,
                entries[1],
                "one entry of `calls` holds two calls; write "
                f"[{{{entries[0].key}: …}}, {{{entries[1].key}: …}}]",
            )
        tool, value = entries[0].key, entries[0].value
        match value:
            case MapNode():
                args: Json = AnyJson().read(value, tool, problems)
                return ScriptedCall(tool, args)
            case Scalar(value=None):
                return ScriptedCall(tool)
            case _:
                raise refused(
                    problems,
                    value,
                    f"the arguments of {tool} are not a mapping but {describe(value)}; write "
                    f"{{{tool}: {{name: value}}}}, or {{tool: {tool}, args: …}} to mean it",
                )

    def schema(self) -> dict[str, Json]:
        """One of the three spellings."""
        return {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "propertyNames": {"not": {"enum": ["tool"]}},
                    "additionalProperties": {"type": ["object", "null"]},
                    "description": "A tool's name with its arguments.",
                },
                _LONG_CALL.schema(),
            ]
        }


def _usage(found: Found) -> Usage:
    if not found.values:
        raise found.refused(None, "usage: names no count; write one, such as {prompt_tokens: 10}")
    return Usage(**found.values)


USAGE = Fields(
    "usage",
    [
        Key("prompt_tokens", Count(), "Tokens of the request."),
        Key("completion_tokens", Count(), "Tokens of the reply."),
        Key("total_tokens", Count(), "Both, as the provider adds them up."),
        Key("cache_read", Count(), "Tokens of the request that came from a cache."),
        Key("reasoning_tokens", Count(), "Tokens of the reply that were reasoning."),
    ],
    _usage,
    example="{prompt_tokens: 10, completion_tokens: 2}",
    extra={"minProperties": 1},
)


class _Times:
    """How often a fault happens: a number, or `always`, which reads as None."""

    def read(self, node: Node, name: str, problems: Problems) -> int | None:
        """The number."""
        match node:
            case Scalar(value="always"):
                return None
            case Scalar(value=str()):
                raise refused(
                    problems,
                    node,
                    f"{name}: expected a whole number or always, found {describe(node)}",
                )
            case _:
                return _TIMES.read(node, name, problems)

    def schema(self) -> dict[str, Json]:
        """A number or the word."""
        return {"oneOf": [{"const": "always"}, _TIMES.schema()]}


_TIMES = Count(1, 1_000_000)

SAYS = ("say", "think", "calls", "usage", "fault", "refusal")
"""The keys of a reply of which it has at least one."""


def _reply(found: Found) -> Reply:
    if not any(found.has(key) for key in SAYS):
        raise found.refused(
            None, f'an empty reply; give it one of {", ".join(SAYS)}, or write say: "" for silence'
        )
    if found.has("signature") and not found.has("think"):
        raise found.refused("signature", "signature: belongs to thinking; add think, or remove it")
    if found.has("fault_times") and not found.has("fault"):
        raise found.refused("fault_times", "fault_times: there is no fault; add one, or remove it")
    if found.get("stop") == "calls" and not found.has("calls"):
        raise found.refused("stop", "stop: the reply has no calls; add them, or write stop: end")
    if found.has("refusal") and found.get("stop") not in (None, "refused"):
        raise found.refused(
            "stop", "stop: a reply with a refusal stops as refused; remove stop or the refusal"
        )
    reply = Reply(**found.values)
    most = too_far(reply)
    if most is not None:
        raise found.refused(
            "fault",
            "fault: comes too late to happen; the reply has at most "
            f"{counted(most, 'part')} before it",
        )
    return reply


REPLY = Fields(
    "a reply",
    [
        Key("say", Text(), "The text that the model answers."),
        Key("think", Text(), "Its reasoning, which comes before the text."),
        Key("signature", Text(), "The opaque signature of its reasoning."),
        Key(
            "calls",
            ListOf(Call(), example="{clock: {zone: UTC}}", least=1, most=1_000),
            "The tools that it calls, in order.",
        ),
        Key("usage", USAGE, "The token counts that the provider reports."),
        Key("chunk", Count(1, 1_000_000), "Characters in a delta; 16 where left out."),
        Key("takes", Duration(), "How long it takes until the first part."),
        Key("each", Duration(), "How long each later part takes."),
        Key(
            "stop",
            OneOf(get_args(Stop)),
            "Why the model stopped; by its calls and its refusal where left out.",
        ),
        Key("refusal", Text(), "What it says where it will not answer."),
        Key("fault", FAULT, "What goes wrong with this reply."),
        Key(
            "fault_times",
            _Times(),
            "How often it goes wrong before the reply comes whole: a number, or always; once "
            "where left out.",
        ),
        Key("optional", Flag(), "Whether it is all right if nobody asks for this reply."),
    ],
    _reply,
    example="{say: Sunny.}",
    define="reply",
    extra={"anyOf": [{"required": [key]} for key in SAYS]},
)

REPLIES: Shape[tuple[Reply, ...]] = ListOf(REPLY, example="{say: Sunny.}", least=1)
