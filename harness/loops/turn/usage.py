"""Counting tokens as the provider reports them."""

from __future__ import annotations

from harness.core.messages import Usage


class UsageTracker:
    """Adds up what every reply reported; outlives turns.

    Usages are immutable, so what `latest` and `total` give never changes afterwards.
    """

    def __init__(self) -> None:
        self._latest = Usage()
        self._total = Usage()

    def record(self, usage: Usage) -> None:
        """Count one report; several in one reply all count."""
        self._latest = usage
        self._total += usage

    def latest(self) -> Usage:
        """The last report; zeros before the first."""
        return self._latest

    def total(self) -> Usage:
        """The sum of all reports."""
        return self._total
