"""Which names say that a secret stands behind them, and what looks like one there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

from harness.transport import redact

Says: TypeAlias = Literal["always", "where it looks so", "as a password", "never"]
"""What a name says of its value: it is secret, it is where it looks like a secret, it is where it
looks like one, however short and wherever it stands, nothing.
"""

_CERTAIN = ("token", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "subscriptionkey")
_WORDS = re.compile(r"[^a-z0-9]+")
_OTHER = tuple(
    [
        f"{what}token"
        for what in (
            *("page", "next", "previous", "prev", "continuation", "continue", "resume", "sync"),
            *("cancel", "cancellation"),
            *("bos", "eos", "pad", "unk", "sep", "cls", "mask", "start", "stop", "end"),
        )
    ]
)
"""What is called a token and opens nothing: a place in a list, a request, a piece of text."""
_ABOUT = (
    "url",
    "uri",
    "type",
    "name",
    "file",
    "path",
    "hint",
    "policy",
    "endpoint",
    "method",
    "length",
    "count",
)
"""How names end that stand for something about a secret."""
_PASSWORD = re.compile(r".*(?:[a-zA-Z0-9][_-](?i:pass|pwd)|[a-z0-9](?:Pass|Pwd))")
"""A name whose last word is one of these, and not its only one."""
_VISIBLE = re.compile(r"[!-~]+")
_CODE = re.compile(r"[()\[\]{}<>$,;]")
LEAST = 8
"""How many characters a secret has that is known by its looks alone."""
_LONG = 16
_LONG_WORD = re.compile(r"[A-Za-z0-9]{4,}")
_MIXED = 7
"""How many letters and digits stand mixed in what nobody would call anything by."""


@lru_cache(64)
def names_of(own: tuple[str, ...], harmless: tuple[str, ...] = ()) -> Names:
    """The names of secrets, where these are the user's own, and those none."""
    return Names(own, harmless)


class Names:
    """The names of secrets: those that everybody uses but for the harmless, and the user's own."""

    def __init__(self, own: Iterable[str] = (), harmless: Iterable[str] = ()) -> None:
        self._own = frozenset([_plain(each) for each in own])
        self._harmless = frozenset([_plain(each) for each in harmless])
        self._known: dict[str, Says] = {}

    def says(self, name: str) -> Says:
        """What the name of a parameter, a member or a word in a text says.

        >>> Names().says("api_key"), Names().says("sort_key"), Names().says("max_tokens")
        ('always', 'where it looks so', 'never')
        """
        said = self._known.get(name)
        if said is None:
            said = self._says(name)
            if len(self._known) < 10_000:
                self._known[name] = said
        return said

    def calls(self, name: str, value: str) -> bool:
        """Whether a parameter, or a field of a form, of this name holds a secret in this value."""
        said = self.says(name)
        return said != "never" and (said != "as a password" or looks_random(value))

    def header(self, name: str) -> bool:
        """Whether a header of this name holds a secret."""
        return redact.hides(name.lower()) or _plain(name) in self._own

    def _says(self, name: str) -> Says:
        plain = _plain(name)
        if plain in self._own:
            return "always"
        if len(name) > 200 or plain in self._harmless or plain.endswith(_OTHER):
            return "never"
        if not redact.is_secret(name):
            return "as a password" if _PASSWORD.fullmatch(name) else "never"
        if plain.endswith(_ABOUT):
            return "where it looks so"
        if plain.endswith(_CERTAIN) or any(each in plain for each in redact.INSIDE):
            return "always"
        return "where it looks so"


def _plain(name: str) -> str:
    return _WORDS.sub("", name.lower())


def looks_secret(value: str) -> bool:
    """Whether a value may be a secret, by itself: one word that holds digits and letters.

    >>> looks_secret("Pl4nted-hunter2"), looks_secret("rate_limit_exceeded")
    (True, False)
    """
    return (
        len(value) >= LEAST
        and _VISIBLE.fullmatch(value) is not None
        and _CODE.search(value) is None
        and any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
    )


def looks_random(value: str) -> bool:
    """Whether a value that may be a secret is more than words and numbers side by side.

    >>> looks_random("Pl4nted-hunter2"), looks_random("users/12345/report-v3.pdf")
    (True, False)
    """
    mixed = [word for word in _LONG_WORD.findall(value) if not (word.isdigit() or word.isalpha())]
    return looks_secret(value) and sum(map(len, mixed)) >= _MIXED


def is_worth_searching(value: str) -> bool:
    """Whether a secret is long and odd enough to be looked for where nothing says that it is one.

    >>> is_worth_searching("test-key"), is_worth_searching("Pl4nted-hunter2")
    (False, True)
    """
    return looks_secret(value) or (
        len(value) >= _LONG and "://" not in value and _VISIBLE.fullmatch(value) is not None
    )


_STANDS_IN = re.compile(
    r"(?<![a-z])(?:redact|filter|dummy|fake|mask|scrub|placeholder|saniti[sz]|hidden|removed|censor"
    r"|anonymi|your|example|changeme|none|null|empty|undefined|todo)|<[^<>]*>|\{\{|\$\{?[a-z_]|%[a-z_]+%"
    r"|x{4,}|\*{3,}|\.{3,}|0{8,}|^[*x.#_-]+$|example(?:key)?$",
    re.IGNORECASE,
)
_LONGEST = 300


def stands_in(value: str) -> bool:
    """Whether a value stands in the place of a secret, as people and tools write it.

    >>> [stands_in(each) for each in ("Bearer REDACTED", "<API_KEY>", "***", "Pl4nted-hunter2")]
    [True, True, True, False]
    """
    bare = re.sub(r"(?i)^(?:bearer|basic|token)\s+", "", value.strip())
    return len(bare) <= _LONGEST and (not bare or _STANDS_IN.search(bare) is not None)
