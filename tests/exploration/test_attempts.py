"""An attempt is data, and a tape is followed where it fits."""

from __future__ import annotations

import pickle

import pytest

from harness.core.choices import Draw
from harness.core.errors import ReplayMismatch
from harness.exploration.attempts import Attempt, decisions, lenient, one_by_one, tape_of
from harness.exploration.chance import Chance
from harness.exploration.probe import Shot
from tests.exploration.programs import coins, keys, order_of_three, slow_tool
from tests.exploration.toys import Toy

SLOW = (Draw("latency", "a", 3, 4),)


def test_an_attempt_is_the_run_of_its_choices_and_cancels() -> None:
    toy = Toy(slow_tool)
    shots = (Shot("1.1", 1, "early", "task"),)
    chance = Chance("random", 1, 2)
    assert Attempt().run(toy) == toy.run()
    assert Attempt(SLOW).run(toy) == toy.run(SLOW)
    assert Attempt((), shots).run(toy) == toy.run((), shots)
    assert Attempt(chance, shots).run(toy) == toy.run((), shots, chance.picker())
    assert keys(Attempt(SLOW).run(toy)) == {"answers"}


def test_an_attempt_can_be_sent_to_another_process() -> None:
    attempt = Attempt(Chance("pct", 1, 2, 3, 40), (Shot("1", 1, "mid", "agent", 4),))
    there = pickle.loads(pickle.dumps(attempt))
    assert there == attempt
    run = Attempt(there.choices).run(Toy(order_of_three))
    assert pickle.loads(pickle.dumps(run)) == Attempt(attempt.choices).run(Toy(order_of_three))


def test_attempts_are_made_when_their_runs_are_asked_for() -> None:
    toy = Toy(slow_tool)
    runs = one_by_one(toy)(iter([Attempt(), Attempt(SLOW)]))
    assert toy.runs == 0
    next(runs)
    assert toy.runs == 1


def test_the_tape_of_a_run_gives_it_again() -> None:
    toy = Toy(order_of_three)
    run = toy.run(picker=Chance("random", 0, 5).picker())
    assert toy.run(tape_of(run)) == run
    assert sorted(decisions(run), key=lambda d: (d.source, d.label)) == list(tape_of(run))
    steps = {asked.label: asked.step for asked in run.asked}
    order = [steps[draw.label] for draw in decisions(run)]
    assert order == sorted(order)


def test_a_tape_that_does_not_fit_is_followed_where_it_does() -> None:
    toy = Toy(coins(3, 3))
    tape = (Draw("coin", "0", 2, 9), Draw("coin", "1", 7, 9), Draw("coin", "9", 1, 2))
    run = toy.run(picker=lenient(tape))
    assert [asked.value for asked in run.asked] == [2, 0, 0]
    with pytest.raises(ReplayMismatch):
        toy.run(tape)
