"""Paths into JSON: how they are written, and which of them a walk is at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.wire.places import below, here, joined, places, steps_of


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a.b", ("a", "b")),
        ("a[*].b", ("a", None, "b")),
        ("a[0]", ("a", 0)),
        ("[1].b", (1, "b")),
        ("**.b", (..., "b")),
        ("a.**.b[2]", ("a", ..., "b", 2)),
        ("a-b.c d", ("a-b", "c d")),
        ('a["b.c"]', ("a", "b.c")),
        ('["\\""]', ('"',)),
    ],
)
def test_a_path_is_read(path: str, steps: tuple[object, ...]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize(
    "path",
    ["", ".a", "a.", "a..b", "a[b]", "a[-1]", "a[", "a]", "a[*", "**", "a.**", 'a["b]', "a*"],
)
def test_what_is_no_path_is_refused_with_what_one_is_made_of(path: str) -> None:
    with pytest.raises(
        UsageError, match=r"any element \(a\[\*\]\), any depth \(\*\*\.b\)"
    ) as error:
        steps_of(path)
    assert repr(path) in str(error.value)


@pytest.mark.parametrize(
    ("path", "keys", "reached"),
    [
        ("a.b", ["a", "b"], True),
        ("a.b", ["b"], False),
        ("a.b", ["a", "b", "c"], False),
        ("a[*].b", ["a", 7, "b"], True),
        ("a[*].b", ["a", "x", "b"], False),
        ("a[1]", ["a", 1], True),
        ("a[1]", ["a", 2], False),
        ("**.b", ["b"], True),
        ("**.b", ["x", 3, "y", "b"], True),
        ("**.b", ["b", "b"], True),
        ("**.a[*].b", ["a", "a", 0, "b"], True),
        ("a.**.b", ["x", "b"], False),
        ("**.**.b", ["x", "b"], True),
    ],
)
def test_a_walk_knows_when_it_is_there(path: str, keys: list[str | int], reached: bool) -> None:
    at = places("it", [path])
    for key in keys:
        at = below(at, key)
    assert here(at) == ({"it"} if reached else set())


@given(st.lists(st.text(min_size=1) | st.integers(0, 10**6), min_size=1, max_size=6))
def test_a_path_that_is_told_is_one_that_can_be_given(keys: list[str | int]) -> None:
    path = ""
    for key in keys:
        path = joined(path, key)
    assert steps_of(path) == tuple(keys)
