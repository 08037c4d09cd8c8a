"""The secrets in a stream of events, also one that comes in several pieces."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.transport.secrets.edits import Edit, View, joined, merged, plain
from harness.transport.secrets.finder import Finder, Scope, is_json
from harness.transport.secrets.members import Group, leaves, lifted, parsed

_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
_BARE: Group = ((), ())
_BEGIN = re.compile(r"\ufeff?[\r\n]*(?:data|event|id|retry)?:")
_DATA = re.compile(r"\ufeff?data(?:: ?|\Z)")


class Piece(NamedTuple):
    """A piece of a text that a stream gives: the text, what in it is secret by itself, and where it
    stands: in which part of the stream, and as which leaf of the JSON there, None where it is all.
    """

    text: str
    edits: Sequence[Edit]
    view: View
    leaf: int | None = None

    def lift(self, edits: Sequence[Edit]) -> list[Edit]:
        """Edits of the piece as edits of the whole stream."""
        if self.leaf is not None:
            edits = lifted(self.view.text, [(self.leaf, edits)])
        return self.view.lift(edits)


def is_stream(text: str) -> bool:
    """Whether a text begins as a stream of events does."""
    return _BEGIN.match(text) is not None


def edits(text: str, finder: Finder) -> list[Edit]:
    """What takes the secrets out of a stream of events."""
    return _Stream(finder, finder.scope(text)).edits(text, _parts(text))


def in_values(text: str, finder: Finder) -> list[Edit]:
    """The same for JSON, of which each member of a list, or each line, is a piece of a reply."""
    parts = [(0, len(text))]
    try:
        parsed(text)
    except ValueError:
        parts = [found.span(1) for found in _LINE.finditer(text) if found[1]]
    stream = _Stream(finder, finder.scope(text))
    return stream.edits(text, [(plain(text, *part), True) for part in parts])


class _Stream:
    """Goes through one stream, part by part, and keeps the texts that may go on later."""

    def __init__(self, finder: Finder, scope: Scope) -> None:
        self._finder = finder
        self._scope = scope
        self._groups: dict[Group, list[Piece]] = {}
        self._latest: dict[tuple[str, ...], Group] = {}
        self._found: list[Edit] = []

    def edits(self, text: str, parts: Iterable[tuple[View, bool]]) -> list[Edit]:
        """What takes the secrets out of the stream; of each part, whether it is data."""
        for view, is_data in parts:
            if not (is_data and is_json(view.text) and self._json(view)):
                own = self._finder.edits(view.text, 0, self._scope)
                piece = Piece(view.text, own, view)
                if is_data:
                    self._group(_BARE, whole=True).append(piece)
                else:
                    self._found += piece.lift(own)
        for pieces in self._groups.values():
            self._found += _together(pieces, self._finder)
        return merged(text, self._found)

    def _json(self, view: View) -> bool:
        """Take in JSON, where it is that."""
        try:
            value, whole = parsed(view.text)
        except ValueError:
            return False
        alone = []
        for leaf in leaves(value, self._finder.names):
            own = self._finder.leaf(leaf, 0, self._scope)
            if leaf.kind == "text" and not leaf.secret:
                piece = Piece(leaf.text, own, view, leaf.number)
                self._group(leaf.group, whole=whole).append(piece)
            elif own:
                alone.append((leaf.number, own))
        if alone:
            self._found += view.lift(lifted(view.text, alone))
        return True

    def _group(self, group: Group, *, whole: bool) -> list[Piece]:
        """The pieces that another belongs to. What numbers them may be missing where the end of a
        part is.
        """
        if not whole:
            group = self._latest.get(group[0], group)
        self._latest[group[0]] = group
        return self._groups.setdefault(group, [])


def _together(pieces: Sequence[Piece], finder: Finder) -> Iterator[Edit]:
    """The edits of the pieces of one text: a secret in several is taken out of all of them, and
    what stands in its place is put into the first.
    """
    own, starts, length = [], [], 0
    for piece in pieces:
        starts.append(length)
        own += [_moved(edit, length) for edit in piece.edits]
        length += len(piece.text)
    if len(pieces) > 1:
        whole = "".join([piece.text for piece in pieces])
        known = merged(whole, own)
        more = [edit for edit in finder.edits(whole) if not _covered(edit, known)]
        own = merged(whole, [*own, *more]) if more else own
    laid: dict[int, list[Edit]] = {}
    for edit in own:
        number, new, what = bisect_right(starts, edit.start) - 1, edit.new, edit.what
        while number < len(pieces) and starts[number] < edit.end:
            start, end = starts[number], starts[number] + len(pieces[number].text)
            begin, stop = max(edit.start, start) - start, min(edit.end, end) - start
            laid.setdefault(number, []).append(Edit(begin, stop, new, what))
            new = what = ""
            number += 1
    for number, parts in laid.items():
        yield from pieces[number].lift(parts)


def _moved(edit: Edit, by: int) -> Edit:
    return Edit(edit.start + by, edit.end + by, edit.new, edit.what)


def _covered(edit: Edit, by: Sequence[Edit]) -> bool:
    """Whether one of several edits, which are in order, takes in another."""
    number = bisect_right(by, edit.start, key=_start) - 1
    return number >= 0 and by[number].end >= edit.end


def _start(edit: Edit) -> int:
    return edit.start


def _parts(text: str) -> Iterator[tuple[View, bool]]:
    """The parts of a stream: the data of each event, and every other line."""
    lines: list[tuple[int, int]] = []  # the last line of all is an empty one
    for found in _LINE.finditer(text):
        start, end = found.span(1)
        field = _DATA.match(text, start, end)
        if field is not None:
            lines.append((field.end(), end))
        elif start < end:
            yield plain(text, start, end), False
        elif lines:
            yield _data(text, lines), True
            lines = []


def _data(text: str, lines: Sequence[tuple[int, int]]) -> View:
    return plain(text, *lines[0]) if len(lines) == 1 else joined(text, lines)
