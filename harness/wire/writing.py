"""JSON as it goes over the wire."""

from __future__ import annotations

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


def bytes_of(value: Json) -> bytes:
    """The same as bytes."""
    return text_of(value).encode()
