"""What breaks one rule of a provider, and where in a conversation it may stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec import Struct

from harness.core.json_text import Json
from harness.testing.strategies_values import below, pick
from harness.wire.http import Headers
from harness.wire.strict.rule import Issued

Place: TypeAlias = Literal["anywhere", "first", "last", "alone"]


class Fault(Struct, frozen=True):
    """What breaks one rule: messages as the provider spells them, and what else the body says.

    `place` says where the messages may stand in a conversation that is valid by itself; ``alone``
    is without one. `model` None is the provider's usual one. `issued` is what the provider
    remembers, where the rule depends on it; `headers` are sent in place of those of that name.
    """

    messages: tuple[Json, ...] = ()
    more: Mapping[str, Json] = {}
    place: Place = "anywhere"
    model: str | None = None
    issued: Issued | None = None
    headers: Headers = ()


Faults: TypeAlias = Mapping[str, Callable[[DrawFn], Fault]]
"""By the rule's name, what draws something that breaks it."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ODD = st.sampled_from(["a.b", "two words", "ä", "a/b", "functions.f:0"])
"""Names and ids with characters that providers do not take."""


def long_name(draw: DrawFn, limit: int) -> str:
    """A name of plain letters that is longer than `limit`, by a little or more."""
    return "n" * (limit + 1 + draw(below(30)))


def some(draw: DrawFn, ids: list[str]) -> list[str]:
    """Some of `ids`, in their order, and never all: none is left out most simply."""
    missing = pick(draw, ids)
    return [each for each in ids if each != missing and not draw(st.booleans())]


def call_ids(draw: DrawFn, least: int = 1) -> list[str]:
    """The ids of some calls of one reply."""
    return [f"bad_{n}" for n in range(1, least + 1 + draw(below(3)))]
