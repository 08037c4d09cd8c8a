"""Which names say that a secret stands behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

from harness.transport.secrets.looks import looks_random
from harness.wire import CODECS

_IN_HEADERS = re.compile(
    r"auth(?!enticate$)|api[-_]?key|token(?!s)|secret|cookie|passw|passphrase|pwd|credential"
    r"|signature|organi[sz]ation|jwt|[cx]srf|session([-_]?id)?$|(^|[-_])(key|sid)$"
)
_OF_PROTOCOLS = frozenset().union(*[codec.secrets.headers for codec in CODECS])
"""Headers that the protocols themselves call secret."""
_OF_CODECS = frozenset().union(*[codec.secrets.query | codec.secrets.body for codec in CODECS])
"""Parameters and members that they call so."""
_INSIDE = (
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
SHORT = frozenset({"key", "auth", "sig", "code"})
"""Names that are too common in prose to be believed there."""
_NO_KEYS = frozenset({"promptcachekey"})
"""Names that end in "key" and name no credential."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

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


@lru_cache(64)
def names_of(own: tuple[str, ...], harmless: tuple[str, ...] = (), *, wary: bool = False) -> Names:
    """The names of secrets, where these are the user's own, and those none."""
    return Names(own, harmless, wary=wary)


class Names:
    """The names of secrets: those that everybody uses but for the harmless, and the user's own.

    With `wary` a name that may be a secret's is one.
    """

    def __init__(
        self, own: Iterable[str] = (), harmless: Iterable[str] = (), *, wary: bool = False
    ) -> None:
        self.wary = wary
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
        small = name.lower()
        return (
            small in _OF_PROTOCOLS
            or _IN_HEADERS.search(small) is not None
            or _plain(name) in self._own
        )

    def _says(self, name: str) -> Says:
        plain = _plain(name)
        if plain in self._own:
            return "always"
        if plain in self._harmless:
            return "never"
        if self.wary and is_secret(name):
            return "always"
        if len(name) > 200 or plain.endswith(_OTHER):
            return "never"
        if not is_secret(name):
            return "as a password" if _PASSWORD.fullmatch(name) else "never"
        if plain.endswith(_ABOUT):
            return "where it looks so"
        if plain.endswith(_CERTAIN) or any(each in plain for each in _INSIDE):
            return "always"
        return "where it looks so"


def _plain(name: str) -> str:
    return _WORDS.sub("", name.lower())


def is_secret(name: str) -> bool:
    """Whether a parameter or a member has a name that secrets have; numbers of tokens have none.

    >>> is_secret("apiKey"), is_secret("ACCESS-TOKEN"), is_secret("max_tokens")
    (True, True, False)
    """
    if name.lower() in _OF_CODECS:
        return True
    words = [word.lower() for word in _PARTS.findall(name)]
    joined = "".join(words)
    if any(each in joined for each in _INSIDE) or joined.endswith("token"):
        return True
    if joined in _NO_KEYS or not words:
        return False
    return joined in SHORT or words[-1] in ("key", "sig", "jwt") or "auth" in words
