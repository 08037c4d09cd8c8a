"""Values of a cassette's file, each with its place: what is asked of one and is not so is noted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from harness.core.errors import hint, nearest
from harness.core.located import ListNode, MapNode, Node, Place, Problems, Scalar, describe

W = TypeVar("W", bound=str)

LONGEST = 1_000_000_000
"""How many seconds an interaction may take, and a session."""


class Wrong(Exception):
    """A value is not what it must be; the problem is noted."""


class Found:
    """A value, its name in messages such as ``interactions[2].request``, and where it stands.

    `node` is None where there is none; `place` is then where it would stand.
    """

    __slots__ = ("name", "node", "place", "problems")

    def __init__(self, node: Node | None, name: str, problems: Problems, place: Place) -> None:
        self.node = node
        self.name = name
        self.problems = problems
        self.place = place

    def __getitem__(self, key: str) -> Found:
        """A member of a mapping, which may be missing."""
        entry = self.mapping().entries.get(key)
        name = f"{self.name}.{key}" if self.name else key
        if entry is None:
            return Found(None, name, self.problems, self.place)
        return Found(entry.value, name, self.problems, entry.value)

    @property
    def there(self) -> bool:
        """Whether there is such a value, which is not null."""
        missing = self.node is None or (isinstance(self.node, Scalar) and self.node.value is None)
        return not missing

    def mapping(self) -> MapNode:
        """The value, which must be a mapping."""
        if isinstance(self.node, MapNode):
            return self.node
        raise self.wrong("a mapping")

    def items(self) -> list[Found]:
        """The values of a list."""
        if not isinstance(self.node, ListNode):
            raise self.wrong("a list")
        return [
            Found(node, f"{self.name}[{n}]", self.problems, node)
            for n, node in enumerate(self.node.items)
        ]

    def text(self) -> str:
        """The value, which must be a text; bytes are one of Latin-1, as headers are."""
        match self.node:
            case Scalar(value=str(text)):
                return text
            case Scalar(value=bytes(data)):
                return data.decode("latin-1")
            case Scalar(value=int() | float()):
                raise self.wrong("a text", "; put it in quotes")
            case _:
                raise self.wrong("a text")

    def whole(self, least: int, most: int) -> int:
        """The value, which must be a whole number in these bounds."""
        value = self._number()
        if isinstance(value, int) and least <= value <= most:
            return value
        raise self.wrong(f"a whole number from {least} to {most}")

    def seconds(self) -> int:
        """The value, which must be a number of seconds, as nanoseconds."""
        value = self._number()
        if value is not None and 0 <= value <= LONGEST:
            return round(value * 1_000_000) * 1000
        raise self.wrong(f"seconds, a number from 0 to {LONGEST}")

    def _number(self) -> int | float | None:
        value = self.node.value if isinstance(self.node, Scalar) else None
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def word(self, known: Sequence[W], what: str) -> W:
        """The value, which must be one of the words that are known."""
        text = self.text()
        for each in known:
            if text == each:
                return each
        guess = hint(nearest(text, known))
        raise self.refused(f"unknown {what} {text!r}{guess}; known: {', '.join(known)}")

    def meant(self, key: str) -> str:
        """The hint at what stands in a mapping where `key` should, if anything looks like it."""
        return hint(nearest(key, [each for each in self.mapping().entries if each != key]))

    def only(self, known: Iterable[str]) -> None:
        """Note the keys of a mapping that are not known; Wrong where there are any."""
        names = list(known)
        entries = self.mapping().entries
        unknown = [key for key in entries if key not in names]
        for key in unknown:
            guess = hint(nearest(key, names))
            says = f"unknown key {key!r} in {self.name}{guess}; known: {', '.join(names)}"
            self.problems.add(entries[key], says)
        if unknown:
            raise Wrong

    def wrong(self, expected: str, next_step: str = "") -> Wrong:
        """What to raise where the value should have been something else."""
        found = "is missing" if self.node is None else f"found {describe(self.node)}"
        if self.node is None:
            return self.refused(f"{found}; expected {expected}")
        return self.refused(f"expected {expected}, {found}{next_step}")

    def refused(self, message: str) -> Wrong:
        """What to raise where the value is wrong, with a message of its own."""
        self.problems.add(self.place, f"{self.name}: {message}" if self.name else message)
        return Wrong()
