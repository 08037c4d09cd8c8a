"""Changes of a text: which part becomes what, so that all else stays as it was."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from harness.core.json_plain import dumps_ascii
from harness.transport.rules import REDACTED


class Edit(Struct, frozen=True):
    """A part of a text, what it becomes, and in a few words what stands there."""

    start: int
    end: int
    new: str = REDACTED
    what: str = ""


def merged(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """The edits of a text in their order, without those that change nothing.

    Of two that overlap, the one that holds the other counts; else a secret takes up both. What is
    redacted already is never cut.
    """
    if not edits:
        return []
    there = list(edits)
    if REDACTED in text:
        there += [Edit(*each.span()) for each in re.finditer(re.escape(REDACTED), text)]
    there.sort(key=_order)
    kept: list[Edit] = []
    for edit in there:
        if kept and _joins(kept[-1], edit):
            last = kept[-1]
            if edit.end > last.end:
                kept[-1] = Edit(last.start, edit.end, REDACTED, last.what or edit.what)
        else:
            kept.append(edit)
    return [each for each in kept if text[each.start : each.end] != each.new]


def _order(edit: Edit) -> tuple[int, int]:
    return edit.start, -edit.end


def _joins(before: Edit, after: Edit) -> bool:
    return after.start < before.end or (
        after.start == before.end and before.new == after.new == REDACTED
    )


def applied(text: str, edits: Sequence[Edit]) -> str:
    """A text after edits, which are in order and apart from each other."""
    kept, at = [], 0
    for edit in edits:
        kept += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*kept, text[at:]])


class View:
    """A part of a text as it is meant, and where each of its characters stands in that text.

    `starts` and `places` are positions in `text`, in rising order, and where they stand outside;
    between two of them the characters go along. `escaped` says that it is inside a string of JSON.
    """

    __slots__ = ("escaped", "places", "starts", "text")

    def __init__(
        self, text: str, starts: Sequence[int], places: Sequence[int], *, escaped: bool = False
    ) -> None:
        self.text = text
        self.starts = starts
        self.places = places
        self.escaped = escaped

    def lift(self, edits: Iterable[Edit]) -> list[Edit]:
        """Edits of the view as edits of the text that it is a part of."""
        return [
            Edit(
                self._outside(edit.start),
                self._outside(edit.end),
                dumps_ascii(edit.new)[1:-1] if self.escaped else edit.new,
                edit.what,
            )
            for edit in edits
        ]

    def _outside(self, at: int) -> int:
        number = bisect_right(self.starts, at) - 1
        return self.places[number] + at - self.starts[number]


_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))",
    re.DOTALL,
)
CODED = re.compile(r"(?:%|\\u00|\\x)([0-7][0-9A-Fa-f])")
"""A character of ASCII, as addresses and texts of programs have it."""
_MEANT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def plain(text: str, start: int, end: int) -> View:
    """A part of a text as it stands there."""
    return View(text[start:end], (0,), (start,))


def in_string(text: str, start: int, end: int) -> View:
    """What is between the quotes of a string of JSON, its escapes undone."""
    raw = text[start:end]
    if "\\" not in raw:
        return View(raw, (0,), (start,), escaped=True)
    pieces, starts, places, at, length = [], [0], [start], 0, 0
    for found in _ESCAPE.finditer(raw):
        before = raw[at : found.start()]
        at = found.end()
        pieces += [before, _meant(found)]
        length += len(before) + 1
        starts += [length - 1, length]
        places += [start + found.start(), start + at]
    pieces.append(raw[at:])
    return View("".join(pieces), starts, places, escaped=True)


def in_escapes(text: str, start: int, end: int) -> View:
    """A part of a text that is no JSON, its escapes of ASCII undone."""
    pieces, starts, places, at, length = [], [0], [start], start, 0
    for found in CODED.finditer(text, start, end):
        pieces += [text[at : found.start()], chr(int(found[1], 16))]
        length += found.start() - at + 1
        at = found.end()
        starts += [length - 1, length]
        places += [found.start(), at]
    pieces.append(text[at:end])
    return View("".join(pieces), starts, places)


def _meant(found: re.Match[str]) -> str:
    high, low, code, letter = found.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if code is not None:
        return chr(int(code, 16))
    return _MEANT.get(letter, letter)


def joined(text: str, parts: Sequence[tuple[int, int]]) -> View:
    """Several lines of a text as one text, with a line end between them."""
    starts, places, length = [], [], 0
    for start, end in parts:
        starts.append(length)
        places.append(start)
        length += end - start + 1
    return View("\n".join([text[start:end] for start, end in parts]), starts, places)
