"""What is made simple fails alike, cannot be made simpler by one change, and is never longer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.choices import Choices, Draw, Picker, Tape
from harness.core.errors import NotDeterministic
from harness.exploration.attempts import decisions, lenient
from harness.exploration.chance import Chance
from harness.exploration.points import Survey
from harness.exploration.probe import ROLES, Asked, Finding, Landing, Run, Shot, Site, Whom
from harness.exploration.shrink import Shrunk, shrink
from tests.exploration.programs import hand_off, keys, order_of_three, torn_clean_up
from tests.exploration.toys import Toy

BOUND = 9


class Table:
    """Asks for so many choices, and fails where some have at least, or just, some values.

    A choice that is not 0 may take away those that come right after it: then their tape does not
    fit any more.
    """

    name = "table"
    whom: tuple[Whom, ...] = ("task",)

    def __init__(
        self,
        choices: int,
        least: dict[int, int],
        exactly: dict[int, int] | None = None,
        *,
        shots: int = 0,
        hides: int = 0,
    ) -> None:
        self.choices = choices
        self.least = least
        self.exactly = exactly or {}
        self.shots = shots
        self.hides = hides
        self.runs = 0

    def run(
        self, tape: Tape = (), shots: tuple[Shot, ...] = (), picker: Picker | None = None
    ) -> Run:
        self.runs += 1
        decide = Choices(tape, picker)
        values: dict[int, int] = {}
        asked = []
        at = 0
        while at < self.choices:
            values[at] = decide.choose("choice", str(at), BOUND)
            asked.append(Asked("choice", str(at), BOUND, values[at], at))
            at += 1 + (self.hides if values[at] else 0)
        decide.check_used()
        fails = (
            all(values.get(at, 0) >= value for at, value in self.least.items())
            and all(values.get(at, 0) == value for at, value in self.exactly.items())
            and len(shots) >= self.shots
        )
        sites = tuple(Site("1", k, "turn", "x", 3 * k, 3 * k + 3) for k in range(10))
        return Run(
            digest=f"{sorted(values.items())} {shots}",
            sites=sites,
            steps=30,
            asked=tuple(asked),
            landings=tuple(Landing(shot, "propagated") for shot in shots),
            findings=(Finding("fails", "it fails"),) if fails else (),
        )


def tape_with(values: dict[int, int]) -> Tape:
    return tuple(Draw("choice", str(at), value, BOUND) for at, value in values.items())


def simpler(found: Shrunk) -> list[tuple[Tape, tuple[Shot, ...]]]:
    """All that is simpler than a result by one change to its choices or cancels."""
    tape = decisions(found.run)
    ways = [(tape[:at] + tape[at + 1 :], found.shots) for at in range(len(tape))]
    for at, draw in enumerate(tape):
        for value in {draw.value // 2, draw.value - 1} - {0}:
            lower = replace(draw, value=value)
            ways.append(((*tape[:at], lower, *tape[at + 1 :]), found.shots))
    ways += [(tape, found.shots[:at] + found.shots[at + 1 :]) for at in range(len(found.shots))]
    return ways


values = st.dictionaries(st.integers(0, 19), st.integers(1, BOUND - 1), max_size=6)


@given(
    values, st.dictionaries(st.integers(0, 19), st.integers(1, BOUND - 1), max_size=14), st.data()
)
def test_the_result_fails_alike_and_is_locally_minimal(
    least: dict[int, int], noise: dict[int, int], data: st.DataObject
) -> None:
    exact = set(data.draw(st.lists(st.sampled_from(sorted(least)), unique=True)) if least else ())
    probe = Table(
        20,
        {at: value for at, value in least.items() if at not in exact},
        {at: value for at, value in least.items() if at in exact},
    )
    start = {**noise, **least}
    found = shrink(probe, "fails", tape_with(start))
    assert found.minimal
    assert found.run.findings == (Finding("fails", "it fails"),)
    assert found.run == probe.run(found.tape)
    assert len(found.tape) <= len(start)
    assert {int(draw.label): draw.value for draw in found.tape} == least
    for tape, shots in simpler(found):
        assert not probe.run((), shots, lenient(tape)).findings


@given(
    st.dictionaries(st.integers(0, 9), st.integers(1, 4), max_size=3),
    st.dictionaries(st.integers(0, 29), st.integers(1, BOUND - 1), max_size=20),
    st.integers(0, 3),
)
def test_choices_that_take_others_away_do_not_mislead(
    least: dict[int, int], noise: dict[int, int], hides: int
) -> None:
    probe = Table(30, {at * 3: value for at, value in least.items()}, hides=hides)
    start = tape_with({**noise, **{at * 3: value for at, value in least.items()}})
    first = probe.run((), (), lenient(start))
    if not first.findings:
        return
    found = shrink(probe, "fails", start)
    assert found.run.findings
    assert found.run == probe.run(found.tape)
    assert len(found.tape) <= len(decisions(first))
    assert sum(draw.value for draw in found.tape) <= sum(draw.value for draw in decisions(first))
    for tape, shots in simpler(found):
        assert not probe.run((), shots, lenient(tape)).findings


@pytest.mark.parametrize("kept", [[], [7], [0, 29], [3, 14, 28], [10, 11, 12, 13]])
def test_thirty_decisions_take_about_a_hundred_runs(kept: list[int]) -> None:
    probe = Table(30, dict.fromkeys(kept, 3))
    found = shrink(
        probe,
        "fails",
        tape_with({at: 1 + at % 8 or 3 for at in range(30)} | dict.fromkeys(kept, 6)),
    )
    assert [int(draw.label) for draw in found.tape] == sorted(kept, key=str)
    assert {draw.value for draw in found.tape} <= {3}
    assert found.runs <= 100
    assert found.runs == probe.runs - 1  # and one to be sure of the result


def test_values_are_made_as_low_as_they_can_be() -> None:
    for least in range(1, BOUND):
        found = shrink(Table(1, {0: least}), "fails", tape_with({0: BOUND - 1}))
        assert [draw.value for draw in found.tape] == [least]


def test_runs_that_do_not_suffice_give_what_there_is() -> None:
    start = tape_with(dict.fromkeys(range(30), 5))
    for most in (1, 2, 5, 20):
        probe = Table(30, {3: 2, 20: 2})
        found = shrink(probe, "fails", start, most=most)
        assert not found.minimal
        assert found.runs <= most
        assert found.run.findings
        assert len(found.tape) <= 30


def test_only_the_finding_that_is_asked_for_counts() -> None:
    class Other(Table):
        def run(self, *args: object, **kwargs: object) -> Run:
            run = super().run(*args, **kwargs)  # type: ignore[arg-type]
            return replace(run, findings=(*run.findings, Finding("always", "")))

    found = shrink(Other(5, {2: 3}), "fails", tape_with({1: 4, 2: 4}))
    assert [(draw.label, draw.value) for draw in found.tape] == [("2", 3)]
    assert shrink(Other(5, {2: 3}), "always", tape_with({1: 4, 2: 4})).tape == ()


def test_a_run_without_the_finding_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="table: the run to shrink has no finding 'fails'"):
        shrink(Table(2, {0: 1}), "fails")


def test_a_result_that_cannot_be_had_again_is_an_error() -> None:
    class Worn(Table):
        def run(self, *args: object, **kwargs: object) -> Run:
            run = super().run(*args, **kwargs)  # type: ignore[arg-type]
            return replace(run, digest=str(self.runs))

    with pytest.raises(NotDeterministic):
        shrink(Worn(1, {}), "fails")


# --- cancels


def shot(k: int, mode: str = "early", step: int | None = None) -> Shot:
    return Shot("1", k, mode, "task", step)  # type: ignore[arg-type]


@pytest.mark.parametrize("needed", range(4))
def test_cancels_that_are_not_needed_are_dropped(needed: int) -> None:
    found = shrink(Table(1, {}, shots=needed), "fails", (), (shot(2), shot(4), shot(6), shot(8)))
    assert len(found.shots) == needed


@pytest.mark.parametrize("mode", ["early", "late"])
def test_a_cancel_is_moved_to_the_first_suspension_where_that_will_do(mode: str) -> None:
    assert shrink(Table(1, {}, shots=1), "fails", (), (shot(7, mode),)).shots == (shot(1, mode),)


def test_a_cancel_in_the_middle_becomes_an_early_one() -> None:
    found = shrink(Table(1, {}, shots=1), "fails", (), (shot(5, "mid", 17),))
    assert found.shots == (shot(1),)


def test_a_cancel_before_the_first_step_stays() -> None:
    start = shot(0, "start")
    assert shrink(Table(1, {}, shots=1), "fails", (), (start,)).shots == (start,)


class Place(Table):
    """Fails where a ``mid`` cancel comes at or after a step."""

    def __init__(self, step: int) -> None:
        super().__init__(1, {}, shots=1)
        self.step = step

    def run(
        self, tape: Tape = (), shots: tuple[Shot, ...] = (), picker: Picker | None = None
    ) -> Run:
        run = super().run(tape, shots, picker)
        late = [each for each in shots if each.step is not None and each.step >= self.step]
        sites = tuple(Site("1", k, "turn", "x", 10 * k, 10 * k + 10) for k in range(5))
        return replace(run, sites=sites, findings=run.findings if late else ())


@pytest.mark.parametrize("step", [31, 34, 36, 39])
def test_a_cancel_in_the_middle_is_moved_to_an_earlier_step(step: int) -> None:
    found = shrink(Place(step), "fails", (), (shot(3, "mid", 39),))
    assert found.shots == (shot(3, "mid", step),)


def test_a_cancel_in_the_middle_is_moved_to_an_earlier_suspension() -> None:
    found = shrink(Place(23), "fails", (), (shot(4, "mid", 45),))
    (moved,) = found.shots
    assert moved == shot(3, "mid", 31)  # from there 21 is the next to try, and it is too early


def test_two_cancels_do_not_become_one() -> None:
    found = shrink(Table(1, {}, shots=2), "fails", (), (shot(3), shot(6)))
    assert found.shots == (shot(1), shot(2))


@pytest.mark.parametrize("program", [hand_off, torn_clean_up])
def test_cancels_of_a_real_failure_are_made_simple(program) -> None:
    toy = Toy(program)
    baseline = toy.run()
    points = [point.shot for point in Survey(baseline, ("task",), ROLES).points(("late", "mid"))]
    for index in range(20):
        picker = Chance("random", 0, index).picker()
        run = toy.run((), tuple(points[-2:]), picker)
        for key in sorted(keys(run)):
            found = shrink(toy, key, decisions(run), tuple(points[-2:]))
            assert key in keys(toy.run(found.tape, found.shots))
            assert len(found.shots) <= 2
            assert len(found.tape) <= len(decisions(run))


def test_a_long_schedule_becomes_a_short_one() -> None:
    toy = Toy(order_of_three)
    sizes = []
    for index in range(2_000):
        run = toy.run((), (), Chance("random", 9, index).picker())
        if run.findings:
            found = shrink(toy, "order", decisions(run))
            assert found.minimal
            sizes.append((len(decisions(run)), len(found.tape), found.runs))
    before, after, runs = map(sum, zip(*sizes, strict=True))
    assert len(sizes) > 20
    assert after * 2.5 < before
    assert runs < 60 * len(sizes)
