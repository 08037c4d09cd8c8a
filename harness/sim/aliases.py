"""Names that users' modules hold of functions with stand-ins, as `from time import sleep` does.

And of locks, which were made for real: a thread of a run waits for them in virtual time too.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from harness.sim import guards, thread_calls, virtual
from harness.sim.locks import Lock
from harness.sim.swaps import ModuleSwaps, Swaps, ready

_STAND_INS: dict[int, Any] = {
    **{
        id(getattr(module, name)): guards.stand_in(guard, name)({name: getattr(module, name)})
        for module, functions in guards.FUNCTIONS
        for name, guard in functions.items()
        if hasattr(module, name)
    },
    **{
        id(getattr(module, name)): make({name: getattr(module, name)})
        for module, functions in thread_calls.FUNCTIONS
        for name, make in functions.items()
    },
    **{
        id(getattr(module, name)): stand_in
        for module, functions in virtual.FUNCTIONS
        for name, stand_in in functions.items()
    },
}
"""By the identity of the functions; they themselves live as long as the process."""

LOCKS = frozenset({type(_thread.allocate_lock()), type(_thread.RLock())})
"""The types of the real locks."""

LEFT_ALONE = sys.stdlib_module_names | {__name__.partition(".")[0], "pydantic"}
"""Packages that keep what they hold: the standard library, and ours, which measures real time.
Pydantic finishes a class when it is first used, under a lock: only the first run of a process would
have others go first there.
"""


class Aliases:
    """The names at the top of users' modules that are functions with stand-ins, or locks.

    Each module is looked through once, before the first run after it was loaded. Not found: names
    that are set later, and functions that are held elsewhere, as in a default value, a class or a
    closure.
    """

    def __init__(self) -> None:
        self._count = 0
        self._newest: object = None
        self._seen: dict[str, int] = {}
        self._found: dict[str, Swaps] = {}

    @property
    def up_to_date(self) -> bool:
        """Whether no module was loaded since the last search."""
        newest = next(reversed(sys.modules.values()))
        return newest is self._newest and len(sys.modules) == self._count

    def swaps(self) -> list[Swaps]:
        """The stand-ins for all names that are found by now."""
        if not self.up_to_date:
            self._newest = next(reversed(sys.modules.values()))
            self._search()
        return list(self._found.values())

    def _search(self) -> None:
        modules = dict(sys.modules)
        self._count = len(modules)
        for name in self._seen.keys() - modules.keys():
            self._forget(name)
        for name, module in modules.items():
            if self._seen.get(name) != id(module):
                self._forget(name)
                self._seen[name] = id(module)
                if name.partition(".")[0] not in LEFT_ALONE:
                    self._look_through(name, names_of(module))

    def _forget(self, name: str) -> None:
        self._seen.pop(name, None)
        self._found.pop(name, None)

    def _look_through(self, module: str, names: dict[str, Any]) -> None:
        values = list(names.values())
        if _STAND_INS.keys().isdisjoint(map(id, values)) and LOCKS.isdisjoint(map(type, values)):
            return
        stand_ins = {name: ready(stand_in) for name, stand_in in _stand_ins(list(names.items()))}
        self._found[module] = ModuleSwaps(names, stand_ins, patches=False)


def _stand_ins(held: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in held:
        if id(value) in _STAND_INS:
            yield name, _STAND_INS[id(value)]
        elif type(value) in LOCKS:
            yield name, Lock(value)


def names_of(module: Any) -> dict[str, Any]:
    """The names of a module, or of an object; one that loads itself when it is touched is not
    touched.
    """
    try:
        names = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return names if isinstance(names, dict) else {}
