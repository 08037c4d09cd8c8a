"""A request as Gemini sees it: turns of parts, whatever else is there."""

from __future__ import annotations

from itertools import groupby

from msgspec import Struct

from harness.core.json_text import Json
from harness.wire.gemini_words import spelled
from harness.wire.strict.anthropic_turns import objects_in
from harness.wire.strict.rule import Case


class Part(Struct, frozen=True):
    """A part, and the number of its content."""

    content: int
    value: dict[str, Json]

    def get(self, key: str) -> Json:
        """A member, in either spelling; None where there is none."""
        return self.value.get(spelled(self.value, key))

    def has(self, key: str) -> bool:
        """Whether there is such a member, in either spelling."""
        return self.get(key) is not None


class Turn(Struct, frozen=True):
    """Contents of one side that follow each other, as one."""

    of_model: bool
    parts: tuple[Part, ...]

    @property
    def calls(self) -> list[Part]:
        """The model's calls; none in a turn that is not its own."""
        return [part for part in self.parts if self.of_model and part.has("functionCall")]

    @property
    def responses(self) -> list[Part]:
        """What functions gave; nothing in a turn of the model's."""
        return [part for part in self.parts if not self.of_model and part.has("functionResponse")]


def contents_of(case: Case) -> list[dict[str, Json]]:
    """The contents that are objects."""
    return objects_in(case.body.get("contents"))


def turns_of(case: Case) -> list[Turn]:
    """The conversation. The vendor's own library keeps each frame of a reply as a content, so these
    are one turn.
    """
    return case.once(_turns)


def _turns(case: Case) -> list[Turn]:
    turns: list[Turn] = []
    numbered = enumerate(contents_of(case))
    for of_model, group in groupby(numbered, lambda each: each[1].get("role") == "model"):
        parts = [
            Part(number, each)
            for number, content in group
            for each in objects_in(content.get("parts"))
        ]
        turns.append(Turn(of_model, tuple(parts)))
    return turns
