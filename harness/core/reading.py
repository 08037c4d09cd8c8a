"""What the readers of JSON and YAML share: how a file becomes text, its limits, and their words.

A reader turns text into nodes; where it cannot go on it raises `Unreadable`, the problem noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.core.located import Entry, Limits, Node, Place, Problems, Spot, quoted

LARGEST = 10**300
"""Whole numbers stay below it; every one then fits a float too."""
TOO_LARGE = "the number is too large; put it in quotes as text"

FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""What YAML does not let stand in a file, and the line ends that only its older version knows."""


class Unreadable(Exception):
    """Reading cannot go on; the problem is noted."""


class Tally:
    """Counts what one text holds against its limits, and takes its problems."""

    def __init__(self, problems: Problems, limits: Limits) -> None:
        self.problems = problems
        self.limits = limits
        self._left = limits.values

    def count(self, place: Place, depth: int, values: int = 1) -> None:
        """Take in a value at `place` that makes so many values and reaches so deep."""
        self._left -= values
        if self._left < 0:
            raise self.stop(place, f"more than {self.limits.values} values")
        if depth > self.limits.depth:
            raise self.stop(place, f"nested more than {self.limits.depth} deep")

    def put(self, entries: dict[str, Entry], key: str, place: Place, value: Node) -> None:
        """Add an entry to a mapping; a problem where its key is there already."""
        if key in entries:
            self.problems.add(
                place,
                f"the key {quoted(key)} stands here twice, first in line "
                f"{entries[key].line}; keep one",
            )
        else:
            entries[key] = Entry(key, value, place.line, place.column)

    def stop(self, place: Place, message: str) -> Unreadable:
        """Note a problem after which reading cannot go on; raise what this gives."""
        self.problems.add(place, message)
        return Unreadable()


def attempt(
    document: Callable[[str, Tally], Node], data: str | bytes, problems: Problems, limits: Limits
) -> Node | None:
    """What `document` reads from the text of a file; None, and a problem, where it cannot."""
    text = decoded(data, problems, limits)
    if text is None:
        return None
    try:
        return document(text, Tally(problems, limits))
    except Unreadable:
        return None


def at(place: Place) -> str:
    """A place, in the middle of a sentence."""
    return f"line {place.line}, column {place.column}"


def not_closed(bracket: str, where: str) -> str:
    """What to say of a list or mapping that opens there and neither goes on nor ends."""
    return f"the {bracket} at {where} is not closed, or a comma is missing"


def spot(text: str, index: int) -> Spot:
    """The place of the character at `index`."""
    start = text.rfind("\n", 0, index) + 1
    return Spot(text.count("\n", 0, index) + 1, index - start + 1)


def decoded(data: str | bytes, problems: Problems, limits: Limits) -> str | None:
    """The text of a file without a byte order mark; None, and a problem, where it is not text."""
    if len(data) > limits.characters:
        problems.add(
            None, f"the file is too long: {len(data)} bytes, of at most {limits.characters}"
        )
        return None
    if isinstance(data, bytes):
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            problems.add(Spot(1, 1), "the file is UTF-16; save it as UTF-8")
            return None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8")
            found = data[error.start]
            problems.add(
                spot(before, len(before)),
                f"the byte 0x{found:02x} is not UTF-8; save the file as UTF-8",
            )
            return None
    else:
        text = data
    text = text.removeprefix("\ufeff")
    wrong = FORBIDDEN.search(text)
    if wrong is not None:
        code = f"{ord(wrong[0]):04x}"
        problems.add(
            spot(text, wrong.start()),
            f"the character U+{code.upper()} cannot stand in a file; "
            f'inside double quotes, write "\\u{code}"',
        )
        return None
    return text
