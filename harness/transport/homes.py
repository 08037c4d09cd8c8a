"""Where the providers are, and by which variables popular clients are told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from harness.core.errors import UsageError, unknown


class Home(Struct, frozen=True):
    """A provider: its name, with which the names of its protocols begin, and its address.

    `variable` is what clients read their address from, `keys` what they read their key from, the
    first that is set, and `sign` the header that carries it, with what stands before it there.
    `under` is what such an address ends with: the paths of requests go on behind it.
    """

    name: str
    base: str
    variable: str
    keys: tuple[str, ...]
    sign: tuple[str, str]
    under: str = ""

    def key_in(self, environment: Mapping[str, str]) -> str:
        """The user's key; UsageError where there is none."""
        for name in self.keys:
            if key := environment.get(name):
                return key
        raise UsageError(
            f"there is no key for {self.name}: set {' or '.join(self.keys)}, as its own library "
            "wants it"
        )


HOMES: tuple[Home, ...] = (
    Home(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        ("OPENAI_API_KEY",),
        ("authorization", "Bearer "),
        "/v1",
    ),
    Home(
        "anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_BASE_URL",
        ("ANTHROPIC_API_KEY",),
        ("x-api-key", ""),
    ),
    Home(
        "gemini",
        "https://generativelanguage.googleapis.com",
        "GOOGLE_GEMINI_BASE_URL",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("x-goog-api-key", ""),
    ),
)
"""The providers whose protocols are known."""


def home_of(protocol: str, homes: Sequence[Home] = HOMES) -> Home:
    """The provider that a protocol, by its name, is of."""
    return next(home for home in homes if protocol.startswith(home.name))


def homes_in(environment: Mapping[str, str], given: Sequence[str] = ()) -> tuple[Home, ...]:
    """The providers where `given`, as ``openai=https://…``, says that they are, else where the
    user's environment does, else at their public addresses. UsageError for what is no address.
    """
    said = {home.name: (home.variable, environment.get(home.variable, "")) for home in HOMES}
    for each in given:
        name, mark, address = each.partition("=")
        if not mark:
            raise UsageError(f"{each!r} names no address; expected one as in openai=https://…")
        if name not in said:
            raise UsageError(unknown("provider", name, said))
        said[name] = (name, address)
    return tuple([_moved(home, *said[home.name]) for home in HOMES])


def _moved(home: Home, source: str, address: str) -> Home:
    if not address:
        return home
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        raise UsageError(
            f"{source} is no address of a provider; expected http:// or https://, a host and a "
            f"path, as in {home.base}"
        )
    return replace(home, base=address.rstrip("/"))
