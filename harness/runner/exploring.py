"""Explores scenarios and functions: cancels them at every point, tries other orders and latencies,
and replays one run of all that were made.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from msgspec.structs import replace

from harness.core.errors import NoPoints, NotDeterministic, UsageError
from harness.core.located import shortened
from harness.core.monotonic import MONOTONIC
from harness.core.ports import Build
from harness.exploration.budget import BUDGET, MEANS, Budget, Means
from harness.exploration.probe import Probe, Role, Whom
from harness.exploration.same import confirm, settle, steady
from harness.exploration.search import depths, search
from harness.exploration.sweep import MODES, SWEEP_BUDGET, chosen
from harness.exploration.sweep import sweep as sweep_probe
from harness.exploration.sweep_report import SweepMode
from harness.report.replay import FunctionReplay, Replay
from harness.report.search import Exploration
from harness.report.sweep import Sweep
from harness.runner.agents import Subject, at_level, scripted, subject_for
from harness.runner.evidence import of_open, of_search, of_sweep
from harness.runner.explored import Explored, OnAgent
from harness.runner.files.load import read
from harness.runner.functions.allow import Allow
from harness.runner.functions.explored import OnAsyncio
from harness.runner.functions.subject import Factory
from harness.runner.scenario import Scenario
from harness.runner.token import Token
from harness.sim.hold import kept
from harness.sim.orders import ORDERS, Order

USUAL_MODES: tuple[SweepMode, ...] = ("start", "early", "late")
"""One cancel at each of its own moments of every task: the modes that grow with the run only."""

TIMED = Means(clock=time.monotonic)  # noqa: TID251 - a budget is of real seconds
"""One run after the other, and seconds that count."""

Modes: TypeAlias = Sequence[SweepMode] | SweepMode | Literal["all"]
"""The modes of a sweep, or all there are."""


@kept()
def sweep(  # noqa: PLR0913 - an argument for each thing that can be asked of a sweep
    scenario: Scenario | str | Path | Factory,
    agent: Build | Subject | str | None = None,
    *,
    allow: Sequence[str] = (),
    modes: Modes = USUAL_MODES,
    roles: Sequence[Role] | Role | None = None,
    whom: Sequence[Whom] | Whom | None = None,
    budget: int = SWEEP_BUDGET.runs,
    means: Means = MEANS,
    level: str = "model",
) -> Sweep:
    """Run `scenario` on `agent`, cancelled at every point there is, and judge each run.

    `scenario` may be a file's path, or a text of several lines that is one; `agent` the function
    that builds it, its name as `package.module:build`, the name of a reference loop, or None for
    the one loop that the scenario names; `level` is as for `run`. `budget` is a number of runs. A
    list of one may be given as its text, and all modes as ``"all"``; docs/how-to/cancel-sweeps.md
    has the rest. In place of a scenario, a function without arguments, asynchronous or not, is run
    as it is; `allow` are the classes of its findings that are tolerated, as
    docs/how-to/async-functions.md says. NoPoints where all is well and there is nothing to cancel,
    NotDeterministic where the same run twice goes two ways, UsageError for unknown names.
    """
    allowed = Allow(allow)
    listed = _listed(modes)
    modes = MODES if "all" in listed else listed
    roles = None if roles is None else _listed(roles)
    explored = explored_for(scenario, agent, allowed, level)
    runs = Budget(runs=budget, seconds=None)
    excuse = explored.excuse(MONOTONIC) if isinstance(explored, OnAgent) else None
    with _saying_more(explored):
        probe = explored.probe()
        told = None if whom is None else _listed(whom)
        if told is not None and isinstance(explored, OnAgent):
            explored.check_whom(told, probe)
        report = sweep_probe(probe, modes, roles, told, runs, means=means, excuse=excuse)
    well = not report.failed and report.baseline.unresolved is None
    if well and not any(site.k and not site.thread for site in report.baseline.sites):
        raise NoPoints(
            f"{explored.name} never waits, so that there is nothing that a cancel would cut short"
        )
    if report.status == "PASS":
        allowed.check_needed()
    return Sweep(explored.name, explored.on, report, of_sweep(report, explored))


@kept()
def explore(  # noqa: PLR0913 - an argument for each thing that can be asked of a search
    scenario: Scenario | str | Path | Factory,
    agent: Build | Subject | str | None = None,
    *,
    allow: Sequence[str] = (),
    order: Order = "completions",
    strategy: str = "auto",
    seed: int = 0,
    runs: int = BUDGET.runs,
    seconds: float | None = BUDGET.seconds,
    cancels: int = 0,
    goals: Sequence[str] = (),
    faults: bool = False,
    keep_going: bool = False,
    means: Means = TIMED,
    level: str = "model",
) -> Exploration:
    """Run `scenario` on `agent` in as many ways as the budget allows, and judge each run.

    Latencies, the cutting of replies and, as `order` says, the order of what can run at one instant
    are choices (harness/sim/orders.py); up to `cancels` cancels a run are mixed in. With `faults`,
    so is what can go wrong with a reply on its way (harness/fakes/wire_faults.py). It ends at the
    first finding, or with `keep_going` gives each kind of finding once, each made simple. A goal of
    `goals`, such as ``"tool_ended slow"``, must be reached by some run. `scenario`, `agent`,
    `allow` and `level` are as for `sweep`; `seconds` are real ones (None: as many as it takes). See
    docs/how-to/exploring.md for the rest. NotDeterministic where the same run twice goes two ways,
    UsageError for names that are not known.
    """
    goals = _listed(goals)
    check_search(order, strategy, cancels)
    budget = Budget(runs, seconds)
    if means.clock is None:
        budget = Budget(runs, None)
    allowed = Allow(allow)
    explored = explored_for(scenario, agent, allowed, level, faults=faults)
    probe: Probe
    if isinstance(explored, OnAsyncio):
        probe = explored.probe(order, goals=goals, places=False, sites=cancels > 0)
    else:
        probe = explored.probe(order, goals=goals, places=False)
    with _saying_more(explored, order):
        report = search(
            probe,
            budget,
            strategy,
            seed,
            goals,
            cancels=cancels,
            keep_going=keep_going,
            means=means,
        )
    if report.status == "PASS":
        allowed.check_needed()
    return Exploration(
        explored.name,
        explored.on,
        order,
        budget,
        report,
        of_search(report, explored, order),
        of_open(report, explored, order),
    )


def check_search(order: str, strategy: str, cancels: int = 0) -> None:
    """UsageError where there is no such order or strategy, or it makes no such `cancels`."""
    chosen("order", (order,), ORDERS)
    depths(strategy, cancels)


def _listed(given: Sequence[Any]) -> tuple[Any, ...]:
    """What was given as a list, or as its one text, which is a sequence too: of its characters."""
    return (given,) if isinstance(given, str) else tuple(given)


@overload
def replay(
    token: str,
    scenario: Scenario | str | Path,
    agent: Build | Subject | str | None = None,
    *,
    level: str = "model",
) -> Replay: ...
@overload
def replay(token: str, scenario: Factory, *, allow: Sequence[str] = ()) -> FunctionReplay: ...
def replay(
    token: str,
    scenario: Scenario | str | Path | Factory,
    agent: Build | Subject | str | None = None,
    *,
    allow: Sequence[str] = (),
    level: str = "model",
) -> Replay | FunctionReplay:
    """Run `scenario` on `agent` exactly as `token` says, and judge the run as it was judged then.

    A function in place of a scenario is known by its name; whether its code is still what it was,
    nobody can tell. UsageError where the token is none, or was made of another scenario or
    function, under another Python, or on an agent that can be stopped in other ways;
    ReplayMismatch where its choices do not fit; NotDeterministic where the same run twice goes two
    ways.
    """
    if not isinstance(token, str):
        raise UsageError(
            f"the token is {shortened(repr(token))}; expected its text, then what it was made of: "
            "replay(token, what)"
        )
    said = Token.parse(token)
    faults = any(draw.source == "fault" for draw in said.tape)
    explored = explored_for(scenario, agent, Allow(allow), level, faults=faults)
    if isinstance(explored, OnAsyncio):
        return _replay_function(said, explored)
    case = explored.scenario
    said.check(explored.digest, case.source or case.name or "the given one")
    probe = explored.probe(said.order, keep_lines=True)
    settle(probe)
    result, run = probe.play(said.tape, said.shots)
    for shot in said.shots:
        if shot.whom not in probe.whom:
            raise UsageError(
                f"the token's cancel {shot} calls the agent's own stop, but {explored.on} has no "
                "cancel(); run it on the agent that it was made on, or search again"
            )
    confirm(probe, run, said.shots)
    return Replay(run, replace(result.report(), rerun=explored.replay_line(str(said))))


def _replay_function(said: Token, explored: OnAsyncio) -> FunctionReplay:
    if said.digest != explored.digest:
        raise UsageError(
            f"the token was made of another function: it is for {said.digest}, and {explored.name} "
            f"is {explored.digest}; give the one that it was made of, which is known by its module "
            "and its name, or search again"
        )
    said.check(explored.digest, explored.name)
    probe = explored.probe(said.order, keep_lines=True)
    settle(probe)
    run = probe.run(said.tape, said.shots)
    confirm(probe, run, said.shots)
    return FunctionReplay(run, explored.name, explored.on, explored.replay_line(str(said)))


def explored_for(
    scenario: Scenario | str | Path | Factory,
    agent: Build | Subject | str | None = None,
    allow: Allow | None = None,
    level: str = "model",
    *,
    faults: bool = False,
) -> OnAgent | OnAsyncio:
    """What to sweep or to search: `scenario` on `agent`, or a function, given as for `sweep`."""
    allow = allow or Allow()
    if not isinstance(scenario, Scenario | str | Path):
        if agent is not None:
            raise UsageError("a function is run as it is; give an agent only to a scenario")
        if faults:
            raise UsageError("a function gets no replies; faults are for scenarios")
        return OnAsyncio(scenario, allow)
    if allow.names:
        raise UsageError("allow is for functions; a scenario says itself what it allows")
    case = read(scenario)
    subject = at_level(scripted(subject_for(agent, case)), level)
    return OnAgent(case, replace(subject, faults=faults))


@contextmanager
def _saying_more(explored: Explored, order: Order = "fifo") -> Iterator[None]:
    """Where two runs differ, say in which line, if two runs with their text differ too."""
    try:
        yield
    except NotDeterministic:
        steady(explored.probe(order, keep_lines=True))
        raise
