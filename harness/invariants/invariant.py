"""What an invariant is: a fold over the events of one run that ends in violations."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from harness.core.budget import Budget
from harness.core.events import Event
from harness.core.trace import Entry
from harness.core.verdict import Severity, Violation

EventType: TypeAlias = type[Event]


class Facts(Struct, frozen=True):
    """What is known of a run beside its events."""

    budget: Budget = Budget()
    """What the agent may spend in a turn."""
    tools: frozenset[str] | None = None
    """The names of the tools that there are; None: not known."""


class Fold:
    """One invariant at work on one run; made anew for every run.

    A subclass's docstring is the rule, in one sentence. `step` gets each entry whose event is of a
    kind in `reads`; violations may be reported at any step. Where no event of a kind in `needs`
    was seen, and the fold did not set `judged` itself, the invariant is not judged.
    """

    id: ClassVar[str]
    severity: ClassVar[Severity] = "hard"
    reads: ClassVar[tuple[EventType, ...]]
    needs: ClassVar[tuple[EventType, ...]]

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.judged = False
        self.violations: list[Violation] = []

    def step(self, index: int, entry: Entry) -> None:
        """Take in entry number `index`."""
        raise NotImplementedError

    def finish(self) -> None:
        """Say what only the whole run shows."""

    def report(
        self,
        message: str,
        entry: int | None = None,
        turn: int | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Note a breach of this invariant."""
        self.violations.append(Violation(self.id, message, entry, turn, severity or self.severity))

    @classmethod
    def sentence(cls) -> str:
        """The rule, as reports print it."""
        return " ".join((cls.__doc__ or "").split())


Invariant: TypeAlias = type[Fold]
