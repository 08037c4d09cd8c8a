"""What is known of a function and tolerated: classes of findings, by name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from harness.core.errors import UsageError, unknown
from harness.core.located import shortened
from harness.exploration.probe import Finding
from harness.runner.functions.judge import CLASSES, TYPED


class Allow:
    """The classes of findings that are tolerated, such as ``swallowed`` or ``error:ValueError``.

    A class of errors is allowed whole (``error``) or for one type. UsageError for a class that
    there is not.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        listed: Any = [names] if isinstance(names, str) else names
        if not isinstance(listed, Collection) or not all(isinstance(one, str) for one in listed):
            raise UsageError(
                f"allow is {shortened(repr(names))}; expected names of classes of findings, such "
                "as 'leaked task'"
            )
        self._names = dict.fromkeys(listed, False)
        for name in self._names:
            kind, typed, _ = name.partition(":")
            if kind not in CLASSES or (typed and kind not in TYPED):
                raise UsageError(unknown("class of findings", name, CLASSES))

    @property
    def names(self) -> tuple[str, ...]:
        """The classes that are allowed."""
        return tuple(self._names)

    def __contains__(self, finding: Finding) -> bool:
        kind = finding.key.partition(": ")[0]
        for name in (kind, kind.partition(":")[0]):
            if name in self._names:
                self._names[name] = True
                return True
        return False

    def check_needed(self) -> None:
        """UsageError where something is allowed that no run has shown."""
        idle = [name for name, needed in self._names.items() if not needed]
        if idle:
            raise UsageError(
                f"allow names {', '.join(idle)}, and no run has shown it; take it out, so that it "
                "does not hide what comes later"
            )
