"""Mappings with known keys: the shape that most of a file is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from msgspec import Struct

from harness.core.errors import hint, nearest
from harness.core.json_text import Json
from harness.core.located import Entry, MapNode, Node, Problems, Scalar, describe, quoted
from harness.runner.files.shapes import Shape, Unreadable, defined, refused

T = TypeVar("T")


class Key(Struct, frozen=True):
    """One key of a mapping; `about` tells a person what it is for."""

    name: str
    shape: Shape[Any]
    about: str
    required: bool = False


class Found(Struct, frozen=True):
    """What was read of one mapping."""

    node: MapNode
    values: dict[str, Any]
    problems: Problems
    meant: frozenset[str]
    """The keys that are there, bad values and probable misspellings included."""

    def has(self, name: str) -> bool:
        """Whether the file has the key."""
        return name in self.values

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a key."""
        return self.values.get(name, default)

    def entry(self, name: str) -> Entry:
        """Where a key stands; it must be there."""
        return self.node.entries[name]

    def refused(self, name: str | None, message: str) -> Unreadable:
        """Note a problem with a key, or with the whole mapping; raise what this gives."""
        return refused(self.problems, self.entry(name) if name else self.node, message)

    def at_most_one(self, names: Collection[str]) -> str | None:
        """The one of `names` that is there, or None; refused where there are several."""
        given = [name for name in self.node.entries if name in names]
        if len(given) > 1:
            raise self.refused(
                given[1], f"{given[1]}: stands beside {given[0]}; only one of them can be"
            )
        return given[0] if given else None


class Fields(Generic[T]):
    """A mapping with the given keys, made into a value by `build`.

    `what` names it in messages, `example` is one as a file spells it. Where `whole` is not set,
    a key with a bad value counts as left out, so that the rest is looked at all the same.
    `extra` is added to the schema: what keys cannot say, such as that one excludes another.
    """

    def __init__(
        self,
        what: str,
        keys: Sequence[Key],
        build: Callable[[Found], T],
        *,
        example: str,
        whole: bool = True,
        define: str | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        self._what = what
        self._keys = {key.name: key for key in keys}
        self._build = build
        self._example = example
        self._whole = whole
        self._define = define
        self._extra = dict(extra or {})

    def read(self, node: Node, name: str, problems: Problems) -> T:
        """The value; all keys are looked at, also where some are bad or unknown."""
        if not isinstance(node, MapNode):
            raise refused(
                problems,
                node,
                f"{name}: expected {self._what}, such as {self._example}; found {describe(node)}",
            )
        values: dict[str, Any] = {}
        meant: set[str] = set()
        broken = False
        for entry in node.entries.values():
            key = self._keys.get(entry.key)
            if key is None:
                guess = nearest(entry.key, self._keys)
                meant.add(guess or "")
                problems.add(entry, self._unknown(entry, guess))
                broken = True
                continue
            meant.add(key.name)
            try:
                values[key.name] = key.shape.read(entry.value, key.name, problems)
            except Unreadable:
                broken = True
        for key in self._keys.values():
            if key.required and key.name not in meant:
                problems.add(node, f"{self._what} needs the key {key.name!r}: {key.about}")
                broken = True
        if broken and self._whole:
            raise Unreadable
        return self._build(Found(node, values, problems, frozenset(meant)))

    def schema(self) -> dict[str, Json]:
        """An object without other properties."""
        schema = self._object()
        return defined(self._define, schema) if self._define else schema

    def _object(self) -> dict[str, Json]:
        properties = {
            key.name: {**key.shape.schema(), "description": key.about}
            for key in self._keys.values()
        }
        required = [key.name for key in self._keys.values() if key.required]
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
            **({"required": required} if required else {}),
            **self._extra,
        }

    def _unknown(self, found: Entry, guess: str | None) -> str:
        known = ", ".join(self._keys)
        more = hint(guess)
        if guess is None and isinstance(found.value, Scalar) and found.value.value is None:
            more = " (a text with a comma needs quotes)"
        return f"{self._what} has no key {quoted(found.key)}{more}; it may have {known}"


class MapOf(Generic[T]):
    """A mapping of names to values of one shape; `what` says what has the names."""

    def __init__(self, what: str, item: Shape[T], *, example: str, most: int) -> None:
        self._what = what
        self._item = item
        self._example = example
        self._most = most

    def read(self, node: Node, name: str, problems: Problems) -> dict[str, T]:
        """The values by name; all of them are looked at, also where some are bad."""
        if not isinstance(node, MapNode):
            raise refused(
                problems,
                node,
                f"{name}: expected a mapping, such as {self._example}; found {describe(node)}",
            )
        if len(node.entries) > self._most:
            raise refused(
                problems, node, f"{name}: {len(node.entries)} are too many; at most {self._most}"
            )
        values: dict[str, T] = {}
        for entry in node.entries.values():
            if entry.key != entry.key.strip() or not entry.key:
                problems.add(entry, f"{name}: {quoted(entry.key)} is no name for {self._what}")
                continue
            with suppress(Unreadable):
                values[entry.key] = self._item.read(entry.value, entry.key, problems)
        if len(values) < len(node.entries):
            raise Unreadable
        return values

    def schema(self) -> dict[str, Json]:
        """An object with any properties of that shape."""
        return {
            "type": "object",
            "propertyNames": {"pattern": r"^\S(.*\S)?$"},
            "additionalProperties": self._item.schema(),
            "maxProperties": self._most,
        }
