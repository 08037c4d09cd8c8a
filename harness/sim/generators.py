"""Async generators in the order they were first iterated."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import AsyncGeneratorType
from typing import Any, TypeAlias

Generator: TypeAlias = AsyncGeneratorType[Any, Any]


class Generators:
    """The async generators that a loop has seen, held weakly and in order.

    Stands in for the weak set that stock asyncio keeps, whose order is that of addresses.
    """

    __slots__ = ("_refs",)

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[Generator]] = {}

    def add(self, generator: Generator) -> None:
        """Remember a generator as the newest."""
        key = id(generator)
        self._refs.pop(key, None)  # of a dead one whose address is used again
        self._refs[key] = weakref.ref(generator)

    def discard(self, generator: Generator) -> None:
        """Forget a generator."""
        self._refs.pop(id(generator), None)

    def clear(self) -> None:
        """Forget all."""
        self._refs.clear()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Generator]:
        for ref in list(self._refs.values()):
            generator = ref()
            if generator is not None and generator.ag_frame is not None:
                yield generator


def never_free(thing: object) -> None:
    """Keep a coroutine or generator whose code goes on when it is closed.

    To free it, or to end the process, would run it again and print an error at a time nobody can
    tell.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
