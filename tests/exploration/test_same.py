"""Where two runs part is said by the first thing that differs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from harness.core.errors import NotDeterministic
from harness.exploration.attempts import Attempt
from harness.exploration.probe import Asked, Finding, Landing, Run, Shot, Site
from harness.exploration.same import again, agreed, confirm, parting, steady
from tests.exploration.programs import fan_out, lost_update
from tests.exploration.toys import Toy, World

SITE = Site("1", 1, "turn", "x.py:1", 1, 2)
SHOT = Shot("1", 1, "early", "task")
RUN = Run(
    digest="d" * 64,
    sites=(SITE,),
    steps=2,
    asked=(Asked("ready", "1", 2, 1, 1),),
    landings=(Landing(SHOT, "propagated"),),
    findings=(Finding("k", "m"),),
    lines=("a", "b"),
)


def test_equal_runs_do_not_part() -> None:
    assert parting(RUN, replace(RUN)) is None


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (replace(RUN, lines=("a", "c")), "line 2 is the first that differs"),
        (replace(RUN, lines=("a", "b", "c")), "line 3 is the first that differs"),
        (replace(RUN, asked=()), "choice 1 is the first that differs"),
        (replace(RUN, sites=(SITE, SITE)), "site 2 is the first that differs"),
        (replace(RUN, landings=()), "landing 1 is the first that differs"),
        (replace(RUN, findings=(Finding("k", "n"),)), "finding 1 is the first that differs"),
        (replace(RUN, tolerated=(Finding("k", "n"),)), "tolerated finding 1 is the first"),
        (replace(RUN, digest="e" * 64), "2 steps, digest dddddddddddd, then 2 steps, digest eeee"),
        (replace(RUN, steps=3), "they differ in what they came to: 2 steps"),
        (replace(RUN, unresolved="limit"), "unresolved: limit"),
        (replace(RUN, reached=frozenset("ba")), "reached a, b"),
    ],
)
def test_the_first_difference_is_told(other: Run, told: str) -> None:
    where = parting(RUN, other)
    assert where is not None
    assert told in where


def test_a_line_too_few_is_told() -> None:
    assert parting(RUN, replace(RUN, lines=("a",))) == (
        "line 2 is the first that differs\n  first:  b\n  second: (nothing more)"
    )


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (replace(RUN, sites=()), "first:  task 1 (turn) waits #1 at x.py:1, from step 1 to 2"),
        (
            replace(RUN, sites=(replace(SITE, where="", last=None),)),
            "second: task 1 (turn) waits #1, from step 1 to the end",
        ),
        (replace(RUN, landings=()), "first:  the cancel 1#1/early:task came to: propagated"),
        (replace(RUN, findings=()), "first:  m\n"),
        (replace(RUN, asked=()), "first:  ready 1 is 1 of 2"),
    ],
)
def test_what_differs_is_told_in_words(other: Run, told: str) -> None:
    assert told in str(parting(RUN, other))


def test_choices_are_the_same_in_whatever_order_and_at_whatever_step() -> None:
    two = (Asked("latency", "t", 5, 3, 9), Asked("ready", "1", 2, 0, 1))
    turned = (Asked("ready", "1", 2, 0, 0), Asked("latency", "t", 5, 3, 0))
    assert parting(replace(RUN, asked=two), replace(RUN, asked=turned)) is None


def test_agreement_ends_at_the_first_difference() -> None:
    assert agreed("abcd", "abxd") == 2
    assert agreed("ab", "abc") == 2
    assert agreed("", "abc") == 0


def test_a_run_that_can_be_had_again_is_steady() -> None:
    toy = Toy(fan_out(2))
    assert steady(toy) == toy.run()
    picked = toy.run(picker=lambda source, label, bound: bound - 1)
    confirm(toy, picked)


class Drifting(Toy):
    """What it logs depends on how often it ran, as with a module's global."""

    def run(self, *args: object, **kwargs: object) -> Run:
        run = super().run(*args, **kwargs)  # type: ignore[arg-type]
        return replace(run, lines=(*run.lines, f"run {self.runs}"), digest=str(self.runs))


class SetUpOnce(Toy):
    """Its first run is another than all others, as where a client looks at its platform once."""

    def run(self, *args: object, **kwargs: object) -> Run:
        run = super().run(*args, **kwargs)  # type: ignore[arg-type]
        return run if self.runs > 1 else replace(run, lines=("set up",), digest="1")


def test_what_only_the_first_run_of_a_process_does_counts_for_nothing() -> None:
    toy = SetUpOnce(fan_out(2))
    assert steady(toy) == Toy(fan_out(2)).run()


def test_a_run_that_cannot_be_had_again_is_an_error() -> None:
    with pytest.raises(NotDeterministic) as caught:
        steady(Drifting(lost_update(2), name="drifting"))
    assert str(caught.value).startswith(
        "drifting: two runs with the same choices went different ways; "
        "line 3 is the first that differs\n  first:  run 3\n  second: run 4\n"
    )


class Talkative(Drifting):
    """The same, in lines that are long."""

    def run(self, *args: object, **kwargs: object) -> Run:
        run = super().run(*args, **kwargs)
        return replace(run, lines=(f"{'a' * 1_000} {run.lines[-1]} {'z' * 1_000}",))


def test_of_long_lines_what_is_about_the_place_is_shown() -> None:
    with pytest.raises(NotDeterministic) as caught:
        steady(Talkative(lost_update(2)))
    _, first, second, _ = str(caught.value).splitlines()
    assert first.startswith("  first:  …aaa")
    assert first.endswith("zzz…")
    assert " run 3 " in first
    assert " run 4 " in second
    assert len(first) < 260


def test_the_error_names_the_cancels() -> None:
    toy = Drifting(fan_out(1))
    with pytest.raises(NotDeterministic, match="cancelled at 1#1/early:task went different"):
        confirm(toy, toy.run((), (SHOT,)), (SHOT,))


def test_toys_are_worlds_of_their_own() -> None:
    seen = []

    def turn(world: World) -> object:
        seen.append(world)
        yield

    toy = Toy(turn)  # type: ignore[arg-type]
    assert toy.run() == toy.run()
    assert seen[0] is not seen[1]


def test_a_run_that_is_made_again_is_the_one_that_it_was() -> None:
    attempt = Attempt(shots=(Shot("1", 1, "early", "task"),))
    run = Toy(fan_out(1)).run((), attempt.shots)
    assert again(Toy(fan_out(1)), attempt, run.digest) == run
    told = r"cancelled at 1#1/early:task went different ways; their digests are x, then "
    with pytest.raises(NotDeterministic, match=told):
        again(Toy(fan_out(1)), attempt, "x")
