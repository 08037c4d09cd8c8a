"""Runs of one turn that is cancelled later and later are held against each other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from harness.core.errors import NotDeterministic
from harness.exploration.losses import Losses
from harness.exploration.points import Point
from harness.exploration.probe import Finding, Kept, Mode, Run, Shot, Whom
from harness.exploration.sweep import sweep
from harness.exploration.sweep_report import SweepReport
from tests.exploration.programs import fan_out
from tests.exploration.toys import Toy

Says = tuple[int, str]
"""A moment, and what is kept of a turn that is cancelled then, one letter each."""


def found(*runs: Says, turn: int = 1, whom: Whom = "turn") -> list[tuple[str, str, list[str]]]:
    """What is lost: its key, the earlier shot, and the later ones."""
    losses = Losses()
    for moment, items in runs:
        note(losses, moment, items, turn, whom)
    return told(losses)


def note(losses: Losses, moment: int, items: str, turn: int = 1, whom: Whom = "turn") -> None:
    point = Point(Shot("1", moment, "early", whom), "turn", turn, "", moment)
    losses.note(point, Run(f"d{moment}", kept=Kept(tuple(items), 7)))


def told(losses: Losses) -> list[tuple[str, str, list[str]]]:
    return [
        (lost.key, str(lost.loss.earlier), [str(shot) for shot in lost.shots])
        for lost in losses.found()
    ]


def test_more_and_more_is_no_loss() -> None:
    assert found((1, "a"), (2, "ab"), (3, "bac")) == []


def test_the_nearest_run_that_has_it_is_told_and_all_that_lack_it() -> None:
    assert found((4, "a"), (3, "a"), (9, "ab"), (1, ""), (2, "ab")) == [
        ("MONOTONIC: b", "at 1#2/early:turn", ["1#3/early:turn", "1#4/early:turn"])
    ]


def test_numbers_do_not_matter_to_what_is_lost() -> None:
    losses = Losses()
    for moment, items in ((1, ("call 1", "call 2")), (2, ("call 2",)), (3, ())):
        point = Point(Shot("1", moment, "early", "turn"), "turn", 1, "", moment)
        losses.note(point, Run("d", kept=Kept(items, 7)))
    [lost] = losses.found()
    assert (lost.key, len(lost.shots)) == ("MONOTONIC: call #", 2)
    assert lost.message == (
        "MONOTONIC: cancelled at 1#2/early:turn the next request lacks call 1, "
        "which it has when cancelled at 1#1/early:turn"
    )


def test_turns_and_addressees_are_not_held_against_each_other() -> None:
    losses = Losses()
    note(losses, 1, "a")
    note(losses, 2, "", turn=2)
    note(losses, 3, "", whom="agent")
    assert told(losses) == []


def test_a_run_of_which_nothing_is_known_or_something_is_wrong_is_not_compared() -> None:
    losses = Losses()
    point = Point(Shot("1", 2, "early", "turn"), "turn", 1, "", 2)
    note(losses, 1, "a")
    losses.note(point, Run("d"))
    losses.note(point, Run("d", kept=Kept((), 7), findings=(Finding("k", "m"),)))
    assert told(losses) == []


# --- in a sweep


class Forgets(Toy):
    """Keeps an item where it is cancelled early, and none where it is cancelled late."""

    forgets: Mode = "late"

    def run(self, *args: object, **kwargs: object) -> Run:
        run = super().run(*args, **kwargs)  # type: ignore[arg-type]
        shots = [landing.shot for landing in run.landings]
        if len(shots) != 1 or shots[0].whom == "task":
            return run
        items = () if shots[0].mode == self.forgets else ("item 1",)
        return replace(run, kept=Kept(items, 0))


def swept(excuse: str | None = None, **options: object) -> SweepReport:
    return sweep(forgetful(), excuse=excuse, **options)  # type: ignore[arg-type]


def forgetful() -> Forgets:
    return Forgets(fan_out(1), whom=("turn",))


def test_what_a_later_cancel_leaves_less_fails_a_sweep() -> None:
    report = swept(modes=("early", "late"))
    assert report.status == "FAIL"
    [group] = report.failed
    assert (group.key, group.against is not None) == ("MONOTONIC: item #", True)
    assert group.shots[0].mode == "late"
    assert group.points[0] == group.shots
    assert group.message.startswith(f"MONOTONIC: cancelled at {group.shots[0]} the next request")
    failed = [point for point in report.points if point.came == "failed"]
    assert {point.shots for point in failed} == set(group.points)
    assert all(point.keys == (group.key,) for point in failed)
    assert report.runs == 2 + len(report.points) + 2


def test_with_an_excuse_it_is_tolerated() -> None:
    report = swept("It is known.", modes=("early", "late"))
    assert report.status == "PASS"
    assert report.failed == ()
    [group] = report.tolerated
    assert (group.key, group.message) == ("MONOTONIC: item #", "MONOTONIC, It is known.")
    tolerated = {point.shots for point in report.points if point.came == "tolerated"}
    assert tolerated == set(group.points)


def test_what_is_lost_is_told_after_both_runs_were_made_again() -> None:
    class Moody(Forgets):
        def run(self, *args: object, **kwargs: object) -> Run:
            run = super().run(*args, **kwargs)  # type: ignore[arg-type]
            return replace(run, digest=f"{run.digest}{self.runs > 2 + points}")

    points = len(swept(modes=("early", "late")).points)
    with pytest.raises(NotDeterministic, match="their digests are "):
        sweep(Moody(fan_out(1), whom=("turn",)), modes=("early", "late"))
