"""What was asked for and could not be run at all, so that there is no verdict on it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Meant: TypeAlias = Literal["run", "sweep", "search", "test"]
Unjudged: TypeAlias = Literal["ERROR", "SKIPPED"]


class NotRun(Struct, frozen=True):
    """A run, sweep or search that could not be made, or a pytest test that ended without one.

    `reason` is what is told of it, in one line or several. What is not known, such as the scenario
    of a file with errors, is "". Of what is `passed_over` nothing is wrong: there was nothing to
    try.
    """

    meant: Meant
    reason: str
    scenario: str = ""
    source: str = ""
    on: str = ""
    passed_over: bool = False

    @property
    def status(self) -> Unjudged:
        """ERROR where somebody has something to mend."""
        return "SKIPPED" if self.passed_over else "ERROR"
