"""The texts in JSON, each with its place, the name of its member, and what is around it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.transport.secrets.edits import View, plain, string
from harness.transport.secrets.names import Names, looks_secret

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"?|([{}\[\],:])|[^\s{}\[\],:"]++', re.DOTALL)
_MARKS = frozenset(
    ("index", "output_index", "content_index", "summary_index", "choice_index", "item_id", "type")
)
"""Members that say which of several texts a piece of a stream belongs to."""
_NUMBER = re.compile(r"-?[0-9][0-9.eE+-]{3,}")
_SHORT = 12
"""How long a value is at least that looks like a secret and has no certain name."""
_LONGEST_NAME = 200


class Around:
    """An object or a list of JSON, with what it stands in.

    `name` is that of its member, `hidden` says that all in it is secret, `free` that nothing is by
    its name alone. `called` is what the object says that its value is called.
    """

    __slots__ = ("called", "free", "hidden", "inside", "is_object", "key", "marks", "name")

    def __init__(self, inside: Around | None, name: str, *, is_object: bool, hidden: bool) -> None:
        self.inside = inside
        self.name = name
        self.is_object = is_object
        self.hidden = hidden
        self.free: bool = "logprob" in name or (inside is not None and inside.free)
        self.key: str | None = None
        self.called = ""
        self.marks: list[tuple[str, str]] = []

    def path(self) -> tuple[object, ...]:
        """What tells the texts of one stream from each other: names, and members that number."""
        found: list[object] = []
        at: Around | None = self
        while at is not None:
            found.append((at.name, tuple(at.marks)))
            at = at.inside
        return tuple(found)


class Leaf:
    """A text in JSON, or a number, with the name of its member; that of an item of a list is the
    list's. `secret` says that it is one by its name.
    """

    __slots__ = ("around", "is_key", "is_text", "name", "secret", "view")

    def __init__(
        self,
        view: View,
        around: Around | None,
        name: str,
        *,
        secret: bool = False,
        is_text: bool = True,
        is_key: bool = False,
    ) -> None:
        self.view = view
        self.around = around
        self.name = name
        self.secret = secret
        self.is_text = is_text
        self.is_key = is_key

    def group(self) -> tuple[object, ...]:
        """What the pieces of one text have in common."""
        return (self.name, *(() if self.around is None else self.around.path()))


def leaves(text: str, names: Names) -> Iterator[Leaf]:
    """The texts in JSON, also where its end is missing or several values follow each other."""
    around: Around | None = None
    for found in _TOKEN.finditer(text):
        kind = found.lastindex
        if kind == 2:
            around = _step(found[0], around, names)
        elif kind == 1 and around is not None and around.is_object and around.key is None:
            view = string(text, *found.span(1))
            around.key = view.text[:_LONGEST_NAME]
            yield Leaf(view, around, "", is_key=True)
        elif kind == 1:
            view = string(text, *found.span(1))
            name = _name(around)
            yield Leaf(view, around, name, secret=_is_secret(view.text, around, name, names))
            if around is not None:
                _note(around, view.text)
        else:
            name = _name(around)
            if around is not None and around.key in _MARKS:
                around.marks.append((around.key, found[0]))
            if _NUMBER.fullmatch(found[0]) is not None:
                secret = _hides_number(around, name, names)
                yield Leaf(plain(text, *found.span()), around, name, secret=secret, is_text=False)


def _step(mark: str, around: Around | None, names: Names) -> Around | None:
    """What is around behind a bracket, a comma or a colon."""
    if mark in "{[":
        name = _name(around)
        schema = around is not None and around.name == "properties"
        hidden = around is not None and (
            around.hidden or (not schema and _says_always(around, name, names))
        )
        return Around(around, name, is_object=mark == "{", hidden=hidden)
    if around is None:
        return None
    if mark == ",":
        around.key = None
    elif mark in "}]":
        return around.inside
    return around


def _name(around: Around | None) -> str:
    if around is None:
        return ""
    return around.name if around.key is None else around.key


def _note(around: Around, value: str) -> None:
    """Keep what an object says of its other members."""
    key = around.key
    if key in _MARKS:
        around.marks.append((key, value))
    elif key in ("name", "key", "header"):
        around.called = value


def _says_always(around: Around, name: str, names: Names) -> bool:
    return not around.free and names.says(name) == "always"


def _is_secret(value: str, around: Around | None, name: str, names: Names) -> bool:
    if around is None:
        return False
    if around.hidden:
        return True
    if name == "value" and around.called:
        name = around.called[:_LONGEST_NAME]
    said = names.says(name)
    if said == "never" or around.free:
        return False
    return said == "always" or (len(value) >= _SHORT and looks_secret(value))


def _hides_number(around: Around | None, name: str, names: Names) -> bool:
    if around is None:
        return False
    return around.hidden or (
        not name.lower().endswith("token") and _says_always(around, name, names)
    )
