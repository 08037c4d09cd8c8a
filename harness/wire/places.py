"""Places in JSON: a small language of paths, and which of them a walk is at."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from types import EllipsisType
from typing import TypeAlias

from harness.core.errors import UsageError
from harness.core.json_text import dumps, loads

Step: TypeAlias = str | int | EllipsisType | None
"""One step of a path: a member, an element, any element (None), or any number of steps (...)."""
Places: TypeAlias = frozenset[tuple[str, tuple[Step, ...]]]
"""What is still to go to each place that somebody looks for, each with the name it is called."""

NOWHERE: Places = frozenset()

_STEP = re.compile(
    r"(?:(?<!.)|\.)(\*\*|[^.\[\]*\"]+)|\[(\*|\d{1,9}|\"(?:[^\"\\]|\\.)*\")\]", re.DOTALL
)
_PLAIN = re.compile(r"[^.\[\]*\"\s]+")
_HELP = (
    "a path is made of members (a.b), elements (a[0]), any element (a[*]), any depth (**.b) and "
    'members of any name (a["b.c"])'
)


def steps_of(path: str) -> tuple[Step, ...]:
    """The steps of a path; UsageError where it is none.

    >>> steps_of("messages[*].name"), steps_of('**["a.b"]')
    (('messages', None, 'name'), (Ellipsis, 'a.b'))
    """
    steps: list[Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (at == 0 and path[0] == "."):
            raise UsageError(f"{path!r} is no path, at {path[at:][:40]!r}: {_HELP}")
        name, within = found.groups()
        at = found.end()
        if name is not None:
            steps.append(... if name == "**" else name)
        elif within == "*":
            steps.append(None)
        else:
            steps.append(loads(within))
    if not steps or steps[-1] is ...:
        raise UsageError(f"{path!r} names no place at its end: {_HELP}")
    return tuple(steps)


def places(called: str, paths: Iterable[str]) -> Places:
    """The places that paths lead to, under one name."""
    return frozenset([(called, steps_of(path)) for path in paths])


@lru_cache(maxsize=4096)
def below(given: Places, key: str | int) -> Places:
    """The places seen from a member, or an element, of where they were seen from."""
    found = set()
    for called, steps in given:
        ahead = steps
        while ahead and ahead[0] is ...:
            found.add((called, ahead))
            ahead = ahead[1:]
        if ahead and (ahead[0] == key or (ahead[0] is None and isinstance(key, int))):
            found.add((called, ahead[1:]))
    return frozenset(found)


@lru_cache(maxsize=4096)
def here(given: Places) -> frozenset[str]:
    """The names of the places that are reached."""
    return frozenset([called for called, steps in given if not steps])


def joined(path: str, key: str | int) -> str:
    """The path of a member, or an element, of what stands at a path.

    >>> joined("a", "b"), joined("a", 0), joined("", "a.b")
    ('a.b', 'a[0]', '["a.b"]')
    """
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN.fullmatch(key):
        return f"{path}[{dumps(key)}]"
    return f"{path}.{key}" if path else key
