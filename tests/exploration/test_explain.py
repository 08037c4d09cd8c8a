"""What shows why a run went as it did: its steps, its busiest lines, who waits for whom."""

from __future__ import annotations

import pytest

from harness.exploration.explain import Move, circle, hottest, interleaving
from harness.exploration.probe import Asked, Landing, Run, Shot, Site, Waiting
from harness.exploration.search import search
from harness.exploration.sweep import sweep
from tests.exploration.programs import hand_off, lost_update, spinner
from tests.exploration.toys import Toy


def test_steps_are_told_in_their_order_with_what_made_them_so() -> None:
    toy = Toy(hand_off)
    group = next(g for g in sweep(toy, modes=("late",)).failed if g.key == "permit lost")
    (shot,) = group.shots
    moves = interleaving(group.run)
    assert [move.step for move in moves] == sorted({move.step for move in moves})
    ends = [move.path for move in moves if move.where is None]
    assert sorted(ends) == ["1.1", "1.2"]  # the others wait for the permit
    landed = [move for move in moves if move.landings]
    assert [(move.path, move.landings) for move in landed] == [(shot.path, group.run.landings)]


def test_decisions_stand_at_the_step_that_they_chose() -> None:
    toy = Toy(lost_update(3))
    (found,) = search(toy).found
    moves = interleaving(found.shrunk.run)
    told = [(move.step, each) for move in moves for each in move.decisions]
    assert [each for _, each in told] == [a for a in found.shrunk.run.asked if a.value]
    assert all(step >= each.step for step, each in told)
    assert len(moves) == found.shrunk.run.steps


def test_what_comes_after_the_last_step_of_a_task_stands_there() -> None:
    run = Run(
        "",
        sites=(
            Site("1", 0, "turn", "begins", 0, 1),
            Site("1", 1, "turn", "x.py:3", 1, 4),
            Site("1", 2, "turn", "x.py:5", 4, None),
        ),
        steps=9,
        asked=(Asked("tie", "1", 2, 1, 2), Asked("tie", "2", 2, 1, 8), Asked("tie", "3", 2, 0, 1)),
        landings=(
            Landing(Shot("1", 2, "mid", "task", 7), "propagated"),
            Landing(Shot("9", 1, "early", "task"), "not reached"),
            Landing(Shot("1", 2, "late", "task"), "not reached"),
        ),
    )
    assert interleaving(run) == (
        Move(1, "1", "turn", "x.py:3"),
        Move(4, "1", "turn", "x.py:5", run.asked[:2], run.landings[:1]),
    )


SHOT = Shot("1", 1, "early", "task")


def test_a_run_without_steps_has_no_moves() -> None:
    run = Run("", asked=(Asked("tie", "1", 2, 1, 2),), landings=(Landing(SHOT, "not reached"),))
    assert interleaving(run) == ()


def test_the_busiest_lines_of_a_spin_are_told() -> None:
    toy = Toy(spinner, steps_most=50)
    run = toy.run((), (Shot("1.1", 1, "early", "task"),))
    assert run.unresolved
    first, *others = hottest(run)
    assert (first.role, first.count) == ("tool", 48)
    assert {busy.count for busy in others} == {1}
    assert hottest(run, 1) == (first,)
    assert hottest(Run("")) == ()


@pytest.mark.parametrize(
    ("awaits", "found"),
    [
        ({}, ""),
        ({"1": "", "2": ""}, ""),
        ({"1": "2 3", "2": "4", "3": "4", "4": "gone"}, ""),
        ({"1": "1"}, "1"),
        ({"1": "2", "2": "1"}, "1 2"),
        ({"1": "2 3", "2": "", "3": "4", "4": "3"}, "3 4"),
        ({"1": "2", "2": "3", "3": "4", "4": "2"}, "2 3 4"),
    ],
)
def test_tasks_that_wait_in_a_circle_are_found(awaits: dict[str, str], found: str) -> None:
    left = [Waiting(path, "", tuple(others.split())) for path, others in awaits.items()]
    assert " ".join(circle(left)) == found
