"""Requests and interactions without their secrets, as they may be written into a file."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from urllib.parse import quote, unquote

from msgspec.structs import replace

from harness.transport.cassettes.form import Chunk, Interaction, Rules
from harness.transport.redact import REDACTED
from harness.transport.secrets import forms, spelling, streams
from harness.transport.secrets.coded import TooLarge, inflated
from harness.transport.secrets.edits import Edit, applied
from harness.transport.secrets.finder import TOO_LARGE, Finder, Scope
from harness.wire.http import Headers, Request, first
from harness.wire.http import headers as lowered

_Value = TypeVar("_Value")
_UNDONE = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
"""Content codings that can be looked into."""
_ATTEMPTS = 3
"""How often something is gone through again for a secret that it has told of."""


def interaction(given: Interaction, rules: Rules) -> Interaction:
    """An interaction without secrets: in headers, address, cookies and both bodies.

    What stands as a secret in one place is not left in another. As many chunks come at the same
    times; those without a secret are the same bytes. Given what it gave, it gives the same.
    """
    finder = Finder(rules)
    asked = _settled(finder, partial(_request, given.request))
    headers, chunks = _settled(finder, partial(_reply, given))
    return replace(given, request=asked, headers=headers, chunks=chunks)


def request(given: Request, rules: Rules) -> Request:
    """A request without secrets, just as `interaction` has it."""
    return _settled(Finder(rules), partial(_request, given))


def _settled(finder: Finder, redact: Callable[[Finder], tuple[_Value, int]]) -> _Value:
    """What is redacted, gone through again where a secret became known on the way: `redact` also
    gives how many it knew when it began with the body.
    """
    for _ in range(_ATTEMPTS):
        found, before = redact(finder)
        if len(finder.known) == before:
            break
    return found


def _request(given: Request, finder: Finder) -> tuple[Request, int]:
    _learn(given.headers, finder)
    url = _url(given.url, finder)
    known = len(finder.known)
    headers = _headers(given.headers, finder)
    (body,) = _body((given.body,), given.headers, finder, reply=False)
    return Request(given.method, url, _sized(headers, given.body, body), body), known


def _reply(given: Interaction, finder: Finder) -> tuple[tuple[Headers, tuple[Chunk, ...]], int]:
    _learn(given.headers, finder)
    known = len(finder.known)
    headers = _headers(given.headers, finder)
    pieces = [chunk.data for chunk in given.chunks]
    shown = _body(pieces, given.headers, finder, reply=True)
    chunks = tuple([Chunk(a.at, data) for a, data in zip(given.chunks, shown, strict=True)])
    return (_sized(headers, b"".join(pieces), b"".join(shown)), chunks), known


def _url(url: str, finder: Finder) -> str:
    """An address without secrets: what logs in, in the path, and in the query."""
    rest, mark, query = url.partition("?")
    scheme, slashes, rest = rest.partition("://") if "://" in rest else ("", "", rest)
    host, slash, path = rest.partition("/") if scheme else ("", "", rest)
    login, at, name = host.rpartition("@")
    if login and unquote(login) != REDACTED:
        finder.known.learn(unquote(login.partition(":")[2]))
        login = quote(REDACTED, safe="")
    plain = unquote(path)
    edits = finder.edits(plain)
    path = quote(applied(plain, edits), safe="/:@!$&'()*+,;=~") if edits else path
    query = applied(query, forms.coded(query, finder))
    return f"{scheme}{slashes}{login}{at}{name}{slash}{path}{mark}{query}"


def _headers(given: Headers, finder: Finder) -> Headers:
    scope = finder.scope("\n".join([value for _name, value in given]))
    return tuple([(name, _header(name.lower(), value, finder, scope)) for name, value in given])


def _header(name: str, value: str, finder: Finder, scope: Scope) -> str:
    if name == "cookie":
        return "; ".join([_cookie(each.strip()) for each in value.split(";")])
    if name == "set-cookie":
        told, semicolon, how = value.partition(";")
        return _cookie(told) + semicolon + how
    if value and finder.names.header(name):
        return REDACTED
    return finder.redacted(value, scope)


def _cookie(told: str) -> str:
    """A cookie without its value; one without a name is all value."""
    name, equals, value = told.partition("=") if "=" in told else ("", "", told)
    return name + equals + (REDACTED if value else "")


def _learn(headers: Headers, finder: Finder) -> None:
    """Take what headers hold as secret: each cookie, and else what stands behind the word that says
    how it is meant.
    """
    for name, value in headers:
        if name.lower() in ("cookie", "set-cookie"):
            for each in value.split(";")[: None if name.lower() == "cookie" else 1]:
                finder.known.learn(each.partition("=")[2].strip(' "'))
        elif finder.names.header(name):
            scheme, _, secret = value.strip().rpartition(" ")
            finder.known.learn(secret)
            if scheme.lower() == "basic":
                finder.known.learn(_password(secret))


def _password(login: str) -> str:
    try:
        return base64.b64decode(login, validate=True).decode(errors="replace").partition(":")[2]
    except binascii.Error:
        return ""


def _sized(headers: Headers, before: bytes, after: bytes) -> Headers:
    """Headers whose length is as far from the body's as it was."""
    more = len(after) - len(before)
    if not more:
        return headers
    return tuple(
        [
            (name, str(max(0, int(value) + more)))
            if name.lower() == "content-length" and value.isdecimal() and len(value) < 20
            else (name, value)
            for name, value in headers
        ]
    )


def _body(
    pieces: Sequence[bytes], headers: Headers, finder: Finder, *, reply: bool
) -> Sequence[bytes]:
    """The pieces of a body without its secrets."""
    data = b"".join(pieces)
    if not data:
        return pieces
    known = lowered(headers)
    coding = (first(known, "content-encoding") or "").strip().lower()
    kind = first(known, "content-type") or ""
    spelled = spelling.read(data)
    if coding not in _UNDONE and not spelled.is_text:
        return spelling.cut(pieces, [(0, len(data), REDACTED.encode())])
    edits = _edits(spelled.text, f"{kind} {coding}".lower(), finder, reply=reply)
    return spelling.cut(pieces, spelled.in_bytes(edits)) if edits else pieces


def _edits(text: str, kind: str, finder: Finder, *, reply: bool) -> list[Edit]:
    """What takes the secrets out of a body, or a part of one, of whose kind its headers tell."""
    if not text:
        return []
    compressed = _compressed(text, kind, finder)
    if compressed is not None:
        return compressed
    between = forms.boundary(text, kind)
    if between is not None:
        return forms.parts(text, between, finder, partial(_edits, finder=finder, reply=reply))
    if "event-stream" in kind or streams.is_stream(text):
        return streams.edits(text, finder)
    if reply and text.lstrip().startswith(("{", "[")):
        return streams.in_values(text, finder)
    if "urlencoded" in kind or forms.is_form(text):
        return forms.coded(text, finder)
    return finder.edits(text)


def _compressed(text: str, kind: str, finder: Finder) -> list[Edit] | None:
    """What takes the secrets out of a body that is compressed; None where it is not."""
    if text.isascii():
        return None
    data = text.encode(errors="surrogateescape")
    try:
        if inflated(data, kind) is None:
            return None
    except TooLarge:
        return [Edit(0, len(text), what=TOO_LARGE)]
    shown = finder.data(data, kind)
    if shown is None:
        return []
    return [
        Edit(0, len(text), shown.decode(errors="surrogateescape"), "a secret that is compressed")
    ]
