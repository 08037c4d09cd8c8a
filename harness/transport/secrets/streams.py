"""The secrets in a stream of events, also one that comes in several pieces."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from harness.transport.secrets.edits import Edit, View, joined, merged, plain
from harness.transport.secrets.finder import Finder
from harness.transport.secrets.members import leaves

_LINE = re.compile(r"([^\r\n]*+)(?:\r\n|\r|\n|\Z)")
_DATA = re.compile(r"\ufeff?data(?:: ?|\Z)")


class Piece(Struct, frozen=True):
    """A piece of a text that a stream gives: its views, from the inside out, and what in it is
    secret by itself.
    """

    views: tuple[View, ...]
    edits: list[Edit]

    @property
    def text(self) -> str:
        """The piece itself."""
        return self.views[0].text

    def lift(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Edits of the piece as edits of the whole stream."""
        for view in self.views:
            edits = view.lift(edits)
        return edits


_Groups: TypeAlias = "defaultdict[tuple[object, ...], list[Piece]]"


def is_stream(text: str) -> bool:
    """Whether a text begins as a stream of events does."""
    return re.match(r"\ufeff?(?:data|event|id|retry)?:", text.lstrip("\r\n")) is not None


def edits(text: str, finder: Finder) -> list[Edit]:
    """What takes the secrets out of a stream of events."""
    found: list[Edit] = []
    groups: _Groups = defaultdict(list)
    for view, is_data in _parts(text):
        if is_data and view.text.startswith(("{", "[")):
            found += _in_json(view, finder, groups)
            continue
        piece = Piece((view,), finder.edits(view.text))
        if is_data:
            groups["text",].append(piece)
        else:
            found += piece.lift(piece.edits)
    return _all(text, found, groups, finder)


def in_values(text: str, finder: Finder) -> list[Edit]:
    """The same for values of JSON, one behind the other or in a list, each a piece of a reply."""
    groups: _Groups = defaultdict(list)
    found = list(_in_json(plain(text, 0, len(text)), finder, groups))
    return _all(text, found, groups, finder)


def _all(text: str, found: list[Edit], groups: _Groups, finder: Finder) -> list[Edit]:
    for pieces in groups.values():
        found += _together(pieces, finder)
    return merged(text, found)


def _in_json(view: View, finder: Finder, groups: _Groups) -> Iterator[Edit]:
    """The edits of JSON in a stream; the texts that may go on later are put to their groups."""
    for leaf in leaves(view.text, finder.names):
        own = finder.leaf(leaf, 0)
        if leaf.is_text and not leaf.is_key and not leaf.secret:
            groups[leaf.group()].append(Piece((leaf.view, view), own))
        else:
            yield from view.lift(leaf.view.lift(own))


def _together(pieces: Sequence[Piece], finder: Finder) -> Iterator[Edit]:
    """The edits of the pieces of one text: a secret in several is taken out of all of them, and
    what stands in its place is put into the first.
    """
    starts, length = [], 0
    own: list[Edit] = []
    for piece in pieces:
        starts.append(length)
        own += [_moved(edit, length) for edit in piece.edits]
        length += len(piece.text)
    if len(pieces) > 1:
        whole = "".join([piece.text for piece in pieces])
        known = merged(whole, own)
        more = [edit for edit in finder.edits(whole) if not _covered(edit, known)]
        own = merged(whole, [*own, *more]) if more else own
    for edit in own:
        number = bisect_right(starts, edit.start) - 1
        new = edit.new
        while number < len(pieces) and starts[number] < edit.end:
            piece, start = pieces[number], starts[number]
            part = Edit(
                max(edit.start - start, 0), min(edit.end - start, len(piece.text)), new, edit.what
            )
            if part.end > part.start:
                yield from piece.lift([part])
                new = ""
            number += 1


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
    lines: list[tuple[int, int]] = []
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
    if lines:
        yield _data(text, lines), True


def _data(text: str, lines: Sequence[tuple[int, int]]) -> View:
    return plain(text, *lines[0]) if len(lines) == 1 else joined(text, lines)
