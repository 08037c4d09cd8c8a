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
    LIMITS,
    Entry,
    Limits,
    ListNode,
    MapNode,
    Node,
    Problems,
    Scalar,
    Spot,
    quoted,
)
from harness.core.reading import LARGEST, TOO_LARGE, Tally, Unreadable, at, attempt, not_closed

_SPACE = re.compile(r"[ \t\n\r]*")


def read(data: str | bytes, problems: Problems, limits: Limits = LIMITS) -> Node | None:
    """The value of a JSON text; None, and a problem, where it is not JSON.

    An empty text is null, as in a YAML file.
    """
    return attempt(lambda text, tally: _Reader(text, tally).document(), data, problems, limits)


class _Reader:
    """Goes through a text once; the standard library reads the scalars."""

    def __init__(self, text: str, tally: Tally) -> None:
        self._text = text
        self._at = 0
        self._tally = tally
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._decoder = json.JSONDecoder(parse_constant=_no_constant)

    def document(self) -> Node:
        if not self._peek():
            return Scalar(None, 1, 1)
        node = self._node(1)
        if self._peek():
            raise self._stop("the value ends here; remove what follows")
        return node

    def _node(self, depth: int) -> Node:
        char = self._peek()
        place = self._place()
        self._tally.count(place, depth)
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
            self._tally.put(entries, key, place, self._node(depth + 1))
            if not self._another("}", opened):
                return entries

    def _another(self, closing: str, opened: Spot) -> bool:
        char = self._peek()
        if char not in (",", closing):
            raise self._stop(not_closed("[" if closing == "]" else "{", at(opened)))
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
            self._tally.problems.add(place, TOO_LARGE)
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

    def _stop(self, message: str) -> Unreadable:
        return self._tally.stop(self._place(), message)


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not finite; write null or a number")
