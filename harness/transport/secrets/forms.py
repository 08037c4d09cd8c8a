"""The secrets in forms: those that are coded as addresses are, and those in several parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote_plus

from harness.transport.rules import REDACTED
from harness.transport.secrets.edits import Edit, applied, merged, plain
from harness.transport.secrets.finder import Finder

_PAIR = re.compile(r"([^&=]*)=?([^&]*)&?")
_FORM = re.compile(r"[\w.%+\[\]-]{1,200}=[^&\s]*+(?:&[\w.%+\[\]-]{1,200}=[^&\s]*+)*+")
_NAME = re.compile(r"\bname=\"?([^\";\r\n]{0,200})", re.IGNORECASE)
_BOUNDARY = re.compile(r"boundary=(?:\"([^\"\r\n]{1,200})\"|([^\";,\s]{1,200}))", re.IGNORECASE)
_FIRST = re.compile(r"(?:\r?\n)?--([^\r\n]{1,200})\r?\n(?=content-)", re.IGNORECASE)
_HEAD = re.compile(r"\r?\n(?:[^\r\n]{1,2000}\r?\n){0,50}\r?\n")
_TYPE = re.compile(r"^content-(?:type|encoding):[^\r\n]*", re.IGNORECASE | re.MULTILINE)


def is_form(text: str) -> bool:
    """Whether a text can be nothing but names and values.

    >>> is_form("a=1&b=%20"), is_form("a = 1")
    (True, False)
    """
    return _FORM.fullmatch(text) is not None


def coded(text: str, finder: Finder, start: int = 0) -> list[Edit]:
    """What takes the secrets out of names and values, from `start` on."""
    return merged(text, list(_coded(text, finder, start)))


def _coded(text: str, finder: Finder, start: int) -> Iterator[Edit]:
    for found in _PAIR.finditer(text, start):
        name = unquote_plus(found[1])
        value = unquote_plus(found[2])
        if finder.names.calls(name, value) or "signature" in name.lower():
            if finder.hides(value):
                finder.known.learn(value)
                yield Edit(*found.span(2), quote(REDACTED, safe=""), f"the value of `{name}`")
            continue
        for group, meant in ((1, name), (2, value)):
            edits = finder.edits(meant)
            if edits:
                shown = quote(applied(meant, edits), safe="")
                yield Edit(*found.span(group), shown, edits[0].what)


def boundary(text: str, content_type: str) -> str | None:
    """What stands between the parts of a form; None where it has none."""
    found = _FIRST.match(text)  # what stands there counts, whatever the header says
    if found is None and "multipart" in content_type.lower():
        found = _BOUNDARY.search(content_type)
    return None if found is None else found[found.lastindex or 0]


def parts(
    text: str, between: str, finder: Finder, body: Callable[[str, str], list[Edit]]
) -> list[Edit]:
    """What takes the secrets out of a form in several parts. `body` finds them in one part, of
    which it is told the content type.
    """
    return merged(text, list(_parts(text, between, finder, body)))


def _parts(
    text: str, between: str, finder: Finder, body: Callable[[str, str], list[Edit]]
) -> Iterator[Edit]:
    mark = "--" + between
    at = text.find(mark)
    if at:
        start, end = 0, len(text) if at < 0 else at
        yield from plain(text, start, end).lift(finder.edits(text[start:end]))
    while at >= 0:
        start = at + len(mark)
        at = text.find(mark, start)
        end = len(text) if at < 0 else at
        head = _HEAD.match(text, start, end)
        if head is None:
            yield from plain(text, start, end).lift(finder.edits(text[start:end]))
            continue
        yield from plain(text, start, head.end()).lift(finder.edits(head[0]))
        last = text.endswith(("\r\n", "\n"), start, end) and at >= 0
        end -= (2 if text.endswith("\r\n", start, end) else 1) if last else 0
        yield from _part(text, head, end, finder, body)


def _part(
    text: str,
    head: re.Match[str],
    end: int,
    finder: Finder,
    body: Callable[[str, str], list[Edit]],
) -> Iterator[Edit]:
    value = text[head.end() : end]
    named = _NAME.search(head[0])
    name = "" if named is None else named[1]
    if finder.names.calls(name, value):
        if finder.hides(value):
            finder.known.learn(value)
            yield Edit(head.end(), end, what=f"the value of `{name}`")
        return
    kinds = " ".join(_TYPE.findall(head[0]))
    yield from plain(text, head.end(), end).lift(body(value, kinds))
