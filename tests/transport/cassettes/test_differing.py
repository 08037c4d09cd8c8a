"""What two values differ in, place by place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from harness.core.json_plain import dumps_sorted
from harness.core.json_text import Json
from harness.transport.cassettes.differing import FILES, Difference, differences, shortened, told
from harness.transport.cassettes.likeness import likeness, profile


def said(text: str, role: str = "user") -> Json:
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    ("recorded", "found", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [Difference("a", 1, 2)]),
        ({"a": 1}, {"a": True}, [Difference("a", 1, True)]),
        ({"a": 1}, {"a": {"b": 1}}, [Difference("a", 1, {"b": 1})]),
        ({"a": 1}, {"b": 1}, [Difference("a", 1), Difference("b", UNSET, 1)]),
        ({"a": None}, {}, [Difference("a", None)]),
        ([1, 2], [1, 3], [Difference("[1]", 2, 3)]),
        ({"a": [{"b c": 1}]}, {"a": [{"b c": 2}]}, [Difference('a[0]["b c"]', 1, 2)]),
        ("a", "b", [Difference("", "a", "b")]),
        ([], [[]], [Difference("[0]", UNSET, [])]),
    ],
)
def test_each_place_that_differs_is_named(
    recorded: Json, found: Json, expected: list[Difference]
) -> None:
    assert differences(recorded, found) == expected


A, B, C = said("What is the weather?"), said("Sunny.", "assistant"), said("And tomorrow?")
TOLD = said("Be brief.", "system")


@pytest.mark.parametrize(
    ("recorded", "found", "paths"),
    [
        ([A, B, C], [TOLD, A, B, C], ["[0]"]),
        ([A, B, C], [A, TOLD, B, C], ["[1]"]),
        ([A, B, C], [A, B, C, TOLD], ["[3]"]),
        ([A, B, C], [A, C], ["[1]"]),
        ([A, B, C], [A, B, said("And today?")], ["[2].content"]),
        ([A, B, C], [said("What is the time?"), TOLD, B, C], ["[0].content", "[1]"]),
        ([A, B], [TOLD, said("What is the weather now?"), B], ["[0]", "[1].content"]),
        ([A, B, C], [B, C, A], ["[0]", "[2]"]),
        ([A, B], [said("x", "tool"), TOLD], ["[0]", "[1]", "[0]", "[1]"]),
        ([1, "a", 2], [1, 2, "a"], ["[1]", "[2]"]),
        ([A, B, C, TOLD], [TOLD, C, B, A], [""]),
    ],
)
def test_elements_of_lists_are_aligned(recorded: Json, found: Json, paths: list[str]) -> None:
    assert sorted(each.path for each in differences(recorded, found)) == sorted(paths)


def test_lists_that_are_too_long_are_aligned_at_their_ends_only() -> None:
    old, new = [[f"{side} {n}" for n in range(60)] for side in ("old", "new")]
    found = differences([0, *old, 1], [0, *new, "more", 1])
    assert len(found) == 61
    assert found[-1] == Difference("[61]", UNSET, "more")
    assert len(differences([*new, "more"], old)) == 61


@pytest.mark.parametrize(
    ("difference", "sentence"),
    [
        (Difference("a", 1, None), "a: 1 was recorded, null came"),
        (Difference("a", "x"), 'a: only recorded: "x"'),
        (Difference("", UNSET, {"b": [1]}), 'the body: only came: {"b": [1]}'),
        (Difference("a", "x", 1), 'a: "x" was recorded, 1 came'),
        (Difference("a", "", "x"), 'a: "" was recorded, "{+x+}" came'),
        (Difference("a", "in Rom", "in Rome"), 'a: "in [-Rom-]" was recorded, "in {+Rome+}" came'),
        (
            Difference("a", f"{'x ' * 30}one{' y' * 30}", f"{'x ' * 30}two{' y' * 30}"),
            f'a: "...{"x " * 12}[-one-]{" y" * 12}..." was recorded, '
            f'"...{"x " * 12}{{+two+}}{" y" * 12}..." came',
        ),
        (
            Difference("a", "z" * 50 + "1" + "y" * 50, "z" * 50 + "2" + "y" * 50),
            f'a: "...{"z" * 24}[-{"z" * 20}1{"y" * 20}-]{"y" * 24}..." was recorded, '
            f'"...{"z" * 24}{{+{"z" * 20}2{"y" * 20}+}}{"y" * 24}..." came',
        ),
    ],
)
def test_a_difference_is_told_in_a_line(difference: Difference, sentence: str) -> None:
    assert difference.sentence == sentence


def test_marks_are_told_from_what_they_stand_in() -> None:
    told = Difference("a", '["14:05"]', '["14:06"]').sentence
    assert told == 'a: "["14:[-05-]"]" was recorded, "["14:{+06+}"]" came'
    assert Difference("a", 1, 2).said(FILES) == "a: 1 before, 2 after"
    assert Difference("a", 1).said(FILES) == "a: only before: 1"
    assert Difference("a", UNSET, 1).said(FILES) == "a: only after: 1"


def test_the_first_differences_are_told_and_how_many_more() -> None:
    found = [Difference(f"a{n}", 1) for n in range(1_010)]
    lines = told(found, "- ").splitlines()
    assert (len(lines), lines[0], lines[-1]) == (9, "- a0: only recorded: 1", "- and 1,002 more")
    assert told(found[:2]) == "  a0: only recorded: 1\n  a1: only recorded: 1"


def test_a_long_value_loses_its_middle() -> None:
    sentence = Difference("a", list(range(1000))).sentence
    assert len(sentence) < 120
    assert "..." in sentence
    assert shortened("x" * 80, 80) == "x" * 80


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b c", "a b"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["role", "type", "x"]), inner, max_size=3)
    ),
    max_leaves=15,
)


@given(VALUES, VALUES)
def test_there_is_a_difference_where_and_only_where_values_differ(one: Json, other: Json) -> None:
    assert differences(one, one) == []
    assert bool(differences(one, other)) == (dumps_sorted(one) != dumps_sorted(other))
    assert len(differences(one, other)) == len(differences(other, one))


@given(VALUES, VALUES)
def test_likeness_is_a_share(one: Json, other: Json) -> None:
    profiles = profile(one), profile(other)
    assert likeness(profiles[0], profiles[0]) == 1
    assert 0 <= likeness(*profiles) == likeness(profiles[1], profiles[0]) <= 1


def test_only_so_much_is_looked_at() -> None:
    assert profile(list(range(100)), 10).total() == 10
    assert profile("word " * 100_000).total() < 1_000
