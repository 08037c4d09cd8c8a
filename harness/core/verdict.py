"""What the invariants found, and what they could not judge."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Severity: TypeAlias = Literal["hard", "soft"]
Status: TypeAlias = Literal["PASS", "FAIL", "INCOMPLETE"]


class Violation(Struct, frozen=True):
    """One breach of an invariant: a bug of the loop under test.

    `entry` is the index of the trace entry that shows it, None where the whole run does.
    """

    invariant: str
    message: str
    entry: int | None = None
    turn: int | None = None
    severity: Severity = "hard"


class Accepted(Struct, frozen=True):
    """A breach that is known, and why it is accepted."""

    violation: Violation
    why: str


class Verdict(Struct, frozen=True):
    """The judgement of one run."""

    violations: tuple[Violation, ...] = ()
    not_judged: tuple[str, ...] = ()
    """Ids of invariants that had nothing to read; never counted as passed."""
    accepted: tuple[Accepted, ...] = ()
    """Breaches that the scenario allows; they do not make the run fail."""

    @property
    def status(self) -> Status:
        """FAIL where a hard invariant was broken."""
        return "FAIL" if any(v.severity == "hard" for v in self.violations) else "PASS"
