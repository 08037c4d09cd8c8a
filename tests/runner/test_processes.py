"""Runs made in several processes are those of one, in the order of the attempts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from itertools import count, islice

import pytest
from msgspec.structs import replace

from harness.core.choices import Draw
from harness.core.errors import ReplayMismatch, UsageError
from harness.exploration.attempts import Attempt, one_by_one
from harness.exploration.chance import Chance
from harness.exploration.probe import Probe, Run, Shot
from harness.runner.processes import _begin, _runs, processes
from tests.exploration.programs import lost_update, slow_tool
from tests.exploration.toys import Toy


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """What Ctrl-C does in this process stays as it is."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


class Broken(Toy):
    """A probe whose third run breaks, beside the one that sets up its process."""

    def run(self, tape=(), shots=(), picker=None) -> Run:
        if self.runs == 3:
            raise ReplayMismatch("the third")
        return super().run(tape, shots, picker)


class Exits(Toy):
    """A probe that takes its process with it."""

    def run(self, tape=(), shots=(), picker=None) -> Run:
        os._exit(3)


def make(kind: type[Toy] = Toy) -> Probe:
    return kind(lost_update(3))


def other() -> Probe:
    return Toy(slow_tool)


ATTEMPTS = [
    Attempt(),
    *[Attempt(Chance("random", 1, index)) for index in range(20)],
    Attempt((Draw("ready", "1", 1, 3),), (Shot("1.1", 1, "early", "task"),)),
]


def test_runs_come_in_the_order_of_the_attempts() -> None:
    expected = list(one_by_one(make())(ATTEMPTS))
    with processes(2, [other, make]) as (others, many):
        assert list(many(ATTEMPTS)) == expected
        assert list(others(ATTEMPTS[:1])) == [other().run()]
        endless = (Attempt(Chance("random", 1, index)) for index in count())
        assert list(islice(many(endless), 20)) == expected[1:21]
        assert list(many([])) == []


def test_an_error_is_raised_where_its_run_would_come() -> None:
    with (
        processes(1, [partial(make, Broken)]) as (many,),
        pytest.raises(ReplayMismatch, match="the third"),
    ):
        list(many(ATTEMPTS[:3]))


def test_a_process_that_ends_is_told() -> None:
    with (
        processes(1, [partial(make, Exits)]) as (many,),
        pytest.raises(UsageError, match="a process that made runs ended in the middle of one"),
    ):
        list(many(ATTEMPTS[:3]))


class SetUpOnce(Toy):
    """A probe whose first run is another than all others."""

    def run(self, tape=(), shots=(), picker=None) -> Run:
        run = super().run(tape, shots, picker)
        return run if self.runs > 1 else replace(run, digest="another")


def test_what_is_set_up_in_the_first_run_of_a_process_counts_for_nothing() -> None:
    with processes(1, [partial(make, SetUpOnce)]) as (many,):
        assert list(many(ATTEMPTS[:2])) == list(one_by_one(make())(ATTEMPTS[:2]))


def test_a_process_makes_its_probe_once() -> None:
    made: list[Probe] = []

    def counted() -> Probe:
        made.append(make())
        return made[-1]

    _begin([other, counted])
    for _ in range(2):
        assert _runs(1, ATTEMPTS[:2]) == list(one_by_one(make())(ATTEMPTS[:2]))
    assert len(made) == 1
    _begin([])


def test_ctrl_c_is_left_to_who_waits_for_the_processes() -> None:
    _begin([])
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
