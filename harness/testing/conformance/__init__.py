"""Checks for what people add: a provider's codec, a model, a loop, an invariant, an agent.

    from harness.testing.conformance import check_agent

    def test_my_agent() -> None:
        check_agent(MyAgent)

They need no test framework: each gives nothing where all is well, and raises NotConforming, an
AssertionError that tells of every law that does not hold. What ships with the harness is held to
the same checks.
"""

from __future__ import annotations

from harness.testing.conformance.agents import check_agent
from harness.testing.conformance.codecs import check_codec
from harness.testing.conformance.invariants import check_invariant
from harness.testing.conformance.laws import Broken, NotConforming
from harness.testing.conformance.loops import check_loop
from harness.testing.conformance.models import check_model

__all__ = [
    "Broken",
    "NotConforming",
    "check_agent",
    "check_codec",
    "check_invariant",
    "check_loop",
    "check_model",
]
