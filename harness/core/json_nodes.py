"""JSON text in, each value with its place: for files that a person writes.

The same values as `json_text.loads` gives, and the same refusals, but all duplicate keys at once
and every value with its line and column.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right

from harness.core.json_text import Json
from harness.core.located import (
    LARGEST,
    LIMITS,
    Entry,
    Limits,
    ListNode,
    MapNode,
    Node,
    Problems,
    Scalar,
    Spot,
    decoded,
    quoted,
)

_SPACE = re.compile(r"[ \t\n\r]*")


class _Unreadable(Exception):
    """Reading cannot go on; the problem is noted."""


def read(data: str | bytes, problems: Problems, limits: Limits = LIMITS) -> Node | None:
    """The value of a JSON text; None, and a problem, where it is not JSON.

    An empty text is null, as in a YAML file.
    """
    text = decoded(data, problems, limits)
    if text is None:
        return None
    if not text.strip(" \t\r\n"):
        return Scalar(None, 1, 1)
    try:
        return _Reader(text, problems, limits).document()
    except _Unreadable:
        return None


class _Reader:
    """Goes through a text once; the standard library reads the scalars."""

    def __init__(self, text: str, problems: Problems, limits: Limits) -> None:
        self._text = text
        self._at = 0
        self._problems = problems
        self._limits = limits
        self._values = 0
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._decoder = json.JSONDecoder(parse_constant=_no_constant)

    def document(self) -> Node:
        node = self._node(1)
        if self._peek():
            raise self._stop("the value ends here; remove what follows")
        return node

    def _node(self, depth: int) -> Node:
        char = self._peek()
        place = self._place()
        self._values += 1
        if self._values > self._limits.values:
            raise self._stop(f"more than {self._limits.values} values")
        if depth > self._limits.depth:
            raise self._stop(f"nested more than {self._limits.depth} deep")
        if char == "{":
            return MapNode(self._entries(depth), place.line, place.column)
        if char == "[":
            return ListNode(self._items(depth), place.line, place.column)
        return Scalar(self._scalar(), place.line, place.column)

    def _items(self, depth: int) -> tuple[Node, ...]:
        opened = self._place()
        self._at += 1
        items: list[Node] = []
        if self._peek() == "]":
            self._at += 1
            return ()
        while True:
            items.append(self._node(depth + 1))
            if not self._another("]", opened):
                return tuple(items)

    def _entries(self, depth: int) -> dict[str, Entry]:
        opened = self._place()
        self._at += 1
        entries: dict[str, Entry] = {}
        if self._peek() == "}":
            self._at += 1
            return entries
        while True:
            if self._peek() != '"':
                raise self._stop('a key must be text in double quotes, such as "about"')
            place = self._place()
            key = self._scalar()
            assert isinstance(key, str)
            if self._peek() != ":":
                raise self._stop(f"a ':' must follow the key {quoted(key)}")
            self._at += 1
            value = self._node(depth + 1)
            if key in entries:
                self._problems.add(
                    place,
                    f"the key {quoted(key)} stands here twice, first in line "
                    f"{entries[key].line}; keep one",
                )
            else:
                entries[key] = Entry(key, value, place.line, place.column)
            if not self._another("}", opened):
                return entries

    def _another(self, closing: str, opened: Spot) -> bool:
        char = self._peek()
        if char not in (",", closing):
            bracket = "[" if closing == "]" else "{"
            raise self._stop(
                f"the {bracket} at line {opened.line}, column {opened.column} is not closed, "
                "or a comma is missing"
            )
        self._at += 1
        if char == "," and self._peek() == closing:
            raise self._stop("no comma before a closing bracket; remove it")
        return char == ","

    def _scalar(self) -> bool | int | float | str | None:
        place = self._place()
        try:
            value, self._at = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = min(error.pos, len(self._text))
            raise self._stop(
                f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
                if self._text[self._at : self._at + 1]
                else "not JSON: the text ends too early"
            ) from None
        except ValueError as error:  # NaN, Infinity, or a number of thousands of digits
            raise self._stop(f"not a number for JSON: {error}") from None
        if (isinstance(value, float) and not math.isfinite(value)) or (
            isinstance(value, int) and abs(value) >= LARGEST
        ):
            self._problems.add(place, "the number is too large; put it in quotes as text")
            return 0
        result: bool | int | float | str | None = value
        return result

    def _peek(self) -> str:
        found = _SPACE.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._text[self._at : self._at + 1]

    def _place(self) -> Spot:
        line = bisect_right(self._lines, self._at)
        return Spot(line, self._at - self._lines[line - 1] + 1)

    def _stop(self, message: str) -> _Unreadable:
        self._problems.add(self._place(), message)
        return _Unreadable()


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not finite; write null or a number")
