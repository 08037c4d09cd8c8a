"""The secrets in a body, by what it is: a stream, JSON, a form, compressed, or any text."""

from __future__ import annotations

from functools import partial

from harness.transport.secrets import forms, spelling, streams
from harness.transport.secrets.coded import TooLarge, deflated, inflated
from harness.transport.secrets.edits import Edit, applied
from harness.transport.secrets.finder import DEEPEST, TOO_DEEP, TOO_LARGE, Finder, is_json
from harness.transport.secrets.spelling import Spelled
from harness.wire.http import Headers, first
from harness.wire.http import headers as lowered
from harness.wire.reading import json_of

_UNDONE = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
"""Content codings that can be looked into."""
UNKNOWN = "a coding that cannot be undone"


def body(
    data: bytes, headers: Headers, finder: Finder, *, reply: bool
) -> tuple[Spelled, list[Edit]]:
    """A body as text, and what takes the secrets out of it. `reply` says that its parts may be
    pieces of one text.
    """
    known = lowered(headers)
    coding = (first(known, "content-encoding") or "").strip().lower()
    kind = first(known, "content-type") or ""
    spelled = spelling.read(data)
    if coding not in _UNDONE and not spelled.is_text:
        return spelled, [Edit(0, len(spelled.text), what=UNKNOWN)]
    return spelled, _edits(spelled.text, f"{kind} {coding}".strip(), finder, reply=reply)


def _edits(text: str, kind: str, finder: Finder, *, reply: bool, depth: int = 0) -> list[Edit]:
    """What takes the secrets out of a body, or a part of one, of whose kind its headers tell."""
    if depth > DEEPEST:
        return [Edit(0, len(text), what=TOO_DEEP)] if text else []
    compressed = _compressed(text, kind, finder, reply=reply, depth=depth)
    if compressed is not None:
        return compressed
    between = forms.boundary(text, kind)
    if between is not None:
        inner = partial(_edits, finder=finder, reply=reply, depth=depth + 1)
        return forms.parts(text, between, finder, inner)
    if "event-stream" in kind.lower() or streams.is_stream(text):
        return streams.edits(text, finder)
    if reply and is_json(text):
        return streams.in_values(text, finder)
    if _is_form(text, kind):
        return forms.coded(text, finder)
    return finder.edits(text)


def _is_form(text: str, kind: str) -> bool:
    """Whether a body is names and values; curl and urllib say that of JSON too."""
    if "urlencoded" not in kind.lower():
        return forms.is_form(text)
    try:
        json_of(text)
    except ValueError:
        return True
    return False


def _compressed(
    text: str, kind: str, finder: Finder, *, reply: bool, depth: int
) -> list[Edit] | None:
    """What takes the secrets out of a body that is compressed; None where it is not."""
    if text.isascii():
        return None
    try:
        found = inflated(text.encode(errors="surrogateescape"), kind.lower())
    except TooLarge:
        return [Edit(0, len(text), what=TOO_LARGE)]
    if found is None:
        return None
    inside = spelling.read(found.data)
    kind = kind.lower().replace("deflate", "")
    edits = _edits(inside.text, kind, finder, reply=reply, depth=depth + 1)
    if not edits:
        return []
    data = deflated(inside.encoded(applied(inside.text, edits)), found)
    new = data.decode(errors="surrogateescape")
    return [Edit(0, len(text), new, f"{edits[0].what}, compressed")]
