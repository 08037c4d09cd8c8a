"""Putting something in another's place for as long as a run lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

StandIns: TypeAlias = Mapping[str, Callable[[Mapping[str, Any]], Any]]
"""By name, what makes each stand-in; it is given what they stand in for, while they do."""


class Swaps(Protocol):
    """Stand-ins that are placed and lifted together."""

    def place(self) -> None:
        """Put the stand-ins in their places."""

    def lift(self) -> None:
        """Put back what was there, unless somebody has put something else there since."""


def ready(stand_in: Any) -> Callable[[Mapping[str, Any]], Any]:
    """What makes a stand-in that is made already, and that knows what it stands in for."""
    return lambda _real: stand_in


class ModuleSwaps:
    """Stand-ins for names of a module; names that it does not have are left alone.

    A stand-in that is in its place already was put back there by somebody who had found it there,
    as a test's patch does that lasts longer than the run; it stands in for what it did before.

    With `only`, a name counts as there while it is that object, by identity; without, whatever it
    is, which may be a test's own patch. There are many names, and each run places and lifts them
    all: where nobody has patched any, they are read as one and written as one.
    """

    __slots__ = (
        "_names",
        "_only",
        "_patched",
        "_placed",
        "_read",
        "_real",
        "_stand_ins",
        "_there",
        "_usual",
    )

    def __init__(
        self, names: dict[str, Any], stand_ins: StandIns, only: Mapping[str, Any] | None = None
    ) -> None:
        self._names = names
        self._only = only
        self._usual = {name: names[name] for name in stand_ins if name in names}
        self._real = dict(self._usual)
        self._stand_ins = {name: stand_ins[name](self._real) for name in self._usual}
        self._read = itemgetter(*self._usual)
        self._there = self._read(self._usual)
        self._placed = self._read(self._stand_ins)
        self._patched = False
        """Whether `_real` may be other than what is usual."""

    def place(self) -> None:
        """Put the stand-ins in their places."""
        names, real, only = self._names, self._real, self._only
        try:
            if self._read(names) == self._there:
                names.update(self._stand_ins)
                if self._patched:
                    real.update(self._usual)
                    self._patched = False
                return
        except KeyError:
            pass  # somebody took one away
        self._patched = True
        for name, stand_in in self._stand_ins.items():
            found = names.get(name)
            if found is None or found is stand_in or (only is not None and found is not only[name]):
                continue
            real[name] = found
            names[name] = stand_in

    def lift(self) -> None:
        """Put back what was there, unless somebody has put something else there since."""
        names, real = self._names, self._real
        try:
            if self._read(names) == self._placed:
                names.update(real)
                return
        except KeyError:
            pass
        for name, stand_in in self._stand_ins.items():
            if names.get(name) is stand_in:
                names[name] = real[name]


class Swap:
    """A stand-in for one name of a module or a class that may not have the name itself."""

    __slots__ = ("_inherited", "_name", "_own", "_owner", "_real", "_stand_in")

    def __init__(self, owner: Any, name: str, make: Callable[[Mapping[str, Any]], Any]) -> None:
        self._owner = owner
        self._own = vars(owner)
        self._name = name
        self._real: dict[str, Any] = {}
        self._stand_in = make(self._real)
        self._inherited = False

    def place(self) -> None:
        """Put the stand-in before what is there now, which may be a test's own patch."""
        owner, name = self._owner, self._name
        if self._own.get(name) is not self._stand_in:
            self._inherited = name not in self._own
            self._real[name] = getattr(owner, name, None)
            setattr(owner, name, self._stand_in)

    def lift(self) -> None:
        """Put back what was there, unless somebody has put something else there since."""
        owner, name = self._owner, self._name
        if self._own.get(name) is not self._stand_in:
            return
        if self._inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, self._real[name])
