"""Bodies of requests laid out for people, and back in the form in which they are sent."""

from __future__ import annotations

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
