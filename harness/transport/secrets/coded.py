"""Bytes that are compressed, and bytes that are spelled as text: what is in them, and back."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator

from msgspec import Struct

LARGEST = 64 * 1024 * 1024
"""How many bytes something compressed may become."""

_GZIP = b"\x1f\x8b"
_BITS = {"gzip": 31, "zlib": 15, "deflate": -15}
_RUN = re.compile(
    r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+"
    r"(?:(?<=[A-Za-z0-9+/_-]{60})(?:\r?\n[A-Za-z0-9+/_-]++)+)?={0,2}"
)
_ALIGNED = 4096
"""Up to how many characters a run is read from each of its first four."""
_STANDARD = str.maketrans("-_", "+/")
_NO_LETTER = re.compile(r"[^A-Za-z0-9+/]+")


class TooLarge(Exception):
    """Something compressed becomes more than anybody would send."""


class Inflated(Struct, frozen=True):
    """What compressed bytes hold, how they were compressed, and whether their end was there."""

    data: bytes
    coding: str
    whole: bool


def inflated(data: bytes, codings: str = "") -> Inflated | None:
    """What compressed bytes hold, by their first bytes or what a header says; None where they are
    not compressed. TooLarge past `LARGEST`.
    """
    if data.startswith(_GZIP):
        return _inflate(data, "gzip")
    if len(data) > 2 and data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0:
        found = _inflate(data, "zlib")
        if found is not None and (found.whole or "deflate" in codings):
            return found
    return _inflate(data, "deflate") if "deflate" in codings else None


def _inflate(data: bytes, coding: str) -> Inflated | None:
    pieces, size, rest = [], 0, data
    while True:
        reader = zlib.decompressobj(_BITS[coding])
        try:
            piece = reader.decompress(rest, LARGEST - size + 1)
        except zlib.error:
            return None
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise TooLarge
        rest = reader.unused_data
        if coding != "gzip" or not reader.eof or not rest.startswith(_GZIP):
            return Inflated(b"".join(pieces) + rest, coding, reader.eof)


def deflated(data: bytes, like: Inflated) -> bytes:
    """Bytes compressed as others were, without a date, and without an end where those had none."""
    writer = zlib.compressobj(9, zlib.DEFLATED, _BITS[like.coding])
    body = writer.compress(data)
    return body + writer.flush(zlib.Z_FINISH if like.whole else zlib.Z_SYNC_FLUSH)


class Run(Struct, frozen=True):
    """A part of a text that may be base64, and the bytes that it would spell."""

    start: int
    end: int
    data: bytes
    text: str

    def spelled(self, data: bytes) -> str:
        """Other bytes, in the same alphabet."""
        safe = "-" in self.text or "_" in self.text
        coded = (base64.urlsafe_b64encode if safe else base64.b64encode)(data).decode()
        return coded if self.text.endswith("=") or len(self.text) % 4 == 0 else coded.rstrip("=")


def runs(text: str) -> Iterator[Run]:
    """What may be base64 in a text; the same part several times where it may begin later."""
    for found in _RUN.finditer(text):
        start, end = found.span()
        for skip in range(4 if end - start <= _ALIGNED else 1):
            part = text[start + skip : end]
            yield Run(start + skip, end, decoded(part), part)


def decoded(part: str) -> bytes:
    """What base64 of either alphabet spells, also without its end and with spaces in it."""
    clean = _NO_LETTER.sub("", part.translate(_STANDARD))
    clean = clean[: len(clean) - (len(clean) % 4 == 1)]
    return binascii.a2b_base64(clean + "=" * (-len(clean) % 4))
