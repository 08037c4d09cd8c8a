"""Locks that were made before a run and are held: what a thread that stands still may wait for.

A run sees locks that are made while it lasts, and those that names at the top of modules stand for.
One that an object was given before, it does not see: a thread waits for that for real.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from types import ModuleType
from typing import Any

from harness.sim.aliases import LEFT_ALONE, LOCKS, names_of

_NAMED = 3
"""How many are named."""
_LOOKED_AT = 100_000
"""At how many values one search looks."""


def held() -> list[str]:
    """The names of those that modules of users and of libraries hold, or objects and classes
    there: ``agent.STORE._lock``; the first few of them.
    """
    found: dict[int, str] = {}
    for path, value in islice(_values(), _LOOKED_AT):
        lock = _lock_of(value)
        if lock is not None and repr(lock).startswith("<locked"):
            found.setdefault(id(lock), path)
            if len(found) == _NAMED:
                break
    return list(found.values())


def _values() -> Iterator[tuple[str, Any]]:
    """The values of modules and, one level deep, of their objects and of the classes they define,
    with their names.
    """
    for module in sorted(sys.modules):
        if module.partition(".")[0] in LEFT_ALONE:
            continue
        for name, value in list(names_of(sys.modules[module]).items()):
            yield f"{module}.{name}", value
            for attribute, inner in _attributes(module, value):
                yield f"{module}.{name}.{attribute}", inner


def _attributes(module: str, value: Any) -> list[tuple[str, Any]]:
    kind = type(value)  # an object may say to be of another class, which is not asked for
    if kind is ModuleType:
        return []
    if issubclass(kind, type):
        return list(vars(value).items()) if value.__module__ == module else []
    return list(names_of(value).items())


def _lock_of(value: Any) -> Any:
    """The real lock that a value is, or stands on; None for any other value."""
    if issubclass(type(value), threading.Event | threading.Semaphore):
        value = names_of(value).get("_cond")
    elif issubclass(type(value), queue.Queue):
        value = names_of(value).get("mutex")
    if issubclass(type(value), threading.Condition):
        value = names_of(value).get("_lock")
    return value if type(value) in LOCKS else None
