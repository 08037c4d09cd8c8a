"""What a kit's check says of something that one law is broken by."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.testing.conformance import NotConforming


def broken_laws(check: Callable[[], None]) -> set[str]:
    """The laws that `check` finds broken; each is told with what it says and what is wrong."""
    with pytest.raises(NotConforming) as found:
        check()
    for broken in found.value.broken:
        assert broken.says.endswith(".")
        assert all(broken.wrong)
        assert f"{broken.law}: {broken.says}\n    {broken.wrong[0]}" in str(found.value)
    return {broken.law for broken in found.value.broken}
