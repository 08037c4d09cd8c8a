"""A reply written block by block, where its parts only say how far each kind of text has come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from harness.core.messages import Text, Thinking
from harness.wire.codec import Cut

B = TypeVar("B")


class Blockwise(ABC, Generic[B]):
    """Writes blocks in their order: a part brings more of its text or reasoning, and with it all
    blocks that stand before that.
    """

    def __init__(self, blocks: Sequence[B], cut: Cut) -> None:
        self._blocks = blocks
        self._cut = cut
        self._at = 0
        self._said = 0
        self._opened = False

    @abstractmethod
    def _start(self, block: B) -> Iterator[bytes]:
        """The frames that begin a block."""

    @abstractmethod
    def _piece(self, block: B, piece: str) -> bytes:
        """The frame with a piece of text or of reasoning."""

    @abstractmethod
    def _stop(self, block: B) -> Iterator[bytes]:
        """The frames behind all text of a block: the rest of it, and its end."""

    def _say(self, kind: type[Text | Thinking], count: int) -> Iterator[bytes]:
        """Write on until `count` more characters of a kind are out, or there are no more."""
        while count and (at := self._next(kind)) is not None:
            while self._at < at:
                yield from self._finish()
            yield from self._open()
            block = self._blocks[at]
            text = said_in(block)
            piece = text[self._said : self._said + count]
            yield self._piece(block, piece)
            self._said += len(piece)
            count -= len(piece)
            if self._said == len(text):
                yield from self._finish()

    def _say_all(self) -> Iterator[bytes]:
        """Write all that is left."""
        while self._at < len(self._blocks):
            yield from self._finish()

    def _next(self, kind: type[Text | Thinking]) -> int | None:
        """The block that the next character of a kind stands in."""
        said = self._said
        for at in range(self._at, len(self._blocks)):
            block = self._blocks[at]
            if isinstance(block, kind) and len(block.text) > said:
                return at
            said = 0
        return None

    def _open(self) -> Iterator[bytes]:
        if not self._opened:
            self._opened = True
            yield from self._start(self._blocks[self._at])

    def _finish(self) -> Iterator[bytes]:
        """Write what is left of a block, and stop it."""
        yield from self._open()
        block = self._blocks[self._at]
        for piece in self._cut(said_in(block)[self._said :]):
            yield self._piece(block, piece)
        yield from self._stop(block)
        self._at += 1
        self._said = 0
        self._opened = False


def said_in(block: object) -> str:
    """The text or the reasoning of a block; "" where it is something else."""
    return block.text if isinstance(block, Text | Thinking) else ""
