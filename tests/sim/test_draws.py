"""Draws of code under test: ordinary outside of a search, and labelled within one."""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.choices import Choices
from harness.core.errors import UsageError
from harness.sim.draws import choose
from harness.sim.kernel import Kernel


def drawn(choices: Choices | None) -> list[int]:
    async def draw() -> None:
        values.extend([choose("replica", 3), choose("replica", 3), choose("only", 1)])

    values: list[int] = []
    kernel = Kernel(choices=choices)
    task = kernel.spawn(draw(), "1")
    kernel.run_until(task.done)
    kernel.tear_down()
    assert task.exception() is None
    return values


def test_nothing_is_drawn_where_nobody_decides() -> None:
    assert choose("replica", 3) == 0
    assert drawn(None) == [0, 0, 0]


def test_a_label_that_is_drawn_again_is_numbered() -> None:
    asked: list[tuple[str, str, int]] = []

    def pick(source: str, label: str, bound: int) -> int:
        asked.append((source, label, bound))
        return len(asked)

    assert drawn(Choices((), pick)) == [1, 2, 0]
    assert drawn(Choices((), lambda *_: 1)) == [1, 1, 0]  # numbered anew in each run
    assert asked == [("user", "replica#1", 3), ("user", "replica#2", 3)]


def test_a_bound_leaves_something_to_choose() -> None:
    with pytest.raises(UsageError, match=r"choose\('replica', 0\): the bound is how many"):
        choose("replica", 0)


@pytest.mark.parametrize(
    ("label", "bound", "says"), [("replica", 2.5, "the bound is how"), (["a"], 2, "the label is a")]
)
def test_a_draw_has_a_text_and_a_whole_number(label: Any, bound: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        choose(label, bound)
