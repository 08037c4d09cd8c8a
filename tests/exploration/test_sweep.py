"""A sweep tries every point, groups what it finds, and never passes where it has not tried all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pytest
from msgspec.structs import replace

from harness.core.errors import NoPoints, NotDeterministic, UsageError
from harness.exploration.attempts import Attempt, decisions
from harness.exploration.budget import Budget, Means, Progress
from harness.exploration.probe import NOT_REACHED, Landing, Run, Shot
from harness.exploration.sweep import MODES, sweep
from harness.exploration.sweep_report import SweepReport
from tests.exploration.programs import (
    fan_out,
    hand_off,
    keys,
    lost_update,
    slow_tool,
    spinner,
    stoppable,
    swallower,
    torn_clean_up,
    yields,
)
from tests.exploration.toys import Steps, Toy, World


def counts(report: SweepReport) -> dict[str, int]:
    return {tally.name: tally.points for tally in report.by_mode}


# --- coverage


@pytest.mark.parametrize("tools", range(1, 6))
def test_a_sweep_tries_as_many_points_as_the_formula_says(tools: int) -> None:
    toy = Toy(fan_out(tools))
    report = sweep(toy)
    mids = 2 * tools * tools + 2 * tools
    assert counts(report) == {
        "start": tools + 1,
        "early": 2 * tools,
        "late": 2 * tools,
        "mid": mids,
        "double": 2 * tools + mids,
    }
    assert report.status == "PASS"
    assert report.incomplete == ()
    assert report.runs == toy.runs == 2 + sum(counts(report).values())


def test_the_tables_add_up_by_mode_and_by_role() -> None:
    report = sweep(Toy(hand_off))
    for table in (report.by_mode, report.by_role):
        assert sum(tally.points for tally in table) == len(report.points)
        assert sum(tally.failed for tally in table) == sum(
            p.came == "failed" for p in report.points
        )
        assert sum(tally.absent for tally in table) == len(report.absent)
    assert [tally.name for tally in report.by_mode] == list(MODES)
    assert {tally.name: bool(tally.points) for tally in report.by_role} == {
        "turn": True,
        "model": False,
        "tool": True,
        "thread": False,
        "other": False,
    }


def test_what_does_not_exist_is_told_and_does_not_count() -> None:
    report = sweep(Toy(yields(4)))
    assert counts(report) == {"start": 1, "early": 4, "late": 0, "mid": 0, "double": 0}
    assert [tally.absent for tally in report.by_mode] == [4, 1, 5, 5, 0]
    assert report.status == "PASS"


def test_modes_roles_and_addressees_can_be_chosen() -> None:
    toy = Toy(fan_out(2), whom=("turn", "task"))
    report = sweep(toy, modes=("late", "early", "late"), roles=("tool",), whom=("task",))
    assert report.modes == ("late", "early")
    assert {(point.mode, point.role) for point in report.points} == {
        ("early", "tool"),
        ("late", "tool"),
    }
    assert {shot.whom for point in report.points for shot in point.shots} == {"task"}


def test_double_alone_is_judged_with_the_single_cancels_that_come_first() -> None:
    report = sweep(Toy(torn_clean_up), modes=("double",))
    assert report.modes == ("start", "early", "late", "double")
    assert [tally.name for tally in report.by_mode if tally.points] == [
        "start",
        "early",
        "late",
        "double",
    ]
    assert [group.key for group in report.failed] == ["half clean-up"]
    hidden = sweep(Toy(hand_off), modes=("double",))
    assert {point.mode for point in hidden.points if point.came == "failed"} >= {"late"}
    assert {len(group.shots) for group in hidden.failed} == {1}


def test_every_line_of_code_is_tried_once_before_any_is_tried_again() -> None:
    tried = [point.shots[0] for point in sweep(Toy(fan_out(4)), modes=("early", "late")).points]
    assert [str(shot) for shot in tried[:4]] == [
        "1#1/early:task",
        "1.1#1/early:task",
        "1#1/late:task",
        "1.1#1/late:task",
    ]
    assert len(tried) == len(set(tried)) == 16


# --- what is found


@pytest.mark.parametrize(
    ("modes", "found"),
    [
        (["start"], set()),
        (["early"], set()),
        (["late"], {"permit lost", "tool left", "turn left"}),
        (["mid"], {"permit lost", "tool left", "turn left"}),
    ],
)
def test_a_hand_off_is_lost_by_a_late_cancel_only(modes: list, found: set[str]) -> None:
    report = sweep(Toy(hand_off), modes=modes)
    assert {group.key for group in report.failed} == found
    assert report.status == ("FAIL" if found else "PASS")


def test_a_clean_up_is_torn_by_a_second_cancel_only() -> None:
    report = sweep(Toy(torn_clean_up))
    assert {point.mode for point in report.points if point.came == "failed"} == {"double"}
    (group,) = report.failed
    assert [str(shot) for shot in group.shots] == ["1#1/early:task", "1#2/early:task"]
    assert group.count == sum(point.came == "failed" for point in report.points)


def test_a_tool_that_swallows_its_cancel_is_found() -> None:
    report = sweep(Toy(swallower))
    group = next(group for group in report.failed if group.key == "swallowed by 1.1")
    assert [str(shot) for shot in group.shots] == ["1.1#1/early:task"]
    assert group.message == "1.1#1/early:task was swallowed"
    assert group.run == Toy(swallower).run((), group.shots)
    assert group.points[0] == group.shots


def test_a_group_is_shown_by_its_smallest_point() -> None:
    toy = Toy(hand_off)
    for group in sweep(toy).failed:
        assert min(map(len, group.points)) == len(group.shots)
        assert group.key in keys(group.run)
        assert group.key in keys(toy.run(group.tape, group.shots))
        assert len(set(group.points)) == group.count
    sizes = [len(group.shots) for group in sweep(toy).failed]
    assert sizes == sorted(sizes)


def test_what_is_tolerated_passes_and_is_told() -> None:
    def turn(world: World) -> Steps:
        world.allowed |= {"swallowed by 1.1", "swallowed by 1"}
        yield from swallower(world)

    report = sweep(Toy(turn), modes=("early", "late"))
    assert report.status == "PASS"
    assert [group.key for group in report.tolerated] == ["swallowed by 1.1"]
    assert sum(tally.tolerated for tally in report.by_mode) == 2
    assert next(p for p in report.points if p.came == "tolerated").keys == ("swallowed by 1.1",)


def test_a_run_that_fails_without_a_cancel_shows_that() -> None:
    def turn(world: World) -> Steps:
        yield
        world.find("always", "it always fails")

    report = sweep(Toy(turn))
    (group,) = report.failed
    assert (group.key, group.shots) == ("always", ())
    assert group.count == 1 + sum(point.came == "failed" for point in report.points)
    assert report.status == "FAIL"


def test_a_finding_that_comes_twice_in_a_run_counts_once_and_is_told_as_it_came_first() -> None:
    def turn(world: World) -> Steps:
        yield
        world.find("twice", "the first time")
        world.find("twice", "the second time")

    (group,) = sweep(Toy(turn), modes=("start",)).failed
    assert (group.count, group.message) == (1, "the first time")


def test_choices_are_kept_where_they_fit() -> None:
    toy = Toy(slow_tool)
    slow = toy.run(picker=lambda source, label, bound: int(label == "a") * 3)
    assert keys(slow) == {"answers"}
    tape = decisions(slow)
    report = sweep(toy, modes=("start", "early"), tape=tape)
    assert report.baseline == toy.run(tape)
    assert report.status == "FAIL"
    after = {point.shots[0].path: point.came for point in report.points}
    assert after["1"] == "clean"
    assert set(after) == {"1", "1.1", "1.2"}


# --- what is not known


def test_a_cancel_that_is_refused_makes_the_sweep_incomplete() -> None:
    report = sweep(Toy(stoppable, whom=("agent",)), modes=("early",))
    missed = [point for point in report.points if point.came == "missed"]
    assert [point.landings for point in missed] == [("refused",)]
    assert report.status == "INCOMPLETE"
    assert report.incomplete == (f"1 point missed; the first is {missed[0].shots[0]} (refused)",)
    assert [tally.missed for tally in report.by_mode] == [1]


def test_no_second_cancel_follows_one_that_was_refused() -> None:
    report = sweep(Toy(stoppable, whom=("agent",)), modes=("early", "double"))
    singles = [point for point in report.points if point.mode == "early"]
    refused = {point.shots[0] for point in singles if point.came == "missed"}
    followed = {point.shots[0] for point in report.points if point.mode == "double"}
    assert refused
    assert followed
    assert not refused & followed


class Deaf(Toy):
    """Never tells of a landing."""

    def run(self, *args: object, **kwargs: object) -> Run:
        return replace(super().run(*args, **kwargs), landings=())  # type: ignore[arg-type]


def test_a_cancel_that_did_not_land_is_not_a_pass() -> None:
    report = sweep(Deaf(fan_out(1)), modes=("early",))
    assert {point.landings for point in report.points} == {(NOT_REACHED,)}
    assert report.status == "INCOMPLETE"
    assert report.incomplete == ("2 points missed; the first is 1#1/early:task (not reached)",)


def test_a_run_without_an_end_is_unresolved() -> None:
    report = sweep(Toy(spinner, steps_most=50), modes=("early", "late"))
    assert report.status == "INCOMPLETE"
    assert report.incomplete == (
        "2 points not resolved; the first is 1.1#1/early:task (more than 50 steps)",
    )
    assert sum(tally.unresolved for tally in report.by_role) == 2


def test_an_endless_run_without_a_cancel_is_told() -> None:
    def turn(world: World) -> Steps:
        while True:
            yield

    report = sweep(Toy(turn, steps_most=5), modes=("start",))
    assert report.incomplete[0] == ("the run without a cancel is not resolved: more than 5 steps")


def test_too_many_points_are_sampled_and_do_not_pass() -> None:
    report = sweep(Toy(fan_out(4)), exhaustive_to=10)
    assert counts(report) == {"start": 5, "early": 8, "late": 8, "mid": 10, "double": 10}
    assert report.status == "INCOMPLETE"
    seconds = len(sweep(Toy(fan_out(4)), modes=("start", "early", "late", "double")).points) - 21
    assert report.sampled == (
        "mid is sampled: 10 of 40 points",
        f"double is sampled: 10 of {seconds + 10} points",
    )
    assert report == sweep(Toy(fan_out(4)), exhaustive_to=10)


@pytest.mark.parametrize("runs", [3, 5, 20])
def test_a_spent_budget_makes_the_sweep_incomplete(runs: int) -> None:
    toy = Toy(fan_out(3))
    report = sweep(toy, budget=Budget(runs, None))
    assert toy.runs == report.runs == runs
    assert len(report.points) == runs - 2
    assert report.status == "INCOMPLETE"
    assert report.incomplete == (f"the budget of {runs} runs is spent",)


def test_a_budget_of_seconds_is_measured_by_the_clock() -> None:
    toy = Toy(fan_out(3))
    report = sweep(toy, budget=Budget(10_000, 1.0), means=Means(clock=lambda: toy.runs / 10))
    assert report.spent == "the budget of 1 s is spent, after 10 runs"


def test_a_budget_that_just_suffices_is_not_spent() -> None:
    whole = sweep(Toy(fan_out(2)))
    assert sweep(Toy(fan_out(2)), budget=Budget(whole.runs, None)).status == "PASS"


# --- errors


def test_a_run_without_tasks_cannot_be_swept() -> None:
    class Empty(Toy):
        def run(self, *args: object, **kwargs: object) -> Run:
            return Run("")

    with pytest.raises(NoPoints, match="empty: there is no point to cancel at; the run has no"):
        sweep(Empty(name="empty"))


def test_a_choice_of_roles_without_points_is_an_error() -> None:
    with pytest.raises(NoPoints) as caught:
        sweep(Toy(fan_out(1)), modes=("early", "late"), roles=("model",))
    assert str(caught.value) == (
        "toy: there is no point to cancel at for the modes early, late, the roles model and whom "
        "task; the run has 4 sites, of the roles turn, tool"
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"modes": ["erly"]}, r"unknown mode 'erly' \(did you mean 'early'\?\)"),
        ({"modes": []}, "no mode is chosen; known: start, early, late, mid, double"),
        ({"roles": ["tols"]}, r"unknown role 'tols' \(did you mean 'tool'\?\)"),
        ({"whom": ["agent"]}, "unknown addressee 'agent'; known: task"),
    ],
)
def test_unknown_names_are_refused(asked: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sweep(Toy(fan_out(1)), **asked)


class Forgetful(Toy):
    """Is another thing from some run on."""

    changes_at = 1

    def run(self, *args: object, **kwargs: object) -> Run:
        run = super().run(*args, **kwargs)  # type: ignore[arg-type]
        lines = (*run.lines, "warm" if self.runs > self.changes_at else "cold")
        return replace(run, lines=lines, digest=f"{run.digest}{lines[-1]}")


def test_what_is_set_up_in_the_first_run_of_a_process_is_no_part_of_a_sweep() -> None:
    assert sweep(Forgetful(fan_out(1))).status == sweep(Toy(fan_out(1))).status


def test_a_probe_that_is_not_deterministic_is_told_at_once() -> None:
    class Counts(Toy):
        def run(self, *args: object, **kwargs: object) -> Run:
            run = super().run(*args, **kwargs)  # type: ignore[arg-type]
            return replace(run, lines=(*run.lines, str(self.runs)))

    toy = Counts(fan_out(1))
    with pytest.raises(NotDeterministic, match="line 2 is the first that differs"):
        sweep(toy)
    assert toy.runs == 4


def test_what_fails_is_run_again_before_it_is_told() -> None:
    class Later(Forgetful):
        changes_at = 4

    with pytest.raises(
        NotDeterministic, match=r"cancelled at 1.1#1/early:task went different ways"
    ):
        sweep(Later(swallower), modes=("early",), budget=Budget(4, None))
    report = sweep(Toy(swallower), modes=("early",))
    assert report.runs == 2 + 2 + 1


# --- how it is run


def ahead(probe: Toy, batch: int = 7) -> Means:
    """Make the runs in batches, before anybody asks for them."""

    def many(attempts: Iterable[Attempt]) -> Iterator[Run]:
        source = iter(attempts)
        while some := list(islice(source, batch)):
            yield from [attempt.run(probe) for attempt in some]

    return Means(many=many)


@pytest.mark.parametrize("program", [hand_off, swallower, lost_update(3)])
def test_the_report_is_the_same_however_the_runs_are_made(program) -> None:
    assert sweep(Toy(program), means=ahead(Toy(program))) == sweep(Toy(program))


def test_progress_is_told() -> None:
    told: list[Progress] = []
    report = sweep(Toy(hand_off), means=Means(on_progress=told.append))
    assert [each.runs for each in told] == list(range(1, report.runs + 1))
    assert [*dict.fromkeys(each.doing for each in told)] == ["baseline", "single", "double"]
    assert told[-1].found == len(report.failed)
    singles = [each for each in told if each.doing == "single"]
    assert singles[0].planned == singles[-1].runs


def test_landings_are_kept_in_the_order_of_the_cancels() -> None:
    class Swapped(Toy):
        def run(self, *args: object, **kwargs: object) -> Run:
            run = super().run(*args, **kwargs)  # type: ignore[arg-type]
            landings = tuple(Landing(each.shot, str(each.shot)) for each in run.landings)
            return replace(run, landings=landings[::-1])

    points = sweep(Swapped(fan_out(1)), modes=("double",)).points
    assert {len(point.shots) for point in points} == {1, 2}
    for point in points:
        assert point.landings == tuple(map(str, point.shots))
        assert isinstance(point.shots[0], Shot)
