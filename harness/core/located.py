"""What a file holds, each value with its place, so that every complaint can point at it."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from harness.core.errors import FileError, Problem
from harness.core.json_text import Json

# Nodes make trees, so that there is nothing in them for the collector of cycles, which would go
# through all of a large file again and again: hence `gc=False`.


class Scalar(Struct, frozen=True, gc=False):
    """A text, a number, true, false or null, in some files also bytes; lines and columns count from
    1.
    """

    value: bool | int | float | str | bytes | None
    line: int
    column: int


class ListNode(Struct, frozen=True, gc=False):
    """A list."""

    items: tuple[Node, ...]
    line: int
    column: int


class MapNode(Struct, frozen=True, gc=False):
    """A mapping; its entries in the order of the file."""

    entries: dict[str, Entry]
    line: int
    column: int


class Entry(Struct, frozen=True, gc=False):
    """A key, with the place where it stands, and its value."""

    key: str
    value: Node
    line: int
    column: int


Node: TypeAlias = Scalar | ListNode | MapNode


class Limits(Struct, frozen=True):
    """How much a file may hold, so that a hostile one costs neither memory nor time."""

    characters: int = 16_000_000
    depth: int = 64
    values: int = 1_000_000
    """Counted after aliases are followed."""
    aliases: int = 1_000


LIMITS = Limits()


class Place(Protocol):
    """Anything that stands somewhere in a file."""

    @property
    def line(self) -> int:
        """From 1."""
        ...

    @property
    def column(self) -> int:
        """From 1."""
        ...


class Problems:
    """Collects what is wrong with one file, so that all of it is told at once."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[Problem] = []

    def add(self, place: Place | None, message: str) -> None:
        """Note a problem at a place, or with the file as a whole."""
        if place is None:
            self._found.append(Problem(message))
        else:
            self._found.append(Problem(message, place.line, place.column))

    def error(self) -> FileError:
        """The error that tells all problems, in the order of the file; there must be some."""
        assert self._found, "an error needs a problem"
        return FileError(self.file, sorted(self._found, key=lambda p: (p.line, p.column)))

    def check(self) -> None:
        """Raise that error, where there are problems."""
        if self._found:
            raise self.error()


def plain(node: Node) -> Json:
    """The JSON value of a node."""
    match node:
        case Scalar():
            return node.value
        case ListNode():
            return [plain(item) for item in node.items]
        case MapNode():
            return {key: plain(entry.value) for key, entry in node.entries.items()}


def describe(node: Node) -> str:
    """What stands at a node, in a few words.

    >>> describe(Scalar(10, 1, 1)), describe(Scalar("x", 1, 1)), describe(ListNode((), 1, 1))
    ('the number 10', "the text 'x'", 'an empty list')
    """
    match node:
        case ListNode():
            count = len(node.items)
            return f"a list of {count} item{'s' * (count > 1)}" if count else "an empty list"
        case MapNode():
            if not node.entries:
                return "an empty mapping"
            return f"a mapping with the key {quoted(next(iter(node.entries)))}"
        case Scalar(value=None):
            return "nothing"
        case Scalar(value=bool()):
            return "true" if node.value else "false"
        case Scalar(value=str(text)):
            return f"the text {quoted(text)}"
        case Scalar(value=bytes(data)):
            return f"{len(data)} bytes"
        case Scalar():
            return f"the number {shortened(repr(node.value))}"


def quoted(text: str) -> str:
    """A text in quotes, cut to a length that fits a line."""
    return shortened(repr(text))


def shortened(text: str) -> str:
    """A text cut to a length that fits a line."""
    return text if len(text) <= 60 else f"{text[:40]}…{text[-10:]}"


class Spot(Struct, frozen=True):
    """A place in a file."""

    line: int
    column: int


def within(node: Node, *path: str | int) -> Node:
    """The node at `path`, or the last one on the way that is there.

    >>> inner = Scalar("x", 2, 5)
    >>> within(MapNode({"a": Entry("a", inner, 2, 1)}, 1, 1), "a", 0) == inner
    True
    """
    for step in path:
        match node:
            case MapNode(entries=entries) if step in entries:
                node = entries[str(step)].value
            case ListNode(items=items) if isinstance(step, int) and step < len(items):
                node = items[step]
            case _:
                return node
    return node
