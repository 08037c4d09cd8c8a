"""Stand-ins for names of a module that may not be loaded yet when a run begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, TypeAlias

from harness.sim.swaps import Spot, Swaps

StandIns: TypeAlias = Callable[[Any], Sequence[Swaps]]
"""Makes the stand-ins for names of a module."""


def swaps_of(name: str, stand_ins: StandIns) -> Sequence[Swaps]:
    """The stand-ins for names of a module, or what waits until it is loaded."""
    module = sys.modules.get(name)
    return [_WhenLoaded(name, stand_ins)] if module is None else stand_ins(module)


class _WhenLoaded:
    """Finds the module for whoever imports it, and places the stand-ins then.

    What a run imports for the first time is in the process for the next run: both do the same.
    """

    def __init__(self, name: str, stand_ins: StandIns) -> None:
        self._name = name
        self._stand_ins = stand_ins
        self._placed: Sequence[Swaps] = ()

    @property
    def spot(self) -> Spot:
        """By which to see that the module has not been loaded since."""
        return sys.modules, lambda modules: modules.get(self._name), None

    def place(self) -> None:
        """Wait for the import."""
        sys.meta_path.insert(0, self)

    def lift(self) -> None:
        """Wait no longer, and put back what was there."""
        if self in (sys.meta_path or ()):  # None where the process ends
            sys.meta_path.remove(self)
        for each in self._placed:
            each.lift()

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What an import asks of each finder."""
        spec = PathFinder.find_spec(name, path) if name == self._name else None
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            if self in sys.meta_path:  # not where it was waited for by a run that is over
                self._placed = self._stand_ins(module)
                for each in self._placed:
                    each.place()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
