"""Forms in several parts, as files are sent: what stands in each, wherever it was cut."""

from __future__ import annotations

import re

from msgspec import Struct

_BOUNDARY = re.compile(r"boundary=(?:\"([^\"]+)\"|([^\s;,]+))", re.IGNORECASE)
_PARAMETER = re.compile(r"(?<![\w*])(name|filename)=(?:\"((?:[^\"\\]|\\.)*)\"|([^\s;]+))")


class Part(Struct, frozen=True):
    """One part: its name, the name and the type of its file, "" for none, and what is in it."""

    name: str
    file: str
    type: str
    data: bytes


def parts_of(data: bytes, kind: str) -> list[Part] | None:
    r"""The parts of a body, by its content type; None where it is no such form.

    >>> body = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'
    >>> parts_of(body, "multipart/form-data; boundary=x")
    [Part(name='a', file='', type='', data=b'1')]
    """
    told = _BOUNDARY.search(kind)
    if told is None:
        return None
    mark = b"--" + (told[1] or told[2]).encode()
    pieces = (b"\r\n" + data).split(b"\r\n" + mark)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        return None
    return [_part(piece) for piece in pieces[1:-1]]


def _part(piece: bytes) -> Part:
    head, _, data = _cut(piece.removeprefix(b"\r\n"))
    headers = {}
    for line in head.decode(errors="replace").splitlines():
        name, _colon, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    told = dict.fromkeys(("name", "filename"), "")
    for found in _PARAMETER.finditer(headers.get("content-disposition", "")):
        told[found[1]] = found[2] if found[2] is not None else found[3]
    return Part(told["name"], told["filename"], headers.get("content-type", ""), data)


def _cut(piece: bytes) -> tuple[bytes, bytes, bytes]:
    return (b"", b"", piece[2:]) if piece.startswith(b"\r\n") else piece.partition(b"\r\n\r\n")
