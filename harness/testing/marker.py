"""What the marker `harness` says of a test: its own, and those of its class and its module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.core.errors import UsageError, unknown

VARIED_BY = ("loops", "policies", "levels")
"""What a test is run several times for."""
OF_ASYNC = ("time", "allow")
"""What only async tests have."""


def asked_of(node: pytest.Item) -> Mapping[str, Any]:
    """What all markers of a test say; of what two say, the nearer is taken. UsageError where one
    says what no marker does.
    """
    asked: dict[str, Any] = {}
    for marker in reversed([*node.iter_markers("harness")]):
        if marker.args:
            raise UsageError(f"it takes names only, such as loops='all'; found {marker.args!r}")
        for name in marker.kwargs:
            if name not in (*VARIED_BY, *OF_ASYNC):
                raise UsageError(unknown("argument", name, (*VARIED_BY, *OF_ASYNC)))
        asked |= marker.kwargs
    return asked
