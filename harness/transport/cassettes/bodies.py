"""Bodies of requests laid out for people, and back in the form in which they are sent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from harness.core.json_text import Json, dumps_in_order, dumps_readable
from harness.wire.http import Request
from harness.wire.reading import json_of


def readable(body: bytes) -> bytes:
    r"""A body with a line for each member, where it is an object or a list of JSON.

    >>> readable(b'{"a":[1]}')
    b'{\n  "a": [\n    1\n  ]\n}'
    """
    value = _json(body)
    return body if value is None else dumps_readable(value).encode()


def compact(request: Request) -> Request:
    r"""A request with such a body as clients send it: without spaces, keys in their own order.

    >>> compact(Request("POST", "/", (("content-length", "10"),), b'{"a": "\\u00fc"}'))
    Request(method='POST', url='/', headers=(('content-length', '10'),), body=b'{"a":"\xc3\xbc"}')
    """
    value = _json(request.body)
    if value is None:
        return request
    body = dumps_in_order(value).encode()
    headers = tuple(
        [
            (name, str(len(body)) if name == "content-length" else text)
            for name, text in request.headers
        ]
    )
    return replace(request, headers=headers, body=body)


def as_bytes(body: Any) -> bytes:
    """What goes over the wire for a body as clients hold it: pieces of it are joined, and other
    values are those of JSON. What sending would find used up, if it were read here, such as a form
    of aiohttp, is told by its type.

    >>> as_bytes(["a", b"b"]), as_bytes({"n": b"1"}), as_bytes(object())
    (b'ab', b'{"n":"1"}', b'"[builtins.object]"')
    """
    if hasattr(body, "read"):
        body = body.read()
    match body:
        case None:
            return b""
        case str() | bytes() | bytearray() | memoryview():
            return _encoded(body)
        case Iterable() if not isinstance(body, Mapping):
            body = list(body)
            if all(isinstance(piece, str | bytes | bytearray) for piece in body):
                return b"".join(map(_encoded, body))
        case _:
            pass
    return dumps_in_order(_told(body)).encode()


def _encoded(body: str | bytes | bytearray | memoryview) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body)


def _told(value: Any) -> Json:
    """A value as one of JSON, bytes in it as a text of Latin-1."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case bytes() | bytearray():
            return value.decode("latin-1")
        case Mapping():
            return {str(key): _told(item) for key, item in value.items()}
        case list() | tuple():
            return [_told(item) for item in value]
        case _:
            return f"[{type(value).__module__}.{type(value).__qualname__}]"


def text_or_bytes(body: bytes) -> str | bytes:
    """A body as text, where it is some."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _json(body: bytes) -> Json:
    """The object or the list that a body is; None where it is none."""
    if body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return json_of(body.decode())
    except ValueError:
        return None
