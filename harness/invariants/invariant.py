"""What an invariant is: a fold over the events of one run that ends in violations."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import ClassVar, TypeAlias

from msgspec import Struct

from harness.core.budget import Budget
from harness.core.verdict import Severity, Violation
from harness.invariants.reader import EventType, Here, Reader


class Facts(Struct, frozen=True):
    """What is known of a run beside its events."""

    budget: Budget = Budget()
    """What the agent may spend in a turn."""
    tools: frozenset[str] | None = None
    """The names of the tools that there are; None: not known."""
    recorded: bool = False
    """Whether replies come from a cassette."""

    def unknown(self, tool: str, offered: AbstractSet[str]) -> bool:
        """Whether there is no such tool, neither the scenario's nor offered by the agent."""
        return self.tools is not None and tool not in self.tools and tool not in offered


class Fold(Reader):
    """One invariant at work on one run; made anew for every run.

    A subclass's docstring is the rule, in one sentence. Its methods that are marked with `on` read
    the events; any of them may report violations. Where no event of a kind in `needs` was seen, and
    the fold did not set `judged` itself, the invariant is not judged.
    """

    id: ClassVar[str]
    severity: ClassVar[Severity] = "hard"
    needs: ClassVar[tuple[EventType, ...]] = ()

    def __init__(self, facts: Facts, here: Here) -> None:
        super().__init__(here)
        self.facts = facts
        self.judged = False
        self.violations: list[Violation] = []

    @classmethod
    def applies(cls, facts: Facts) -> bool:  # noqa: ARG003 - most can judge any run
        """Whether there is anything to judge a run by; a fold is made only where there is."""
        return True

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

    def report_here(self, message: str, severity: Severity | None = None) -> None:
        """Note a breach that the entry which is being read shows."""
        self.report(message, self.here.index, self.here.turn, severity)


Invariant: TypeAlias = type[Fold]
