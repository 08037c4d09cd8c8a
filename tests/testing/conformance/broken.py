"""What a kit's check says of something that one law is broken by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from harness.testing.conformance import NotConforming
from harness.testing.conformance.laws import Law, T, hold


def broken_laws(check: Callable[[], None]) -> set[str]:
    """The laws that `check` finds broken; each is told with what it says and what is wrong."""
    with pytest.raises(NotConforming) as found:
        check()
    for broken in found.value.broken:
        assert broken.says.endswith(".")
        assert all(broken.wrong)
        assert f"{broken.law}: {broken.says}\n    {broken.wrong[0]}" in str(found.value)
    return {broken.law for broken in found.value.broken}


def broken_of(subject: T, laws: Sequence[Law[T]], names: Collection[str]) -> set[str]:
    """Which of the laws of these names `subject` breaks; the others are not tried."""
    tried = [law for law in laws if law.__name__ in names]
    return broken_laws(lambda: hold("what is planted", subject, tried))
