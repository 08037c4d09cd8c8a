"""What is secret in all that is written down or told: keys, tokens, passwords."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode

from harness.core import key_shapes
from harness.core.json_text import Json, dumps
from harness.wire import CODECS
from harness.wire.http import Headers, Request, first
from harness.wire.reading import json_of

REDACTED = "[redacted]"
"""What stands in place of a secret."""

_IN_HEADERS = re.compile(
    r"auth(?!enticate$)|api[-_]?key|token(?!s)|secret|cookie|passw|passphrase|pwd|credential"
    r"|signature|organi[sz]ation|jwt|[cx]srf|session([-_]?id)?$|(^|[-_])(key|sid)$"
)
_OF_PROTOCOLS = frozenset().union(*[codec.secrets.headers for codec in CODECS])
"""Headers that the protocols themselves call secret."""
_OWN_NAMES = frozenset().union(*[codec.secrets.query | codec.secrets.body for codec in CODECS])
"""Parameters and members that they call so."""
INSIDE = (
    "apikey",
    "authorization",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "cookie",
)
"""What stands in the name of a secret and in no other."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
SHORT = frozenset({"key", "auth", "sig", "code"})
"""Names that are too common in prose to be believed there."""
_NO_KEYS = frozenset({"promptcachekey"})
"""Names that end in "key" and name no credential."""

_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2}))"
"""Where a word begins, also behind an escape of JSON or of an address."""
_BEGUN = re.compile(
    _START + r"(?:sk-[\w-]{6,}|AIza[\w-]{8,}|gh[opsur]_\w{8,}|github_pat_\w{8,}"
    r"|eyJ[\w-]{2,}\.[\w-]{2,}\.[\w-]*)"
)
"""What begins as the commonest keys do: where people are told something, that is enough."""
SCHEME = re.compile(_START + r"(bearer|basic)((?:\s|%20|\+){1,8})[\w.~+/=%-]{6,}", re.IGNORECASE)
LOGIN = re.compile(r"(?<=://)[^/@\s]{1,200}@")
NAMED = re.compile(r"(?<![\w-])([\w-]++)\\{0,8}[\"']?\s{0,4}[:=]\s{0,4}")
"""A name and what stands between it and its value."""
_VALUE = re.compile(
    r"\[redacted\]|[\[{].*+|\\{0,8}\"(?:[^\"\\]|\\.)*+\"?|'[^']*+'?"
    r"|(?:(?:bearer|basic|digest|token)\s{1,8})?[^\s\"'&,;}\]]++",
    re.IGNORECASE,
)
_PART = re.compile(
    r"(?<=name=\")([^\"\r\n]{1,200})"
    r"(\"[^\r\n]{0,200}+(?:\r?\n[^\r\n]{1,200}+){0,8}+(?:\r?\n){2})([^\r\n]++)"
)
"""A field of a form in several parts: its name, the lines behind it, its value."""


def text(value: str) -> str:
    """A text without what has the shape of a key, or stands behind the name of one.

    >>> text("the key sk-proj-0123456789 is wrong"), text("password: hunter2")
    ('the key [redacted] is wrong', 'password: [redacted]')
    """
    found = _BEGUN.sub(REDACTED, _without_keys(_inner(value)))
    found = SCHEME.sub(rf"\1\2{REDACTED}", found)
    found = LOGIN.sub(f"{REDACTED}@", found)
    return _PART.sub(_part, _without_named(found))


def is_secret(name: str) -> bool:
    """Whether a parameter or a member has a name that secrets have; numbers of tokens have none.

    >>> is_secret("apiKey"), is_secret("ACCESS-TOKEN"), is_secret("max_tokens")
    (True, True, False)
    """
    if name.lower() in _OWN_NAMES:
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    joined = "".join(words)
    if any(each in joined for each in INSIDE) or joined.endswith("token"):
        return True
    if joined in _NO_KEYS or not words:
        return False
    return joined in SHORT or words[-1] in ("key", "sig", "jwt") or "auth" in words


def headers(given: Headers) -> Headers:
    """Headers without secrets."""
    return tuple(
        [(text(name), REDACTED if hides(name.lower()) else text(value)) for name, value in given]
    )


def url(request: Request) -> str:
    """The path and query of a request, without secrets."""
    query = _form(request.parameters)
    return path(request) + (f"?{query}" if query else "")


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
    plain = data.decode(errors="replace")
    if "urlencoded" in (first(request.headers, "content-type") or ""):
        return _form(parse_qsl(plain, keep_blank_values=True))
    return text(plain)


def value(given: Json) -> Json:
    """JSON without secrets, at any depth."""
    if isinstance(given, dict):
        return {
            text(key): REDACTED if is_secret(key) and item is not None else value(item)
            for key, item in given.items()
        }
    if isinstance(given, list):
        return [value(item) for item in given]
    return text(given) if isinstance(given, str) else given


def _inner(given: str) -> str:
    """A text that is JSON, as arguments are, without its secrets; any other as it is."""
    if not given.startswith(("{", "[")):
        return given
    try:
        inner = json_of(given)
    except ValueError:
        return given
    shown = value(inner)
    return given if shown == inner else dumps(shown)


def hides(name: str) -> bool:
    """Whether a header of this name, in lower case, holds a secret."""
    return name in _OF_PROTOCOLS or _IN_HEADERS.search(name) is not None


def _form(pairs: list[tuple[str, str]]) -> str:
    shown = [
        (text(name), REDACTED if is_secret(name) or "signature" in name.lower() else text(item))
        for name, item in pairs
    ]
    return urlencode(shown, quote_via=quote)


def _without_keys(given: str) -> str:
    """A text without what has the shape of a key."""
    kept, at = [], 0
    for found in sorted(key_shapes.find(given, cut=True), key=lambda each: each.start):
        if found.end > at:
            kept += [given[at : found.start], REDACTED] if found.start >= at else []
            at = found.end
    return "".join([*kept, given[at:]])


def _without_named(given: str) -> str:
    """A text without the values that stand behind names of secrets."""
    kept, at = [], 0
    for found in NAMED.finditer(given):
        if found.start() < at or not _names(found):
            continue
        hidden = _VALUE.match(given, found.end())
        if hidden is not None:
            kept += [given[at : found.end()], REDACTED]
            at = hidden.end()
    return "".join([*kept, given[at:]])


def _names(found: re.Match[str]) -> bool:
    """Whether a name in a text is a secret's; a short one only where it is no word of prose."""
    before = found.string[max(0, found.start() - 1) : found.start()]
    return is_secret(found[1]) and (found[1].lower() not in SHORT or before in ("?", "&", '"'))


def _part(found: re.Match[str]) -> str:
    name, between, _hidden = found.groups()
    return name + between + REDACTED if is_secret(name) else found[0]
