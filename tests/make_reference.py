"""Writes the pages of docs/reference that are generated: `python -m tests.make_reference`.

A test holds the pages in the repository against what this gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.core import json_text
from harness.runner.files.load import schema
from tests.make_command_page import command_line

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

HEAD = """\
# The schema of scenario files

Generated from `harness schema`, which prints the same as a JSON Schema for editors. What the keys
mean together, with examples, is in [scenario files, key by key](scenarios.md).

An asterisk marks a key that is required.
"""
FAULT = """\
A fault is its name alone, or `{name: value}` where it has a value. Which of them act at which
[level](../how-to/levels.md) is said in [scenario files](scenarios.md#replies).
"""
SETTINGS = """\
The settings of the loops that a scenario is for. One that stands under the name of a loop
(`config: {turn: {max_steps: 3}}`) is that loop's alone.
"""
EXTENDS = {"tool": "behaviour", "case": "behaviour", "expect": "expect_under"}
"""Parts of the schema that have all keys of another, and more."""


def scenario_schema() -> str:
    """The page of the scenario schema: a table of keys for each of its parts."""
    whole = schema()
    parts: dict[str, Any] = whole["$defs"]
    pieces = [HEAD, "## scenario\n", _table(whole["properties"], whole)]
    for name, part in parts.items():
        pieces += [f"## {name}\n", *_part(name, part, parts)]
    pieces += ["## fault\n", FAULT, _faults(parts["reply"]["properties"]["fault"]["oneOf"])]
    pieces += ["## config\n", SETTINGS]
    for loop, config in whole["properties"]["config"]["properties"].items():
        if "properties" in config:
            pieces += [f"### {loop}\n", _settings(config["properties"])]
    return "\n".join(pieces)


def _part(name: str, part: dict[str, Any], parts: dict[str, Any]) -> Iterator[str]:
    keys = part.get("properties")
    if keys is None:
        yield f"A {_value(part)}. {_cell(part)}\n"
    elif name in EXTENDS:
        base = EXTENDS[name]
        theirs = parts[base]["properties"]
        assert theirs.keys() < keys.keys()
        yield f"All keys of [{base}](#{base}), and:\n"
        yield _table({key: each for key, each in keys.items() if key not in theirs}, part)
    else:
        yield _table(keys, part)


def _table(keys: dict[str, Any], part: dict[str, Any]) -> str:
    required = part.get("required", ())
    rows = [
        f"| `{key}`{'*' if key in required else ''} | {_linked(key, each)} | {_cell(each)} |"
        for key, each in keys.items()
    ]
    return "\n".join(["| key | value | |", "|---|---|---|", *rows, ""])


def _faults(kinds: list[dict[str, Any]]) -> str:
    valued = {key: each for kind in kinds for key, each in kind.get("properties", {}).items()}
    rows = []
    for name in kinds[0]["enum"]:
        forms = valued.get(name, {})
        forms = forms.get("oneOf", [forms])
        plain = " or ".join(_value(form) for form in forms if form and "properties" not in form)
        keys = [
            f"`{key}`: {_cell(each)}"
            for form in forms
            for key, each in form.get("properties", {}).items()
        ]
        rows.append(f"| `{name}` | {plain} | {' '.join(keys)} |")
    return "\n".join(["| fault | value | or a mapping of |", "|---|---|---|", *rows, ""])


def _settings(settings: dict[str, Any]) -> str:
    rows = [
        f"| `{key}` | {_value(each)} | `{json_text.dumps(each['default'])}` |"
        for key, each in settings.items()
    ]
    return "\n".join(["| setting | value | where left out |", "|---|---|---|", *rows, ""])


def _linked(key: str, part: dict[str, Any]) -> str:
    """The value of a key; what has a section of its own is only named."""
    match key:
        case "config" | "fault":
            return f"[{key}](#{key})"
        case "invariant":
            return "the id of [what is judged](invariants.md)"
    return _value(part)


def _cell(part: dict[str, Any]) -> str:
    return str(part.get("description", "")).replace("|", "\\|")


def _value(part: dict[str, Any]) -> str:
    """What stands for a key, in a few words."""
    match part:
        case {"$ref": str(link)}:
            name = link.rpartition("/")[2]
            return f"[{name}](#{name})"
        case {"const": value}:
            return f"`{json_text.dumps(value)}`"
        case {"enum": values}:
            return ", ".join(f"`{each}`" for each in values)
        case {"oneOf": kinds}:
            return " or ".join(dict.fromkeys(map(_value, kinds)))
        case {"type": "array", "items": items}:
            return f"a list of: {_value(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"names, each with: {_value(values)}"
        case {"type": "object", "properties": dict(inside)}:
            return "a mapping of: " + ", ".join(f"`{key}`" for key in inside)
        case {"type": list(types)}:
            return " or ".join(map(str, types))
        case {"type": str(kind), "examples": examples}:
            return f"{kind}, as {', '.join(f'`{each}`' for each in examples)}"
        case {"type": str(kind)}:
            return {"object": "a mapping", "array": "a list"}.get(kind, kind)
    return "any value"


GENERATED = {"command-line.md": command_line, "scenario-schema.md": scenario_schema}
"""Each generated page, and what makes it."""

if __name__ == "__main__":
    for name, make in GENERATED.items():
        (REFERENCE / name).write_text(make(), encoding="utf-8")
