"""A search finds planted bugs within its budget, makes them simple, and says what it has tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pytest
from msgspec.structs import replace

from harness.core.errors import NotDeterministic, UsageError
from harness.exploration.attempts import Attempt
from harness.exploration.budget import Budget, Means, Progress
from harness.exploration.probe import Run
from harness.exploration.search import search
from harness.exploration.search_report import SearchReport
from tests.exploration.programs import (
    coins,
    fan_out,
    hand_off,
    keys,
    lost_update,
    order_of_three,
    run_all,
    slow_tool,
    starvation,
    yields,
)
from tests.exploration.toys import Steps, Toy, World


def strategies(report: SearchReport) -> list[str]:
    return [tried.strategy for tried in report.tried]


# --- what is found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("program", "key", "most"),
    [
        (lost_update(5), "lost update", 4),
        (order_of_three, "order", 8),
        (starvation, "starved", 16),
        (slow_tool, "answers", 1),
    ],
)
def test_planted_bugs_are_found_and_made_simple(program, key: str, most: int, seed: int) -> None:
    toy = Toy(program)
    report = search(toy, seed=seed)
    assert report.status == "FAIL"
    (found,) = report.found
    assert found.key == key
    assert found.shrunk.minimal
    assert found.shrunk.shots == ()
    assert 0 < len(found.shrunk.tape) <= min(most, found.deviations)
    assert keys(toy.run(found.shrunk.tape)) == {key}
    assert report.ended == "the first finding ends the search"


@pytest.mark.parametrize("strategy", ["random", "pct:2", "pct:3"])
@pytest.mark.parametrize("program", [lost_update(5), starvation])
def test_each_strategy_finds_bugs_of_its_own(program, strategy: str) -> None:
    report = search(Toy(program), strategy=strategy)
    assert report.status == "FAIL"
    assert strategies(report) == ["fifo", strategy]
    assert report.found[0].strategy == strategy


def test_a_bug_of_one_decision_is_found_by_few_deviations() -> None:
    report = search(Toy(slow_tool), strategy="few")
    assert [(found.strategy, found.deviations) for found in report.found] == [("few", 1)]


def test_a_bug_that_needs_no_deviation_is_found_first() -> None:
    def turn(world: World) -> Steps:
        yield
        world.find("always", "it always fails")

    report = search(Toy(turn))
    (found,) = report.found
    assert (found.strategy, found.at_run, found.deviations) == ("fifo", 1, 0)
    assert (found.message, found.shrunk.tape) == ("it always fails", ())


def two_bugs(world: World) -> Steps:
    for name in ("a", "b"):
        if world.choose("latency", name, 3) == 2:
            world.find(name, f"{name} is slow")
    yield


def test_a_search_that_keeps_going_tells_each_bug_once() -> None:
    report = search(Toy(two_bugs), keep_going=True)
    assert [(found.key, found.count) for found in report.found] == [("a", 3), ("b", 3)]
    assert [len(found.shrunk.tape) for found in report.found] == [1, 1]
    assert report.exhausted
    assert report.ended == "every schedule was tried"
    assert len(search(Toy(two_bugs)).found) == 1


def test_two_findings_of_one_run_are_both_told() -> None:
    def turn(world: World) -> Steps:
        if world.choose("latency", "a", 2):
            world.find("one")
            world.find("other")
        yield

    assert {found.key for found in search(Toy(turn)).found} == {"one", "other"}


def test_random_cancels_find_what_an_order_alone_does_not() -> None:
    assert search(Toy(hand_off), Budget(300, None)).status == "PASS"
    report = search(Toy(hand_off), Budget(300, None), cancels=1)
    (found, *_) = report.found
    assert len(found.shrunk.shots) == 1
    assert found.key in keys(Toy(hand_off).run(found.shrunk.tape, found.shrunk.shots))


def test_what_is_tried_in_full_is_said_of_orders_only_where_there_are_cancels() -> None:
    report = search(Toy(fan_out(2)), Budget(300, None), cancels=1)
    assert not report.exhausted
    assert report.ended == (
        "the budget of 300 runs is spent; all schedules without a cancel were tried, and some with"
    )


def test_few_deviations_and_cancels_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="strategy few makes no cancels; use auto, random or pct:"):
        search(Toy(fan_out(2)), strategy="few", cancels=1)
    with pytest.raises(UsageError, match="cancels is -1; expected how many"):
        search(Toy(fan_out(2)), cancels=-1)


def test_up_to_so_many_cancels_come_in_one_run() -> None:
    seen: list[int] = []

    class Counting(Toy):
        def run(self, tape=(), shots=(), picker=None) -> Run:
            seen.append(len(shots))
            return super().run(tape, shots, picker)

    search(Counting(fan_out(3)), Budget(200, None), "random", cancels=2)
    assert set(seen) == {0, 1, 2}


# --- what was tried


@pytest.mark.parametrize(("count", "bound"), [(1, 2), (3, 3), (5, 2), (2, 7), (10, 2)])
def test_all_schedules_of_a_small_probe_are_tried_once(count: int, bound: int) -> None:
    report = search(Toy(coins(count, bound)))
    assert report.exhausted
    assert report.ended == "every schedule was tried"
    assert report.distinct == bound**count
    assert report.runs == bound**count + 1  # the baseline runs twice
    assert report.deviations == count
    assert strategies(report) == ["fifo", "few"]
    assert report.status == "PASS"


def test_levels_that_do_not_fit_a_quarter_of_the_budget_are_left_to_chance() -> None:
    report = search(Toy(coins(10, 3)), Budget(1_000, None))
    assert report.deviations == 2
    assert [(tried.strategy, tried.runs) for tried in report.tried] == [
        ("fifo", 2),
        ("few", 20 + 180),
        ("random", 798),
    ]
    assert not report.exhausted
    assert report.ended == "the budget of 1,000 runs is spent"


def test_a_level_must_fit_into_what_the_levels_before_have_left() -> None:
    assert search(Toy(coins(10, 3)), Budget(4 * 199, None)).deviations == 1
    assert search(Toy(coins(10, 3)), Budget(4 * 200, None)).deviations == 2


def test_few_deviations_alone_go_on_to_the_end_of_the_budget() -> None:
    report = search(Toy(coins(10, 3)), Budget(1_000, None), "few")
    assert report.runs == 1_000
    assert report.deviations == 2
    assert not report.exhausted


def test_a_probe_that_asks_for_nothing_has_one_schedule() -> None:
    toy = Toy(yields(3))
    for strategy in ("auto", "few", "random", "pct:2"):
        report = search(toy, strategy=strategy)
        assert (report.runs, report.distinct, report.exhausted) == (2, 1, True)


def test_schedules_that_are_the_same_count_once() -> None:
    def turn(world: World) -> Steps:
        world.choose("latency", "without effect", 1_000)
        yield

    report = search(Toy(turn), Budget(100, None))
    assert (report.runs, report.distinct) == (100, 1)
    assert [tried.new for tried in report.tried] == [1, 0]


def test_strategies_take_turns_where_there_is_an_order_to_choose() -> None:
    tried = search(Toy(fan_out(6)), Budget(42, None)).tried
    assert {each.strategy: each.runs for each in tried} == {
        "fifo": 2,
        "random": 20,
        "pct:2": 10,
        "pct:3": 10,
    }


# --- goals, and what is not known


def test_a_goal_that_no_run_reaches_makes_the_search_incomplete() -> None:
    def turn(world: World) -> Steps:
        if world.choose("latency", "a", 3) == 1:
            world.reached.add("slow")
        yield

    report = search(Toy(turn), goals=("slow", "slower", "slowest"))
    assert report.goals == (("slow", 1), ("slower", 0), ("slowest", 0))
    assert report.status == "INCOMPLETE"
    assert report.incomplete == ("no run of 4 came to: slower, slowest",)
    assert search(Toy(turn), goals=("slow",)).status == "PASS"


def test_a_run_that_is_not_resolved_makes_the_search_incomplete() -> None:
    def turn(world: World) -> Steps:
        while world.choose("latency", str(world.steps), 2):
            yield

    toy = Toy(turn, steps_most=3)
    report = search(toy, strategy="random")
    assert report.status == "INCOMPLETE"
    first = report.undecided_first
    assert first is not None
    assert report.incomplete[0] == (
        f"{report.undecided:,} runs not resolved; the first is run {first.at_run}: "
        "more than 3 steps"
    )
    assert toy.run(first.tape).unresolved == first.why


def test_a_budget_of_seconds_is_measured_by_the_clock() -> None:
    toy = Toy(coins(30, 2))
    report = search(toy, means=Means(clock=lambda: toy.runs / 2))
    assert report.ended == "the budget of 30 s is spent, after 60 runs"
    assert report.status == "PASS"


def test_a_probe_that_is_not_deterministic_is_an_error() -> None:
    class Worn(Toy):
        def run(self, *args: object, **kwargs: object) -> Run:
            run = super().run(*args, **kwargs)  # type: ignore[arg-type]
            return replace(run, lines=(*run.lines, str(max(self.runs, self.lasts))))

        lasts = 1

    with pytest.raises(NotDeterministic):
        search(Worn(coins(2, 2)))
    Worn.lasts = 2
    assert search(Worn(coins(2, 2))).status == "PASS"
    Worn.lasts = search(Toy(slow_tool)).found[0].at_run
    with pytest.raises(NotDeterministic):
        search(Worn(slow_tool))


@pytest.mark.parametrize("strategy", ["rand", "pct", "pct:0", "pct:x"])
def test_an_unknown_strategy_is_refused(strategy: str) -> None:
    with pytest.raises(UsageError, match=r"unknown strategy '.*known: auto, few, random, pct:<dep"):
        search(Toy(yields(1)), strategy=strategy)


# --- how it is run


def test_the_seed_decides_everything() -> None:
    def ways(seed: int) -> SearchReport:
        return search(Toy(fan_out(5)), Budget(60, None), "random", seed, cancels=1, keep_going=True)

    assert ways(1) == ways(1)
    assert ways(1).distinct != ways(2).distinct or ways(1).tried != ways(3).tried


def test_the_report_is_the_same_however_the_runs_are_made() -> None:
    toy = Toy(order_of_three)

    def many(attempts: Iterable[Attempt]) -> Iterator[Run]:
        source = iter(attempts)
        while some := list(islice(source, 16)):
            yield from [attempt.run(toy) for attempt in some]

    assert search(toy, means=Means(many=many)) == search(toy)


def test_progress_is_told() -> None:
    told: list[Progress] = []
    report = search(Toy(two_bugs), keep_going=True, means=Means(on_progress=told.append))
    assert [each.runs for each in told] == list(range(1, report.runs + 1))
    assert told[-1] == Progress("few", report.runs, 10_000, 2)


def test_a_draw_in_one_place_shifts_no_other_source() -> None:
    """The runs of a program do not change where another source asks for a choice beside it."""

    def orders(turn) -> list[tuple[int, ...]]:
        seen = []

        class Seeing(Toy):
            def run(self, *args: object, **kwargs: object) -> Run:
                run = super().run(*args, **kwargs)  # type: ignore[arg-type]
                seen.append(tuple(a.value for a in run.asked if a.source == "ready"))
                return run

        search(Seeing(turn), Budget(40, None), "pct:2")
        return seen[2:]

    def tool(world: World, *, asks: bool) -> Steps:
        if asks:
            world.choose("fault", f"{world.steps}", 2)
        yield

    def turn(world: World, *, asks: bool) -> Steps:
        yield from run_all([world.spawn(tool(world, asks=asks)) for _ in range(4)])

    plain = orders(lambda world: turn(world, asks=False))
    assert plain == orders(lambda world: turn(world, asks=True))
    assert len(set(plain)) > 5
