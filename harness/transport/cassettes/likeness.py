"""How alike two values are, cheaply: by the words and the values that both have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.core.json_plain import dumps
from harness.core.json_text import Json

MOST = 20_000
"""How many words and values of one value are looked at."""
_READ = 4_000
"""How many characters of one text are read as words."""

Profile = Counter[tuple[str, str]]
"""How often each word, or value, stands under each name."""


def profile(value: Json, most: int = MOST) -> Profile:
    """What is looked at of a value."""
    found: Profile = Counter()
    for token in _tokens(value):
        found[token] += 1
        most -= 1
        if not most:
            break
    return found


def likeness(one: Profile, other: Profile) -> float:
    """From 0, nothing is the same, to 1, all that is looked at.

    >>> likeness(profile({"a": "in Rome"}), profile({"a": "in Paris"}))
    0.5
    """
    both = sum([min(count, other[token]) for token, count in one.items()])
    total = one.total() + other.total()
    return 2 * both / total if total else 1.0


def _tokens(value: Json) -> Iterator[tuple[str, str]]:
    left: list[tuple[str, Json]] = [("", value)]
    while left:
        name, each = left.pop()
        if isinstance(each, dict):
            left += reversed(each.items())
        elif isinstance(each, list):
            left += [(name, inner) for inner in reversed(each)]
        elif isinstance(each, str):
            yield from [(name, word) for word in each[:_READ].split()]
        else:
            yield name, dumps(each)
