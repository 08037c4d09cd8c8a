"""Histories that a provider refuses for one reason, and would take without it.

@given(invalid_histories("anthropic", rule="A1"))
def test_my_validator_finds_calls_without_results(invalid):
    assert my_validator(invalid.body) == "A1"
"""

from __future__ import annotations

from harness.testing.invalid.histories import Invalid, invalid_histories, rules_of

__all__ = ["Invalid", "invalid_histories", "rules_of"]
