"""What looks like a secret by itself, and what stands in the place of one."""

from __future__ import annotations

import re

_VISIBLE = re.compile(r"[!-~]+")
_CODE = re.compile(r"[()\[\]{}<>$,;]")
LEAST = 8
"""How many characters a secret has that is known by its looks alone."""
_LONG = 16
_LONG_WORD = re.compile(r"[A-Za-z0-9]{4,}")
_MIXED = 7
"""How many letters and digits stand mixed in what nobody would call anything by."""


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
