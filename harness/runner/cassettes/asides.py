"""Requests beside a conversation: how a script tells them from it, and what they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from msgspec.structs import replace

from harness.core.messages import ModelRequest
from harness.fakes.place import holds
from harness.fakes.script import AlsoWhen

_LINES = 12
"""How many lines of a text are tried as what tells it from others."""
_LONGEST = 60
"""How many characters of such a line are taken."""
_NAMES = {"title": "title", "summar": "summary", "topic": "topic", "task": "task"}
"""What a conversation beside the main one is called, by a word that it was asked with."""


def condition(own: Sequence[ModelRequest], others: Sequence[ModelRequest]) -> AlsoWhen | None:
    """What holds of all of `own` and of none of `others`; None where nothing simple does."""
    for when in _candidates(own[0], len(own) == 1):
        if all(holds(when, each) for each in own) and not any(holds(when, each) for each in others):
            return when
    return None


def _candidates(request: ModelRequest, alone: bool) -> Iterator[AlsoWhen]:  # noqa: FBT001
    systems = [AlsoWhen(system_contains=line) for line in _lines(request.system)]
    users = [each.text for each in request.messages if each.role == "user"]
    last = request.messages[-1].text if request.messages and alone else ""
    lasts = [AlsoWhen(message_contains=line) for line in _lines(last)]
    firsts = [AlsoWhen(user_contains=line) for line in _lines(users[0] if users else "")]
    model = [AlsoWhen(model=request.model)]
    yield from (*systems, *lasts, *firsts, *model)
    for one, other in product(systems, (*firsts, *model)):
        yield replace(one, user_contains=other.user_contains, model=other.model)
    for one in firsts:
        yield replace(one, model=request.model)


def _lines(text: str) -> list[str]:
    """The lines of a text that may tell it from others, each as much as is needed."""
    lines = [_short(line.strip()) for line in text.splitlines()]
    return [line for line in dict.fromkeys(lines) if line][:_LINES]


def _short(line: str) -> str:
    """The beginning of a line, up to the end of a word."""
    return line if len(line) <= _LONGEST else line[:_LONGEST].rpartition(" ")[0] or line[:_LONGEST]


def name_of(own: Sequence[ModelRequest], taken: Sequence[str]) -> str:
    """A name for a conversation that no other has."""
    first = own[0]
    said = f"{first.system} {first.messages[-1].text if first.messages else ''}".lower()
    name = next((name for word, name in _NAMES.items() if word in said), "aside")
    count = sum(each.partition("_")[0] == name for each in taken)
    return f"{name}_{count + 1}" if count else name
