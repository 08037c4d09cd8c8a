"""Putting something in another's place for as long as a run lasts.

What is found in a place is mostly what is usual there, and else a patch: a test's, or a library's
that watches calls. A stand-in for a patch is one of its own, made for it. So the one for what is
usual never stands in for a patch, and may turn up later where somebody puts it back who had found
it in its place, as a test's patch does that lasts longer than the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

Make: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""What makes a stand-in; it is given, by its name, what it is to stand in for."""
StandIns: TypeAlias = Mapping[str, Make]


Spot: TypeAlias = tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], Any], Any]
"""Names, how to read some of them, and what is read while all stand-ins are in their places."""


class Swaps(Protocol):
    """Stand-ins that are placed and lifted together."""

    @property
    def spot(self) -> Spot:
        """By which to see whether they are in their places; reading may be a KeyError."""

    def place(self) -> None:
        """Put the stand-ins in their places."""

    def lift(self) -> None:
        """Put back what was there, unless somebody has put something else there since."""


def ready(stand_in: Any) -> Make:
    """What makes a stand-in that is made already, and that knows what it stands in for."""
    return lambda _real: stand_in


class ModuleSwaps:
    """Stand-ins for names of a module; names that it does not have are left alone.

    With `patches`, a stand-in is placed before a patch too; without, a patch is left as it is.
    There are many names, and each run places and lifts them all: where nobody has patched any,
    they are read as one and written as one.
    """

    __slots__ = (
        "_make",
        "_names",
        "_over",
        "_patches",
        "_placed",
        "_read",
        "_stand_ins",
        "_there",
        "_usual",
    )

    def __init__(self, names: dict[str, Any], make: StandIns, *, patches: bool = True) -> None:
        self._names = names
        self._make = make
        self._patches = patches
        self._usual = {name: names[name] for name in make if name in names}
        self._stand_ins = {name: make[name](self._usual) for name in self._usual}
        self._read = itemgetter(*self._usual)
        self._there = self._read(self._usual)
        self._placed = self._read(self._stand_ins)
        self._over: dict[str, tuple[Any, Any]] = {}
        """Patches that have been found, and what stands in for each."""

    @property
    def spot(self) -> Spot:
        """By which to see whether all are in their places."""
        return self._names, self._read, self._placed

    def place(self) -> None:
        """Put the stand-ins in their places."""
        names = self._names
        try:
            if self._read(names) == self._there:
                names.update(self._stand_ins)
                return
        except KeyError:
            pass  # somebody took one away
        for name, stand_in in self._stand_ins.items():
            found = names.get(name)
            if found is self._usual[name]:
                names[name] = stand_in
            elif self._patches and found is not None and found is not stand_in:
                names[name] = over = self._make[name]({name: found})
                self._over[name] = found, over

    def lift(self) -> None:
        """Put back what was there, unless somebody has put something else there since."""
        names, usual = self._names, self._usual
        try:
            if self._read(names) == self._placed:
                names.update(usual)
                return
        except KeyError:
            pass
        for name, stand_in in self._stand_ins.items():
            found = names.get(name)
            patch, over = self._over.pop(name, (None, None))
            if found is stand_in:
                names[name] = usual[name]
            elif patch is not None and found is over:
                names[name] = patch


class Swap:
    """A stand-in for one name of a module or a class that may not have the name itself."""

    __slots__ = ("_inherited", "_make", "_name", "_over", "_own", "_owner", "_stand_in", "_usual")

    def __init__(self, owner: Any, name: str, make: Make) -> None:
        self._owner = owner
        self._own = vars(owner)
        self._name = name
        self._make = make
        self._inherited = name not in self._own
        self._usual = getattr(owner, name, None)
        self._stand_in = make({name: self._usual})
        self._over: tuple[Any, Any] | None = None
        """A patch that has been found, and what stands in for it."""

    @property
    def spot(self) -> Spot:
        """By which to see whether it is in its place."""
        return self._own, itemgetter(self._name), self._stand_in

    def place(self) -> None:
        """Put the stand-in before what is there now, unless it was taken away."""
        name = self._name
        found = self._own.get(name)
        if found is self._stand_in:
            return
        if found is (None if self._inherited else self._usual):
            setattr(self._owner, name, self._stand_in)
        elif found is not None:
            self._over = found, self._make({name: found})
            setattr(self._owner, name, self._over[1])

    def lift(self) -> None:
        """Put back what was there, unless somebody has put something else there since."""
        owner, name = self._owner, self._name
        found = self._own.get(name)
        over, self._over = self._over, None
        if over is not None and found is over[1]:
            setattr(owner, name, over[0])
        elif found is self._stand_in and self._inherited:
            delattr(owner, name)
        elif found is self._stand_in:
            setattr(owner, name, self._usual)
