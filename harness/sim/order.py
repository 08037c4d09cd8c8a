"""Sets that keep the order of insertion, where libraries go through sets that hash by address."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, MutableSet
from typing import Any


class OrderedSet(MutableSet[Any]):
    """A set that is gone through in the order of insertion."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items: dict[Any, None] = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self._items)})"

    def add(self, value: Any) -> None:
        """Put `value` at the end, unless it is there."""
        self._items[value] = None

    def discard(self, value: Any) -> None:
        """Take `value` out, if it is there."""
        self._items.pop(value, None)


def set_of_awaitables(items: Iterable[Any] = ()) -> Any:
    """What `set` makes of tasks and futures, which hash by number; coroutines stay in order.

    `asyncio.as_completed` makes its tasks in the order of a set of coroutines.
    """
    given = list(items)
    if all(isinstance(item, asyncio.Future) for item in given):
        return set(given)
    return list(OrderedSet(given))
