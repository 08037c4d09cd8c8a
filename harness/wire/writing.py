"""JSON as it goes over the wire."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from harness.core.json_plain import dumps, dumps_ascii
from harness.core.json_text import Json


def text_of(value: Json) -> str:
    r"""JSON with keys in their own order; ASCII only where a lone surrogate cannot be sent.

    >>> text_of({"b": "ü", "a": 1}), text_of("\ud83d")
    ('{"b": "ü", "a": 1}', '"\\ud83d"')
    """
    text = dumps(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return dumps_ascii(value)
    return text


class Stencils:
    r"""Frames that differ in one JSON text only: what stands around it is written once.

    >>> stencils = Stencils()
    >>> say = lambda text: bytes_of({"say": text})
    >>> stencils.frame("say", say, "a"), stencils.frame("say", say, '"')
    (b'{"say": "a"}', b'{"say": "\\""}')
    """

    def __init__(self) -> None:
        self._around: dict[Hashable, tuple[bytes, bytes]] = {}

    def frame(self, key: Hashable, write: Callable[[str], bytes], text: str) -> bytes:
        """What `write` makes of a text; frames of one key have the same around it."""
        around = self._around.get(key)
        if around is None:
            around = self._around[key] = _around(write)
        try:
            return around[0] + dumps(text).encode() + around[1]
        except UnicodeEncodeError:  # a lone surrogate changes how all of the frame is spelled
            return write(text)


def _around(write: Callable[[str], bytes]) -> tuple[bytes, bytes]:
    """What stands before a text and behind it."""
    without, mark = write(""), "#"
    while mark.encode() in without:
        mark += "#"
    before, _mark, after = write(mark).partition(f'"{mark}"'.encode())
    return before, after


def bytes_of(value: Json) -> bytes:
    """The same as bytes."""
    return text_of(value).encode()
