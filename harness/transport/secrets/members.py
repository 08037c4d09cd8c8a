"""The texts in JSON: the names of their members, what is around them, and where they stand."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from harness.core.json_text import Json
from harness.transport.secrets.edits import Edit, View, in_string, plain
from harness.transport.secrets.looks import looks_random
from harness.transport.secrets.names import Names
from harness.wire.reading import json_of

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"?|-?[0-9][0-9.eE+-]*+', re.DOTALL)
"""What is counted in JSON: its strings, keys among them, and its numbers."""
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]]', re.DOTALL)
_ESCAPE_CUT = re.compile(r"(?:[^\\]|\\.)*+(\\(?:u[0-9a-fA-F]{0,3})?)?", re.DOTALL)
_IN_WORDS = string.ascii_letters + string.digits + "+-."
_MARKS = frozenset(
    ("index", "output_index", "content_index", "summary_index", "choice_index", "item_id", "type")
)
"""Members that say which of several texts a piece of a stream belongs to. The first is 0, or goes
without a number; a type below the top is that of a part, of which only the first piece may tell it.
"""
_SHORT = 12
"""How long a value is at least that looks like a secret and has no certain name."""
_LONGEST_NAME = 200

Group: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""What the pieces of one text in a stream have in common: names, and members that number."""


class Leaf(NamedTuple):
    """A text in JSON, a key, or a number as text.

    `number` counts them in their order. `name` is that of the member, in a list that of the list;
    `secret` says that by its name it is one.
    """

    number: int
    text: str
    name: str
    secret: bool
    kind: Literal["text", "key", "number"]
    group: Group = ((), ())


def leaves(value: Json, names: Names) -> list[Leaf]:
    """All texts and numbers in JSON, in their order."""
    walk = _Walk(names)
    walk.take(value, "", ((), ()), _Around())
    return walk.found


class _Around(NamedTuple):
    """What is so for all in an object: it is `hidden` by its name, it is `free` of such names; it
    describes what `properties` there are.
    """

    hidden: bool = False
    free: bool = False
    properties: bool = False


class _Walk:
    """Goes through JSON once."""

    def __init__(self, names: Names) -> None:
        self.found: list[Leaf] = []
        self._names = names
        self._count = 0

    def take(self, value: Json, name: str, group: Group, around: _Around) -> None:
        """Go through a value, which a member of that name has."""
        if isinstance(value, str):
            self._leaf(value, name, self._secret(value, name, around), "text", group)
        elif isinstance(value, dict):
            self._object(value, name, group, around)
        elif isinstance(value, list):
            inside = self._inside(name, around)
            for each in value:
                self.take(each, name, group, inside)
        elif value is not None and not isinstance(value, bool):
            text = str(value)
            secret = len(text) >= 4 and self._hides_number(name, around)
            self._leaf(text, name, secret, "number")

    def _object(self, value: dict[str, Json], name: str, group: Group, around: _Around) -> None:
        inside = self._inside(name, around)
        names, marks = group
        marks += tuple(
            [
                f"{len(names)} {key} {item}"
                for key, item in value.items()
                if key in _MARKS and item != 0 and not (names and key == "type")
            ]
        )
        called = ""
        for key, item in value.items():
            self._leaf(key, "", False, "key")  # noqa: FBT003
            if key == "value" and called:
                key = called  # noqa: PLW2901 - the object says what its value is called
            elif key in ("name", "key", "header") and isinstance(item, str):
                called = item[:_LONGEST_NAME]
            name = key[:_LONGEST_NAME]
            self.take(item, name, ((*names, name), marks), inside)

    def _leaf(
        self,
        text: str,
        name: str,
        secret: bool,  # noqa: FBT001
        kind: Literal["text", "key", "number"],
        group: Group = ((), ()),
    ) -> None:
        self.found.append(Leaf(self._count, text, name, secret, kind, group))
        self._count += 1

    def _inside(self, name: str, around: _Around) -> _Around:
        free = around.free or "logprob" in name
        hidden = around.hidden or (
            not (around.properties or free) and self._names.says(name) == "always"
        )
        return _Around(hidden, free, name == "properties")

    def _secret(self, value: str, name: str, around: _Around) -> bool:
        if around.hidden or around.free:
            return around.hidden
        match self._names.says(name):
            case "always":
                return True
            case "never":
                return False
            case "as a password":
                return looks_random(value)
            case _:
                return len(value) >= _SHORT and looks_random(value)

    def _hides_number(self, name: str, around: _Around) -> bool:
        return around.hidden or (
            not around.free
            and (self._names.wary or not name.lower().endswith("token"))
            and self._names.says(name) == "always"
        )


def lifted(text: str, edits: Iterable[tuple[int, Sequence[Edit]]]) -> list[Edit]:
    """Edits of leaves, each with the leaf's number, as edits of the JSON that they stand in."""
    tokens = list(_TOKEN.finditer(text))
    return [edit for number, inner in edits for edit in _view(tokens[number]).lift(inner)]


def _view(token: re.Match[str]) -> View:
    if token[1] is None:
        return plain(token.string, *token.span())
    return in_string(token.string, *token.span(1))


def parsed(text: str) -> tuple[Json, bool]:
    """The value of JSON, and whether it is whole, as its end may be missing; ValueError where it is
    no JSON.

    >>> parsed('{"a": [1, "b'), parsed('{"a": tr')
    (({'a': [1, 'b']}, False), ({'a': None}, False))
    """
    text = text.lstrip("\ufeff")
    try:
        return json_of(text), True
    except ValueError:
        pass
    closing, open_string = _closing(text)
    if not closing:
        raise ValueError("no JSON whose end is missing")
    if open_string is not None:
        cut = _ESCAPE_CUT.fullmatch(text, open_string + 1)
        bare = text if cut is None or cut[1] is None else text[: cut.start(1)]
        tries = [bare + '"', bare + '":null']
    else:
        bare = text.rstrip(_IN_WORDS)
        tries = [text, text + ":null", bare + "null", bare + '"":null']
    for each in tries:
        try:
            return json_of(each + closing), False
        except ValueError:
            continue
    raise ValueError("no JSON whose end is missing")


def _closing(text: str) -> tuple[str, int | None]:
    """The brackets that are missing at the end, and where a string begins that does not end."""
    missing: list[str] = []
    for found in _STRUCTURE.finditer(text):
        mark = found[0][0]
        if mark == '"':
            if not found[1]:
                return "".join(reversed(missing)), found.start()
        elif mark in "{[":
            missing.append("}" if mark == "{" else "]")
        elif missing:
            missing.pop()
    return "".join(reversed(missing)), None
