"""The random runs of a search are decided by the seed, the baseline and their number alone."""

from __future__ import annotations

from itertools import islice

from harness.exploration.campaign import Try
from harness.exploration.chance import Chance
from harness.exploration.points import Survey
from harness.exploration.portfolio import Portfolio
from harness.exploration.probe import ROLES
from tests.exploration.programs import coins, fan_out, lost_update, slow_tool
from tests.exploration.toys import Toy


def tries(toy: Toy, depths: tuple[int, ...], count: int, cancels: int = 0) -> list[Try]:
    portfolio = Portfolio(toy, toy.run(), depths, 7, cancels)
    return list(islice(portfolio.tries(), count))


def chances(toy: Toy, depths: tuple[int, ...], count: int) -> list[Chance]:
    return [one.attempt.choices for one in tries(toy, depths, count)]  # type: ignore[misc]


def test_the_same_numbers_give_the_same_attempts() -> None:
    toy = Toy(fan_out(4))
    assert tries(toy, (0, 2), 40, 2) == tries(toy, (0, 2), 40, 2)
    assert tries(toy, (0, 2), 40, 2) == tries(toy, (0, 2), 90, 2)[:40]


def test_depths_take_turns() -> None:
    strategies = [one.strategy for one in tries(Toy(lost_update(2)), (0, 2, 0, 3), 6)]
    assert strategies == ["random", "pct:2", "random", "pct:3", "random", "pct:2"]


def test_priorities_need_an_order_to_choose() -> None:
    assert {one.strategy for one in tries(Toy(coins(3, 2)), (0, 2, 0, 3), 6)} == {"random"}


def test_the_horizon_is_the_number_of_orders_in_the_baseline() -> None:
    toy = Toy(slow_tool)
    orders = sum(asked.source == "ready" for asked in toy.run().asked)
    assert 0 < orders < len(toy.run().asked)
    assert {chance.horizon for chance in chances(toy, (2,), 4)} == {orders}


def test_sources_are_treated_unevenly_half_of_the_time_where_there_are_many() -> None:
    uneven = [chance.uneven for chance in chances(Toy(slow_tool), (0, 2, 0, 3), 8)]
    assert uneven == [False, True, False, True, True, False, True, False]
    assert not any(chance.uneven for chance in chances(Toy(lost_update(2)), (0, 2), 8))


def test_cancels_are_those_that_the_baseline_could_take() -> None:
    toy = Toy(fan_out(3))
    points = {point.shot for point in Survey(toy.run(), ("task",), ROLES).points(MODES)}
    shots = [one.attempt.shots for one in tries(toy, (0,), 400, 2)]
    assert {len(each) for each in shots} == {0, 1, 2}
    assert {shot for each in shots for shot in each} <= points
    modes = [shot.mode for each in shots for shot in each]
    assert all(modes.count(mode) > 60 for mode in MODES)  # though most points are ``mid``


MODES = ("start", "early", "late", "mid")
