"""What stands beside a failing run: the passing run most like it, its steps, its busiest lines."""

from __future__ import annotations

from msgspec.structs import replace

from harness.core.choices import Draw
from harness.explore.explain import Difference, Move, difference, hottest, interleaving
from harness.explore.probe import Asked, Finding, Landing, Run, Shot, Site
from harness.explore.search import search
from harness.explore.sweep import sweep
from tests.explore.programs import hand_off, lost_update, slow_tool, spinner
from tests.explore.toys import Toy


def test_the_difference_is_to_the_run_without_the_one_decision() -> None:
    toy = Toy(slow_tool)
    (found,) = search(toy).found
    run, tape = found.shrunk.run, found.shrunk.tape
    told = difference(toy, run, tape)
    assert told is not None
    assert told.changed == "latency 'a' is 0 and not 3"
    assert told.passing == toy.run()


def scripted(**lines: str) -> type[Toy]:
    """A probe whose lines are those of the decisions that are made; it fails where all are."""

    class Scripted(Toy):
        def run(self, tape=(), shots=(), picker=None) -> Run:
            made = [name for name in "abc" if picker("choice", name, 2)]
            name = "".join(made) + "x" * len(shots)
            findings = (Finding("k", ""),) if name == "abcx" else ()
            return Run(name, lines=tuple(lines[name or "none"]), findings=findings)

    return Scripted


TAPE = tuple(Draw("choice", name, 1, 2) for name in "abc")
SHOT = Shot("1", 1, "early", "task")


def test_the_nearest_passing_run_agrees_the_longest() -> None:
    probe = scripted(abcx="12345678", abc="12", abx="1234x678", acx="1239", bcx="")()
    failing = Run("abcx", lines=tuple("12345678"), findings=(Finding("k", ""),))
    assert difference(probe, failing, TAPE, (SHOT,)) == Difference(
        changed="choice 'c' is 0 and not 1",
        passing=Run("abx", lines=tuple("1234x678")),
        agreed=4,
        lines=(("-", "x"), ("+", "5"), (" ", "6"), (" ", "7"), (" ", "8")),
    )


def test_of_equal_runs_the_first_is_shown() -> None:
    probe = scripted(abcx="123", abc="1", abx="12", acx="12", bcx="12")()
    told = difference(probe, Run("abcx", lines=tuple("123")), TAPE, (SHOT,))
    assert told is not None
    assert told.changed == "choice 'a' is 0 and not 1"


def test_a_run_without_the_cancel_is_one_of_those_beside_it() -> None:
    probe = scripted(abcx="123", abc="12", abx="1", acx="1", bcx="1")()
    told = difference(probe, Run("abcx", lines=tuple("123")), TAPE, (SHOT,))
    assert told is not None
    assert told.changed == "without the cancel 1#1/early:task"
    assert (told.agreed, told.lines) == (2, (("+", "3"),))


def test_runs_that_fail_too_or_are_not_resolved_are_not_shown() -> None:
    class Broken(Toy):
        def run(self, tape=(), shots=(), picker=None) -> Run:
            run = Run(str(shots))
            return replace(run, unresolved="limit") if shots else replace(run, findings=(BAD,))

    assert difference(Broken(), Run(""), (), (SHOT, SHOT)) is None
    assert difference(Broken(), Run(""), TAPE) is None


BAD = Finding("other", "")


def test_nothing_is_beside_a_run_that_fails_by_itself() -> None:
    toy = Toy(slow_tool)
    assert difference(toy, toy.run()) is None
    assert toy.runs == 1


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
