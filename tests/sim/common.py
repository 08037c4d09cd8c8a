"""What several test files of the simulation use."""

from __future__ import annotations


def never() -> bool:
    """Run until nothing more can happen."""
    return False
