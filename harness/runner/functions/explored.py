"""A function as something that sweeps and searches explore, and that a token names."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.errors import UsageError, hint, nearest
from harness.runner.functions.allow import Allow
from harness.runner.functions.probe import FunctionProbe
from harness.runner.functions.subject import Factory, Function
from harness.runner.goals import REACHED, Goals
from harness.sim.orders import Order


class OnAsyncio:
    """A function in a simulated run; `allow` are the classes of findings that are tolerated."""

    def __init__(self, factory: Factory, allow: Allow) -> None:
        self.function = Function(factory)
        self.name = self.function.name
        self.digest = self.function.digest
        self._allow = allow

    @property
    def on(self) -> str:
        """What it is run on, as far as its runs have shown."""
        return "threads" if self.function.blocks else "asyncio"

    def probe(
        self,
        order: Order = "fifo",
        *,
        goals: Sequence[str] = (),
        places: bool = True,
        sites: bool = False,
        keep_lines: bool = False,
    ) -> FunctionProbe:
        """What makes its runs. Every goal is a place that calls `sometimes`."""
        for goal in goals:
            _check_goal(goal)
        return FunctionProbe(
            self.function,
            order,
            goals=Goals(goals),
            allow=self._allow,
            places=places,
            sites=sites,
            keep_lines=keep_lines,
        )

    def replay_line(self, token: str) -> str:
        """The call of Python that replays `token`."""
        return f"replay({token!r}, {self.name})"


def _check_goal(goal: str) -> None:
    kind, _, name = goal.strip().partition(" ")
    if kind != REACHED or not name:
        guess = hint(nearest(kind, [REACHED]) if kind != REACHED else None)
        raise UsageError(
            f"{goal!r} is no goal of a function{guess}, which has no events; write "
            f"'{REACHED} <name>', and call sometimes(<name>) where some run must come to"
        )
