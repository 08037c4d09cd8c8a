"""Bytes as text and back, and pieces of bytes of which some are changed."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from harness.transport.secrets.edits import Edit

ByteEdit: TypeAlias = tuple[int, int, bytes]
"""Where some bytes begin and end, and what they become."""


class Spelled(Struct, frozen=True):
    """Bytes as a text from which they can be made again, and how; `is_text` where that is UTF-8, or
    what is meant to be text, and nothing else.
    """

    text: str
    codec: str = "utf-8"
    is_text: bool = True

    def in_bytes(self, edits: Sequence[Edit]) -> Iterator[ByteEdit]:
        """Edits of the text as edits of the bytes; the edits are in order."""
        at, place = 0, 0
        for edit in edits:
            start = place + len(self.encoded(self.text[at : edit.start]))
            end = start + len(self.encoded(self.text[edit.start : edit.end]))
            yield start, end, self.encoded(edit.new)
            at, place = edit.end, end

    def encoded(self, text: str) -> bytes:
        """Another text, spelled as this one was."""
        return text.encode(self.codec, "strict" if self.is_text else "surrogateescape")


def read(data: bytes) -> Spelled:
    """Bytes as text: UTF-8, UTF-16 or UTF-32 where they are that, and else as far as they are."""
    codec = _wide(data)
    try:
        return Spelled(data.decode(codec), codec)
    except UnicodeDecodeError:
        return Spelled(data.decode(errors="surrogateescape"), is_text=False)


def _wide(data: bytes) -> str:
    """The codec of a text, by its first characters; a mark of the order of bytes stays a part of
    it.
    """
    for codec, mark in (
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
    ):
        if data.startswith(mark):
            return codec
    return _ZEROS.get(bytes(map(bool, data[:4])), "utf-8")


_ZEROS = {
    b"\0\0\0\1": "utf-32-be",
    b"\1\0\0\0": "utf-32-le",
    b"\0\1\0\1": "utf-16-be",
    b"\1\0\1\0": "utf-16-le",
}
"""The codec of a text in letters of ASCII, by which of its first four bytes are not zero."""


def cut(pieces: Sequence[bytes], edits: Iterator[ByteEdit] | Sequence[ByteEdit]) -> list[bytes]:
    """Pieces after edits of what they are together, in as many pieces.

    What comes instead of something that stood in several is laid over as many of them.

    >>> cut([b"a sec", b"ret b"], [(2, 8, b"---")])
    [b'a ---', b' b']
    """
    ends, length = [], 0
    for piece in pieces:
        length += len(piece)
        ends.append(length)
    whole = b"".join(pieces)
    made: list[bytes] = []
    cuts: list[int] = []
    at, size = 0, 0

    def mark(upto: int, start: int, most: int) -> None:
        """Set the cuts up to a place of the bytes before, which have come to `size`."""
        while len(cuts) < len(ends) and ends[len(cuts)] <= upto:
            end = ends[len(cuts)]
            cuts.append(size + (most if end == upto else min(end - start, most)))

    for start, end, new in edits:
        mark(start, at, start - at)
        made += [whole[at:start], new]
        size += start - at
        mark(end, start, len(new))
        size += len(new)
        at = end
    mark(length, at, length - at)
    made.append(whole[at:])
    data = b"".join(made)
    return [data[a:b] for a, b in zip([0, *cuts[:-1]], cuts, strict=True)]
