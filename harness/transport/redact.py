"""What is secret in all that is told, in journals, findings and errors: keys, tokens, passwords."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote, unquote, urlencode

from harness.core.json_text import Json, dumps
from harness.transport.rules import NO_RULES
from harness.transport.secrets import bodies, forms, heads
from harness.transport.secrets.edits import applied
from harness.transport.secrets.finder import Finder, steady
from harness.wire.http import Headers, Request, first
from harness.wire.reading import json_of


def text(value: str) -> str:
    """A text without what has the shape of a key, or stands behind the name of one.

    >>> text("the key sk-proj-0123456789 is wrong"), text("password: hunter2")
    ('the key [redacted] is wrong', 'password: [redacted]')
    """
    return _finder().redacted(value)


def _finder() -> Finder:
    """A finder that knows no secret yet: what is told does not depend on what was told before."""
    return Finder(NO_RULES, doubt="hide")


def headers(given: Headers) -> Headers:
    """Headers without secrets."""
    finder = _finder()
    shown = heads.headers(given, finder)
    return tuple([(finder.redacted(name), value) for name, value in shown])


def url(request: Request) -> str:
    """The path and query of a request, without secrets."""
    query = steady(_form, urlencode(request.parameters, quote_via=quote))
    return path(request) + (f"?{query}" if query else "")


def _form(given: str) -> str:
    return applied(given, forms.coded(given, _finder()))


def path(request: Request) -> str:
    """The path of a request, without secrets."""
    plain = unquote(request.path)
    shown = text(plain)
    return request.path if shown == plain else quote(shown, "/:[]@")


def body(request: Request) -> Json:
    """The body of a request, without secrets: the value where it is JSON, else the text, else how
    many bytes there are; None without one.
    """
    data = request.body
    if not data:
        return None
    try:
        return value(json_of(data))
    except ValueError:
        pass
    if first(request.headers, "content-encoding") or b"\0" in data:
        return f"[{len(data)} bytes]"
    shown = partial(_body, headers=request.headers)
    return steady(shown, data.decode(errors="replace"))


def _body(given: str, headers: Headers) -> str:
    spelled, edits = bodies.body(given.encode(), headers, _finder(), reply=False)
    return applied(spelled.text, edits)


def value(given: Json) -> Json:
    """JSON without secrets, at any depth."""
    (shown,) = json_of(text(dumps([given])))
    return shown
