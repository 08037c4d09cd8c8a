"""A request as Anthropic sees it: turns of blocks, whatever else is there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from msgspec import Struct

from harness.core.json_text import Json
from harness.wire.strict.rule import Case

_GENERATION = re.compile(r"claude-(?:[a-z]+-)*(\d+)(?:[-.](\d{1,2})(?!\d))?")
_NEWEST = (99, 0)
THINKING = frozenset({"thinking", "redacted_thinking"})
"""The kinds of blocks that hold reasoning."""


class Block(Struct, frozen=True):
    """A block, and where it stands; its kind is "" where it says none."""

    message: int
    index: int
    kind: str
    value: dict[str, Json]

    @property
    def place(self) -> str:
        """Where it stands, in the provider's words."""
        return f"messages.{self.message}.content.{self.index}"

    def text(self, key: str) -> str:
        """A member that is a text; "" where it is none."""
        return text_in(self.value, key)


class Turn(Struct, frozen=True):
    """Messages of one role that follow each other, as one; `last` is the number of the last."""

    role: str
    blocks: tuple[Block, ...]
    last: int

    def of(self, kind: str) -> list[Block]:
        """Its blocks of a kind, in order."""
        return [block for block in self.blocks if block.kind == kind]


def messages_in(case: Case) -> list[dict[str, Json]]:
    """The messages that are objects."""
    return objects_in(case.body.get("messages"))


def turns_of(case: Case) -> list[Turn]:
    """The conversation; a content that is a text is one block, an empty one is none."""
    return case.once(_turns)


def _turns(case: Case) -> list[Turn]:
    turns: list[Turn] = []
    numbered = enumerate(messages_in(case))
    for role, group in groupby(numbered, lambda each: text_in(each[1], "role")):
        number, blocks = 0, list[Block]()
        for number, message in group:
            blocks += _blocks(number, message.get("content"))
        turns.append(Turn(role, tuple(blocks), number))
    return turns


def blocks_of(case: Case, role: str) -> Iterator[Block]:
    """All blocks of a role, in order."""
    return (block for turn in turns_of(case) if turn.role == role for block in turn.blocks)


def answered(case: Case) -> Iterator[tuple[Turn, Turn | None]]:
    """Each turn of the model's, with the user's turn right after it, if that is what comes."""
    turns: Sequence[Turn | None] = [*turns_of(case), None]
    for turn, after in pairwise(turns):
        if turn is not None and turn.role == "assistant":
            yield turn, after if after is not None and after.role == "user" else None


def generation(model: str) -> tuple[int, int]:
    """Which generation a model is of; a name that does not tell is taken for the newest.

    >>> generation("claude-opus-4-7"), generation("claude-sonnet-4-20250514")
    ((4, 7), (4, 0))
    >>> generation("claude-3-5-haiku-20241022"), generation("anthropic.claude-sonnet-5-v1:0")
    ((3, 5), (5, 0))
    """
    found = _GENERATION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else _NEWEST


def objects_in(value: Json) -> list[dict[str, Json]]:
    """The objects in a list; none where it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text_in(value: dict[str, Json], key: str) -> str:
    """A member that is a text; "" where it is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _blocks(number: int, content: Json) -> Iterator[Block]:
    if isinstance(content, str) and content:
        yield Block(number, 0, "text", {"type": "text", "text": content})
    if isinstance(content, list):
        for index, value in enumerate(content):
            if isinstance(value, dict):
                yield Block(number, index, text_in(value, "type"), value)
