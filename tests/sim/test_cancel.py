"""Points are read as they are written, and mistakes in them are explained."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.sim.cancel import MODES, Point

paths = st.from_regex(r"(x?[1-9][0-9]?|gen\.[a-z<>]+)(\.[1-9][0-9]?){0,3}", fullmatch=True)
points = st.one_of(
    st.builds(Point, paths, st.just(0), st.just("start")),
    st.builds(Point, paths, st.integers(1, 999), st.sampled_from(["early", "late"])),
)


@given(points)
def test_a_point_is_read_as_it_is_written(point: Point) -> None:
    assert Point.parse(str(point)) == point


def test_the_spelling_of_a_point() -> None:
    assert str(Point("1.2", 3, "late")) == "1.2#3/late"
    assert Point.parse(" 1#0/start ") == Point("1", 0, "start")


def test_every_mode_can_be_written() -> None:
    assert MODES == ("start", "early", "late")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1.2", "write <task path>#<suspension>/<mode>"),
        ("", "write <task path>#<suspension>/<mode>"),
        ("1.2#-1/early", "write <task path>#<suspension>/<mode>"),
        ("1 2#1/early", "write <task path>#<suspension>/<mode>"),
        ("1.2#1/erly", "did you mean 'early'"),
        ("1.2#0/early", r"write 1.2#0/start or 1.2#1/early"),
        ("1.2#3/start", r"write 1.2#0/start or 1.2#3/early"),
    ],
)
def test_a_wrong_point_is_explained(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Point.parse(text)
