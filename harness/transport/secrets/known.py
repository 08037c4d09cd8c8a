"""Secrets that are known by their value: those of the user's, and those that a request tells."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from harness.core.json_plain import dumps_ascii
from harness.transport.rules import REDACTED
from harness.transport.secrets.edits import Edit
from harness.transport.secrets.looks import LEAST, is_worth_searching

_MOST = 1_000
"""How many values are kept; who has more has none that is worth it."""


class Known:
    """Values that are secret wherever they stand, in all the ways in which they are spelled."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._spelled: dict[str, None] = {}
        self._odd = False
        for value in values:
            self._add(value)

    def __len__(self) -> int:
        return len(self._values)

    def learn(self, value: str) -> None:
        """Take a value as secret, where it is long and odd enough."""
        if len(self._values) < _MOST and REDACTED not in value and is_worth_searching(value):
            self._add(value)

    def _add(self, value: str) -> None:
        if value and value not in self._values:
            self._values.add(value)
            self._spelled.update(dict.fromkeys(_spellings(value)))
            self._odd = self._odd or not value.isascii() or '"' in value or "\\" in value

    def may_be_in(self, text: str) -> bool:
        """Whether one of them may stand in a text, or in a string of JSON there."""
        return self._odd or any(map(text.__contains__, self._spelled))

    def find(self, text: str) -> Iterator[Edit]:
        """Where they stand in a text."""
        for spelled in self._spelled:
            at = text.find(spelled)
            while at >= 0:
                yield Edit(at, at + len(spelled), what="a secret that is known from elsewhere")
                at = text.find(spelled, at + len(spelled))


def _spellings(value: str) -> Iterator[str]:
    data = value.encode("utf-8", "surrogatepass")
    yield value
    yield dumps_ascii(value)[1:-1]
    yield html.escape(value)
    for coded in (quote(data), quote(data, safe=""), quote_plus(data)):
        yield coded
        yield _lower(coded)
    for before in range(3):
        for alphabet in (b"+/", b"-_"):
            coded = base64.b64encode(b"\0" * before + data, alphabet).decode().rstrip("=")
            inner = coded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
            if len(inner) >= LEAST:
                yield inner


def _lower(coded: str) -> str:
    """The same with small letters in its escapes."""
    first, *rest = coded.split("%")
    return "%".join([first, *[each[:2].lower() + each[2:] for each in rest]])
