"""The points of a run are those that exist by the rules, and they are all that can be hit."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.exploration.points import Point, Survey, lacks, mid_steps, moment_of
from harness.exploration.probe import MISSED, ROLES, Mode, Run, Shot, Site, Whom
from tests.exploration.programs import fan_out, run_all, stoppable, torn_clean_up, yields
from tests.exploration.toys import Steps, Toy, Turn, World

MODES: tuple[Mode, ...] = ("start", "early", "late", "mid")
SITE = Site("1.1", 2, "tool", "x.py:3", first=4, last=9, waits=True, turn=1)
BEFORE = replace(SITE, k=0)


@pytest.mark.parametrize(
    ("site", "mode", "why"),
    [
        (BEFORE, "start", None),
        (BEFORE, "early", "the task has not begun"),
        (BEFORE, "late", "the task has not begun"),
        (BEFORE, "mid", "the task has not begun"),
        (replace(BEFORE, last=None), "start", "the task never begins"),
        (SITE, "start", "the task has begun"),
        (SITE, "early", None),
        (SITE, "late", None),
        (SITE, "mid", None),
        (replace(SITE, last=None), "early", None),
        (replace(SITE, last=None), "late", "the task never resumes"),
        (replace(SITE, last=None), "mid", None),
        (replace(SITE, last=None, first=20), "mid", "no other step comes while the task waits"),
        (replace(SITE, waits=False), "late", "the task only yields, and waits for nothing"),
        (replace(SITE, waits=False), "mid", None),
        (replace(SITE, last=5), "mid", "no other step comes while the task waits"),
    ],
)
def test_a_mode_exists_by_rule(site: Site, mode: Mode, why: str | None) -> None:
    assert lacks(site, mode, steps=20) == why


def test_steps_in_the_middle_are_those_between() -> None:
    assert list(mid_steps(SITE, 20)) == [5, 6, 7, 8]
    assert list(mid_steps(replace(SITE, last=None), 6)) == [5, 6]


def test_moments_are_in_the_order_of_the_run() -> None:
    moments = [
        moment_of(replace(BEFORE, last=4), "start"),
        moment_of(SITE, "early"),
        moment_of(SITE, "mid", 5),
        moment_of(SITE, "mid", 8),
        moment_of(SITE, "late"),
        moment_of(replace(SITE, first=9), "early"),
    ]
    assert moments == sorted(set(moments))


def found(run: Run, whom: Iterable[Whom] = ("task",), modes: Iterable[Mode] = MODES) -> list[Point]:
    return list(Survey(run, tuple(whom), ROLES).points(modes))


@pytest.mark.parametrize("tools", range(1, 7))
def test_points_of_a_fan_out_are_as_many_as_the_formula_says(tools: int) -> None:
    run = Toy(fan_out(tools)).run()
    counts = [sum(point.shot.mode == mode for point in found(run)) for mode in MODES]
    assert counts == [tools + 1, 2 * tools, 2 * tools, 2 * tools * tools + 2 * tools]


def test_what_a_site_lacks_is_told() -> None:
    survey = Survey(Toy(yields(3)).run(), ("task",), ROLES)
    points = list(survey.points(MODES))
    assert [str(point.shot) for point in points] == [
        "1#0/start:task",
        "1#1/early:task",
        "1#2/early:task",
        "1#3/early:task",
    ]
    told = [(each.site.k, each.mode, each.why) for each in survey.absent]
    assert told == [
        (1, "start", "the task has begun"),
        (2, "start", "the task has begun"),
        (3, "start", "the task has begun"),
        (0, "early", "the task has not begun"),
        (0, "late", "the task has not begun"),
        *[(k, "late", "the task only yields, and waits for nothing") for k in (1, 2, 3)],
        (0, "mid", "the task has not begun"),
        *[(k, "mid", "no other step comes while the task waits") for k in (1, 2, 3)],
    ]


def test_sites_of_other_roles_are_left_out() -> None:
    run = Toy(fan_out(2)).run()
    assert {point.role for point in Survey(run, ("task",), ("tool",)).points(MODES)} == {"tool"}


# --- who is told


def test_an_agent_is_told_once_at_a_moment() -> None:
    run = Toy(fan_out(3)).run()
    points = found(run, ["agent"])
    moments = [point.moment for point in points]
    assert len(set(moments)) == len(moments)
    everywhere = {point.moment for point in found(run, ["task"])}
    assert set(moments) == {moment for moment in everywhere if moment <= 2 * run.steps}


def test_the_task_of_a_turn_is_told_once_at_a_moment() -> None:
    run = Toy(fan_out(2)).run()
    both = found(run, ["turn", "task"])
    of_turn = {point.moment for point in both if point.shot.whom == "turn"}
    of_task = {p.moment for p in both if p.shot.whom == "task" and p.shot.path == "1"}
    assert of_turn
    assert not of_turn & of_task


def straggler(world: World) -> Steps:
    """A turn that ends before the task that it has started."""

    def late() -> Steps:
        for _ in range(3):
            yield world.sleep(10)

    world.spawn(late())
    yield world.sleep(15)


@pytest.mark.parametrize("whom", ["agent", "turn"])
def test_nobody_is_told_of_a_turn_after_its_end(whom: Whom) -> None:
    run = Toy(straggler).run()
    end = max(site.last or 0 for site in run.sites if site.role == "turn")
    survey = Survey(run, (whom,), ROLES)
    points = list(survey.points(MODES))
    assert points
    assert max(point.moment for point in points) <= 2 * end
    assert {each.why for each in survey.absent} >= {"the turn has ended", "no turn is played"}
    assert max(point.moment for point in found(run)) > 2 * end


def test_a_turn_without_a_task_of_its_own_can_be_told_at_any_of_its_sites() -> None:
    run = Run("", sites=(replace(SITE, k=1), replace(SITE, k=2, turn=0)), steps=20)
    points = found(run, ["turn"], ["early"])
    assert [str(point.shot) for point in points] == ["1.1#1/early:turn"]


# --- a second cancel


def again(toy: Toy, first: str, whom: Whom = "task") -> list[str]:
    point = next(p for p in found(toy.run(), [whom]) if str(p.shot) == first)
    run = toy.run((), (point.shot,))
    return [str(second.shot) for second in Survey(run, (whom,), ROLES).again(point)]


def test_a_task_is_told_again_at_its_later_points() -> None:
    toy = Toy(torn_clean_up)
    assert again(toy, "1#1/early:task") == ["1#2/early:task", "1#1/late:task", "1#2/late:task"]
    assert again(toy, "1#1/late:task") == ["1#2/early:task", "1#2/late:task"]
    assert again(toy, "1#0/start:task") == []


def test_an_agent_is_told_again_while_its_turn_is_unwound() -> None:
    toy = Toy(stoppable, whom=("agent",))
    seconds = again(toy, "1#1/early:agent", "agent")
    assert seconds == ["1.1#0/start:agent", "1#1/late:agent"]


def test_an_agent_is_not_told_again_in_a_later_turn() -> None:
    toy = Toy(fan_out(1), fan_out(1), whom=("agent",))
    assert again(toy, "1.1#0/start:agent", "agent")
    assert all(second.startswith("1") for second in again(toy, "1.1#0/start:agent", "agent"))


def test_another_task_is_not_told_again() -> None:
    assert again(Toy(fan_out(2)), "1.1#1/early:task") == ["1.1#1/late:task"]


# --- laws


TREES = st.recursive(
    st.lists(st.integers(0, 3), max_size=3),
    lambda inner: st.lists(st.one_of(st.integers(0, 3), inner), max_size=3),
    max_leaves=6,
)
"""What tasks do: yield (0), wait so long, or start a task that does what its list says."""


def tree(moves: list[object]) -> Turn:
    """A turn that does what a tree says, and waits once more."""

    def task(world: World, moves: list[object]) -> Steps:
        started = []
        for move in moves:
            if isinstance(move, list):
                started.append(world.spawn(task(world, move), "tool"))
            else:
                yield world.sleep(move) if move else None
        yield from run_all(started)

    return lambda world: task(world, [*moves, 1])


@given(TREES)
def test_every_point_can_be_hit_and_nothing_else_can(moves: list[object]) -> None:
    toy = Toy(tree(moves))
    run = toy.run()
    points = {point.shot for point in found(run)}
    only_yields = {(site.path, site.k) for site in run.sites if not site.waits}
    for site in run.sites:
        for shot in all_shots(site, run.steps):
            (landing,) = toy.run((), (shot,)).landings
            if shot.mode == "late" and (shot.path, shot.k) in only_yields:
                assert shot not in points  # it can be hit, and is what early is
            else:
                assert (landing.came_to not in MISSED) == (shot in points), shot


def all_shots(site: Site, steps: int) -> Iterable[Shot]:
    """All that could be written down for a site, whether it exists or not."""
    modes: tuple[Mode, ...] = ("early", "late") if site.k else ("start",)
    for mode in modes:
        yield Shot(site.path, site.k, mode, "task")
    if site.k:
        for step in range(1, steps + 2):
            if step != site.first:  # which is what early is
                yield Shot(site.path, site.k, "mid", "task", step)


@given(TREES)
def test_every_second_point_can_be_hit(moves: list[object]) -> None:
    toy = Toy(tree(moves))
    for first in found(toy.run()):
        run = toy.run((), (first.shot,))
        for second in Survey(run, ("task",), ROLES).again(first):
            landings = toy.run((), (first.shot, second.shot)).landings
            assert not MISSED & {landing.came_to for landing in landings}
