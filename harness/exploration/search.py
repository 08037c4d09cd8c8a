"""Tries orders, latencies and other choices until something is wrong or the budget is spent."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.core.errors import UsageError, unknown
from harness.exploration.attempts import Attempt, one_by_one
from harness.exploration.budget import BUDGET, MEANS, Budget, Means, Meter
from harness.exploration.campaign import Campaign, FewDeviations
from harness.exploration.portfolio import Portfolio
from harness.exploration.probe import Probe
from harness.exploration.same import steady
from harness.exploration.search_report import SearchReport

STRATEGIES = ("auto", "few", "random", "pct:<depth>")
"""``few``: all combinations of one deviation, then of two, and so on. ``random``: every value is as
likely as any other. ``pct:<depth>``: by priorities, where `depth` - 1 events that come in an
unlikely order make the failure. ``auto``: few deviations, as many as a quarter of the budget can
try in every combination, then ``random``, ``pct:2`` and ``pct:3`` by turns."""

_DEPTHS = {"auto": (0, 2, 0, 3), "few": (), "random": (0,)}


def search(
    probe: Probe,
    budget: Budget = BUDGET,
    strategy: str = "auto",
    seed: int = 0,
    goals: Sequence[str] = (),
    *,
    cancels: int = 0,
    keep_going: bool = False,
    means: Means = MEANS,
) -> SearchReport:
    """Run `probe` in as many ways as the budget allows, and give what was found, made simple.

    It ends at the first finding, or with `keep_going` tells each kind of finding once. Up to
    `cancels` random cancels are mixed with the random choices of a run. A goal of `goals` that no
    run reaches makes the search INCOMPLETE. NotDeterministic where the same choices give different
    runs, UsageError for a strategy that is not known, or that makes no cancels.
    """
    by_turns = depths(strategy, cancels)
    meter = Meter(budget, means)
    meter.planned = budget.runs
    baseline = steady(probe)
    campaign = Campaign(probe, meter, means.many or one_by_one(probe), keep_going=keep_going)
    campaign.note("fifo", Attempt(), baseline)
    campaign.note("fifo", Attempt(), baseline)
    few = FewDeviations(baseline)
    if strategy in ("auto", "few"):
        share = budget.runs // 4
        while few.width and (strategy == "few" or few.width <= share) and not campaign.over():
            share -= few.width
            few.next_level(campaign)
    if by_turns and (cancels or not few.exhausted):
        for _ in campaign.each(Portfolio(probe, baseline, by_turns, seed, cancels).tries()):
            pass
    reached = campaign.reached
    ended = campaign.over() or "every schedule was tried"
    if cancels and few.exhausted:
        ended += "; all schedules without a cancel were tried, and some with"
    return SearchReport(
        name=probe.name,
        strategy=strategy,
        seed=seed,
        cancels=cancels,
        baseline=baseline,
        runs=meter.runs,
        distinct=len(campaign.digests),
        tried=campaign.tried(),
        found=tuple(campaign.found.values()),
        tolerated=tuple(campaign.tolerated.values()),
        undecided=campaign.undecided,
        undecided_first=campaign.undecided_first,
        deviations=few.level,
        exhausted=few.exhausted and not cancels,
        goals=tuple([(goal, reached[goal]) for goal in dict.fromkeys([*goals, *sorted(reached)])]),
        ended=ended,
    )


def depths(strategy: str, cancels: int = 0) -> tuple[int, ...]:
    """The depths of priorities that a strategy takes by turns, 0 for even draws; UsageError where
    it is not known, or makes no cancels though up to so many are asked for.
    """
    if cancels < 0:
        raise UsageError(f"cancels is {cancels}; expected how many a run may have, at least 0")
    if cancels and strategy == "few":
        raise UsageError(
            "strategy few makes no cancels; use auto, random or pct:<depth>, or ask for no cancels"
        )
    priorities = re.fullmatch(r"pct:([1-9]\d?)", strategy)
    if priorities:
        return (int(priorities[1]),)
    found = _DEPTHS.get(strategy)
    if found is None:
        raise UsageError(unknown("strategy", strategy, STRATEGIES))
    return found
