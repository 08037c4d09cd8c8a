"""A state machine: a table of transitions, a handler for each state, and what drives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from harness.core.errors import AgentError, UsageError

R = TypeVar("R")
Handler: TypeAlias = Callable[[], None]


class Transition(Struct, Generic[R], frozen=True):
    """From `source`, where `test` holds for the run, to `target`."""

    source: str
    test: Callable[[R], bool]
    target: str


class NoTransition(AgentError):
    """A state was left and no transition fits: the table has a hole."""

    def __init__(self, state: str) -> None:
        self.state = state
        super().__init__(
            f"no transition fits after the state {state}; "
            "end its rows in the table with one that always holds"
        )


class Machine(Generic[R]):
    """Goes from state to state. Of a state's transitions the first that fits is taken; a state of
    `terminal` is the last one, and its handler runs once.

    `history` holds the states that were left, so never the last one. UsageError where a state has
    no handler.
    """

    def __init__(
        self,
        start: str,
        table: Sequence[Transition[R]],
        handlers: Mapping[str, Handler],
        terminal: Iterable[str],
    ) -> None:
        self.state = start
        self.history: list[str] = []
        self._table = table
        self._handlers = handlers
        self._terminal = frozenset(terminal)
        named = {start, *[row.target for row in table], *[row.source for row in table]}
        for state in sorted(named | self._terminal):
            if state not in handlers:
                raise UsageError(f"the state {state} has no handler; known: {', '.join(handlers)}")

    def run(self, run: R, entered: Callable[[str], None]) -> None:
        """Run until a terminal state's handler is through; `entered` hears each state before its
        handler begins. Raises NoTransition, and what a handler raises.
        """
        while True:
            entered(self.state)
            self._handlers[self.state]()
            if self.state in self._terminal:
                return
            self.history.append(self.state)
            self.state = self._next(run)

    def _next(self, run: R) -> str:
        for row in self._table:
            if row.source == self.state and row.test(run):
                return row.target
        raise NoTransition(self.state)
