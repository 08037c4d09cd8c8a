"""The profiles are there by their names, and one of them is taken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from harness.testing.profiles import PROFILES, register


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


@pytest.mark.parametrize("name", PROFILES)
def test_each_profile_sets_what_it_says(name: str) -> None:
    register("mine-", load=False)
    profile = settings.get_profile(f"mine-{name}")
    assert profile.deadline is None
    wanted = {"quick": (25, False), "ci": (100, True), "nightly": (1_000, False)}
    assert (profile.max_examples, profile.derandomize) == wanted[name]


@pytest.mark.parametrize(("variable", "taken"), [("", "quick"), ("true", "ci")])
def test_the_machine_says_which_is_taken(
    variable: str, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", variable)
    register("mine-")
    assert settings.get_current_profile_name() == f"mine-{taken}"
