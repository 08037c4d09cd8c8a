"""Chance in a run: streams of numbers, the same in every run unless a choice varies them."""

from __future__ import annotations

from random import Random
from typing import Final

from harness.core.choices import Choices
from harness.sim.uuids import Uuids

SOURCE: Final = "entropy"
"""The source of the choices; their labels are the names of the streams."""

VARIANTS: Final = 8
"""How many sequences a stream may turn out to be; 0 is the ordinary one."""


class Entropy:
    """The streams of one run: one for each kind of call, so that none shifts another.

    A stream is made when it is first asked for, since seeding one takes as long as twenty steps.
    """

    __slots__ = ("_streams", "_uuids", "choices")

    def __init__(self, choices: Choices | None) -> None:
        self.choices = choices
        self._streams: dict[str, Random] = {}
        self._uuids: Uuids | None = None

    def stream(self, name: str) -> Random:
        """The stream of that name."""
        found = self._streams.get(name)
        if found is None:
            choices = self.choices
            variant = 0 if choices is None else choices.choose(SOURCE, name, VARIANTS)
            # Text is hashed, so that streams have nothing in common.
            found = self._streams[name] = Random(f"{name} {variant}")  # noqa: S311
        return found

    @property
    def uuids(self) -> Uuids:
        """The UUIDs of the run, from a stream of their own."""
        if self._uuids is None:
            self._uuids = Uuids(self.stream("uuid"))
        return self._uuids
