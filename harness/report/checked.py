"""What every report of several runs, or of one run again, can be asked."""

from __future__ import annotations

from typing import Self

from msgspec import Struct

from harness.core.verdict import Status


class Checked(Struct, frozen=True):
    """A report with a status, and as text the whole report."""

    @property
    def status(self) -> Status:
        """PASS only where nothing is wrong and nothing was left out."""
        raise NotImplementedError

    @property
    def ok(self) -> bool:
        """Whether the status is PASS."""
        return self.status == "PASS"

    def check(self) -> Self:
        """Give the report itself if it is ok; else AssertionError with the whole of it."""
        if not self.ok:
            text = str(self)
            head = "" if text.startswith(self.status) else f"{self.status} "
            raise AssertionError(f"{head}{text}")
        return self
