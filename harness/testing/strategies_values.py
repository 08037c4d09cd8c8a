"""The small values that the strategies are made of.

Making a strategy costs more than drawing from it, so each stands here once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from harness.core.durations import NS_PER_UNIT, SECOND
from harness.core.errors import UsageError, unknown
from harness.core.json_text import Json
from harness.core.messages import Usage

T = TypeVar("T")

MS = NS_PER_UNIT["ms"]
TOOL_NAMES = ("clock", "weather", "pay", "mail")
_LONG = "a long sentence that says little, " * 6
_PLAIN = ("Hello.", "What time is it?", "Weather in Paris?", "And in Oslo?", "Go on.")
_ODD = ("", " ", "é 漢字 😀", "two\nlines", "14:05", "No", "\ud800", _LONG)


def weighted(*shares: tuple[T, int]) -> SearchStrategy[T]:
    """One of some values, each as often as its share says; shrinks to the first."""
    return st.sampled_from([value for value, share in shares for _ in range(share)])


@cache
def below(bound: int) -> SearchStrategy[int]:
    """A whole number from 0 to `bound` - 1."""
    return st.integers(0, bound - 1)


def pick(draw: DrawFn, options: Sequence[T]) -> T:
    """One of `options`, which are not known beforehand; shrinks to the first."""
    return options[draw(below(len(options)))]


def check_count(option: str, given: object, least: int) -> None:
    """UsageError where an option is no whole number from `least` on."""
    if type(given) is not int or given < least:
        raise UsageError(f"{option} is a whole number from {least} on; found {given!r}")


def check_names(
    option: str, given: Sequence[str], known: Sequence[str] | None = None, *, least: int = 1
) -> None:
    """UsageError where an option is no list of names that are `known`, each once, or of too few."""
    if isinstance(given, str):
        raise UsageError(f"{option} is a list of names; found {given!r}, write [{given!r}]")
    if len(given) < least:
        raise UsageError(f"{option} names nothing; name one at least")
    for at, name in enumerate(given):
        if known is not None and name not in known:
            raise UsageError(f"{option}: {unknown('name', name, known)}")
        if name in given[:at]:
            raise UsageError(f"{option} names {name!r} twice")


TEXTS = weighted(*[(text, 3) for text in _PLAIN], *[(text, 1) for text in _ODD])
"""What people and models say: mostly short and plain, at times empty, odd or long."""

SPANS = weighted((0, 3), (10 * MS, 2), (50 * MS, 2), (SECOND, 1), (2 * SECOND, 1))
"""How long something takes, in virtual nanoseconds."""

_ODD_ARGUMENTS: Json = {"city": "Paris", "days": [1, {"from": None}], "": 0.5}
ARGUMENTS: SearchStrategy[Json] = st.sampled_from(
    [{}, {"n": 1}, {"city": "Paris"}, {"city": "Oslo"}, _ODD_ARGUMENTS]
)
"""Arguments of a tool call: an object."""

VALUES: SearchStrategy[Json] = st.sampled_from(
    ["sunny", "14:05", 1, None, "", [], {"ok": True}, _LONG]
)
"""What a tool returns: any JSON value."""

USAGES = st.sampled_from([None, None, Usage(10, 2, 12), Usage(3, 0, 3), Usage(7, 5, 12, 2, 1)])
"""What a provider counted for one reply, where it did."""

BOTH = st.booleans()
SELDOM = weighted((False, 9), (True, 1))
AT_TIMES = weighted((False, 4), (True, 1))
