"""Shapes of values in a file: each reads a node, says what is wrong with it, and knows its schema.

A format is described once, as a tree of shapes; reading it, its JSON Schema and every message
about an unknown key come from that description.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from harness.core.durations import SECOND, format_duration, parse_duration
from harness.core.errors import hint, nearest
from harness.core.json_text import Json
from harness.core.located import (
    ListNode,
    MapNode,
    Node,
    Place,
    Problems,
    Scalar,
    describe,
    plain,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LONGEST = 24 * 3600 * SECOND
MOST = 10_000


class Unreadable(Exception):
    """A node does not have its shape; the problem is noted."""


class Shape(Protocol[T_co]):
    """What may stand at a place in a file."""

    def read(self, node: Node, name: str, problems: Problems) -> T_co:
        """The value at `node`, which messages call `name`; Unreadable, and a problem noted, where
        it does not have this shape.
        """
        ...

    def schema(self) -> dict[str, Json]:
        """The JSON Schema; a part that is used in several places stands in it whole, below
        ``$ref``, with its name as ``title`` (`hoisted` gives it its place).
        """
        ...


def refused(problems: Problems, place: Place, message: str) -> Unreadable:
    """Note a problem; raise what this gives, to read no further here."""
    problems.add(place, message)
    return Unreadable()


def defined(title: str, schema: dict[str, Json]) -> dict[str, Json]:
    """A reference to a part of a schema that is used in several places."""
    return {"$ref": {"title": title, **schema}}


def hoisted(schema: Json, definitions: dict[str, Json]) -> Json:
    """The schema with each part that is used in several places moved to `definitions`."""
    if isinstance(schema, list):
        return [hoisted(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: hoisted(value, definitions) for key, value in schema.items()}
    part = result.get("$ref")
    if isinstance(part, dict):
        definitions[part["title"]] = part
        result["$ref"] = f"#/$defs/{part['title']}"
    return result


class Text:
    """A text."""

    def __init__(self, *, empty: bool = True) -> None:
        self._empty = empty

    def read(self, node: Node, name: str, problems: Problems) -> str:
        """The text; numbers and words such as true are not taken for one."""
        match node:
            case Scalar(value=str(text)):
                if text or self._empty:
                    return text
                raise refused(problems, node, f"{name}: expected a text, found an empty one")
            case Scalar(value=None):
                hint = '; write "" for the empty one' if self._empty else ""
                raise refused(problems, node, f"{name}: expected a text, found nothing{hint}")
            case Scalar():
                raise refused(
                    problems,
                    node,
                    f"{name}: expected a text, found {describe(node)}; put it in quotes",
                )
            case _:
                raise refused(problems, node, f"{name}: expected a text, found {describe(node)}")

    def schema(self) -> dict[str, Json]:
        """A string."""
        return {"type": "string"} if self._empty else {"type": "string", "minLength": 1}


class Flag:
    """True or false, or where `only` is given that one of the two."""

    def __init__(self, *, only: bool | None = None) -> None:
        self._only = only

    def read(self, node: Node, name: str, problems: Problems) -> bool:
        """The flag; `yes` and `on` are texts in YAML 1.2, and refused with a hint."""
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            if self._only in (None, node.value):
                return node.value
            wanted = "true" if self._only else "false"
            raise refused(
                problems, node, f"{name}: expected {wanted}; to say otherwise, leave it out"
            )
        wanted = {None: "true or false", True: "true", False: "false"}[self._only]
        raise refused(problems, node, f"{name}: expected {wanted}, found {describe(node)}")

    def schema(self) -> dict[str, Json]:
        """A boolean."""
        return {"type": "boolean"} if self._only is None else {"const": self._only}


class Count:
    """A whole number from `least` to `most`."""

    def __init__(self, least: int = 0, most: int = 1_000_000_000) -> None:
        self._least = least
        self._most = most

    def read(self, node: Node, name: str, problems: Problems) -> int:
        """The number."""
        if (
            isinstance(node, Scalar)
            and type(node.value) is int
            and self._least <= node.value <= self._most
        ):
            return node.value
        raise refused(
            problems,
            node,
            f"{name}: expected a whole number from {self._least} to {self._most}, "
            f"found {describe(node)}",
        )

    def schema(self) -> dict[str, Json]:
        """An integer with its bounds."""
        return {"type": "integer", "minimum": self._least, "maximum": self._most}


class Duration:
    """A span of time, with its unit, as nanoseconds."""

    def read(self, node: Node, name: str, problems: Problems) -> int:
        """The span; a bare number is refused, since nobody knows its unit."""
        match node:
            case Scalar(value=bool()):
                pass
            case Scalar(value=int() | float() as number):
                raise refused(
                    problems,
                    node,
                    f"{name}: expected a duration, found {describe(node)} without a unit; "
                    f"write {number}ms or {number}s",
                )
            case Scalar(value=str(text)) if len(text) <= 40:
                try:
                    span = parse_duration(text)
                except ValueError as error:
                    raise refused(problems, node, f"{name}: {error}") from None
                if span > LONGEST:
                    raise refused(
                        problems,
                        node,
                        f"{name}: {text} is too long; at most {format_duration(LONGEST)}",
                    )
                return span
            case _:
                pass
        raise refused(
            problems,
            node,
            f"{name}: expected a duration such as 10ms, 2s or 1m, found {describe(node)}",
        )

    def schema(self) -> dict[str, Json]:
        """A string of a number and a unit."""
        return defined(
            "duration",
            {
                "type": "string",
                "pattern": r"^\s*[0-9]+(\.[0-9]+)?(ns|us|ms|s|m)\s*$",
                "description": "A number and a unit: ns, us, ms, s or m.",
                "examples": ["10ms", "1.5s", "2m"],
            },
        )


def is_duration(value: Json) -> bool:
    """Whether a setting's default is a span of time, so that its value must be one too."""
    if not isinstance(value, str):
        return False
    try:
        parse_duration(value)
    except ValueError:
        return False
    return True


class OneOf:
    """One of a few words."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = tuple(words)

    def read(self, node: Node, name: str, problems: Problems) -> Any:
        """The word."""
        found = node.value if isinstance(node, Scalar) else None
        if isinstance(found, str) and found in self._words:
            return found
        raise refused(problems, node, f"{name}: {one_of(node, self._words)}")

    def schema(self) -> dict[str, Json]:
        """An enumeration."""
        return {"enum": list(self._words)}


def one_of(node: Node, words: Collection[str]) -> str:
    """Say which words could stand at a node, what does, and which was probably meant."""
    guess = ""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        guess = hint(nearest(node.value, words))
    return f"expected one of {', '.join(words)}; found {describe(node)}{guess}"


class AnyJson:
    """Any value at all, or where `mapping` is set any mapping."""

    def __init__(self, *, mapping: bool = False, example: str = "") -> None:
        self._mapping = mapping
        self._example = example

    def read(self, node: Node, name: str, problems: Problems) -> Json:
        """The value."""
        if self._mapping and not isinstance(node, MapNode):
            raise refused(
                problems,
                node,
                f"{name}: expected a mapping, such as {self._example}; found {describe(node)}",
            )
        return plain(node)

    def schema(self) -> dict[str, Json]:
        """An object, or anything."""
        return {"type": "object"} if self._mapping else {}


class ListOf(Generic[T]):
    """A list of values of one shape; `example` is one item as a file spells it."""

    def __init__(
        self,
        item: Shape[T],
        *,
        example: str,
        least: int = 0,
        most: int = MOST,
        name: str | None = None,
    ) -> None:
        self._item = item
        self._example = example
        self._least = least
        self._most = most
        self._name = name

    def read(self, node: Node, name: str, problems: Problems) -> tuple[T, ...]:
        """The values; all of them are looked at, also where some are bad."""
        if not isinstance(node, ListNode):
            raise refused(
                problems,
                node,
                f"{name}: expected a list, such as [{self._example}]; found {describe(node)}",
            )
        count = len(node.items)
        if count < self._least:
            raise refused(
                problems,
                node,
                f"{name}: expected at least one, such as [{self._example}]; found an empty list",
            )
        if count > self._most:
            raise refused(problems, node, f"{name}: {count} are too many; at most {self._most}")
        values = []
        for item in node.items:
            with suppress(Unreadable):
                values.append(self._item.read(item, self._name or name, problems))
        if len(values) < count:
            raise Unreadable
        return tuple(values)

    def schema(self) -> dict[str, Json]:
        """An array."""
        bounds = {"minItems": self._least} if self._least else {}
        return {
            "type": "array",
            "items": self._item.schema(),
            **bounds,
            "maxItems": self._most,
        }


class Attempt(Generic[T]):
    """A shape whose failure does not spoil what holds it: it then reads as None."""

    def __init__(self, shape: Shape[T]) -> None:
        self._shape = shape

    def read(self, node: Node, name: str, problems: Problems) -> T | None:
        """The value, or None where it is bad."""
        try:
            return self._shape.read(node, name, problems)
        except Unreadable:
            return None

    def schema(self) -> dict[str, Json]:
        """The same as without."""
        return self._shape.schema()
