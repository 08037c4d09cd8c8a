"""`harness explore`: try orders and latencies until something is wrong or the budget is spent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from harness.cli.completion import orders, strategies
from harness.cli.progress import telling
from harness.cli.report_files import (
    HtmlOption,
    JsonOption,
    also_html,
    also_json,
    also_refused,
    check_targets,
)
from harness.cli.selection import (
    AgentOption,
    LevelOption,
    LoopOption,
    PathsArgument,
    PolicyOption,
    load_all,
    not_made,
    not_run,
    subjects,
)
from harness.core.errors import HarnessError

if TYPE_CHECKING:
    from harness.exploration.probe import Probe
    from harness.report.not_run import NotRun
    from harness.report.search import Exploration
    from harness.runner.agents import Subject
    from harness.runner.scenario import Scenario
    from harness.sim.orders import Order


def explore(  # noqa: PLR0913, PLR0917 - an argument for each option
    paths: PathsArgument = None,
    loop: LoopOption = None,
    agent: AgentOption = None,
    policy: PolicyOption = None,
    level: LevelOption = "model",
    order: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Which orders are choices: fifo (none), completions, tasks, all.",
            autocompletion=orders,
        ),
    ] = "completions",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to choose: auto, few, random, pct:<depth>.",
            autocompletion=strategies,
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(metavar="N", help="What decides the random runs.")] = 0,
    runs: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most runs that one search may take.")
    ] = 10_000,
    seconds: Annotated[
        float, typer.Option(metavar="N", min=0.001, help="The most seconds that it may take.")
    ] = 30.0,
    cancels: Annotated[
        int, typer.Option(metavar="N", min=0, help="Up to how many cancels a random run has.")
    ] = 0,
    faults: Annotated[
        bool,
        typer.Option("--faults", help="Try also what can go wrong with a reply on its way."),
    ] = False,
    sometimes: Annotated[
        list[str] | None,
        typer.Option(
            "--sometimes",
            "--goal",
            metavar="GOAL",
            help="What some run must come to: an event, and its subject where that matters, as "
            "'tool_ended slow'; or 'reached <name>'. May be given again.",
        ),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on after the first finding, for others.")
    ] = False,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many processes make the runs.")
    ] = 1,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Run scenarios again and again in other orders and with other latencies, and judge each run.

    Without PATH, all of scenarios/. Without --loop and --agent, each on the loops that it names.
    The exit code is 0 where nothing is wrong with any run and every goal was reached.

    \b
    Examples:
      harness explore scenarios/cancel/slow_tool.yaml
      harness explore scenarios --loop turn --order tasks --runs 2000 --jobs 4
      harness explore a.yaml --agent my.agent:build --sometimes "tool_ended slow"
    """
    from harness.report.search import print_explorations
    from harness.report.terminal import make_console
    from harness.runner.exploring import check_search
    from harness.runner.goals import Goals

    check_targets(json, html)
    options: dict[str, Any] = {
        "order": order,
        "strategy": strategy,
        "seed": seed,
        "runs": runs,
        "seconds": seconds,
        "cancels": cancels,
        "faults": faults,
        "goals": tuple(sometimes or ()),
        "keep_going": keep_going,
    }
    with also_refused("search", json, html):
        check_search(order, strategy, cancels)
        Goals(options["goals"])
        work = [
            _Job(scenario, number, loop, agent, policy, level, faults)
            for scenario in load_all(paths, loop)
            for number, _ in enumerate(subjects(scenario, loop, agent, policy, level))
        ]
        found, lost = _all(work, jobs, options)
    items: list[NotRun | Exploration] = [*lost, *found]
    with also_json(json, items), also_html(html, items):
        if found:
            print_explorations(make_console(), found)
    if lost:
        raise HarnessError(not_made(lost, len(work), "exploration"))
    raise typer.Exit(0 if all(one.ok for one in found) else 1)


class _Job(NamedTuple):
    """A scenario and its n-th subject, by what finds it in any process."""

    scenario: Scenario
    number: int
    loop: str | None
    agent: str | None
    policy: str | None
    level: str
    faults: bool

    @property
    def subject(self) -> Subject:
        """What the scenario is run on."""
        from msgspec.structs import replace

        found = subjects(self.scenario, self.loop, self.agent, self.policy, self.level)
        return replace(found[self.number], faults=self.faults)

    def probe(self, order: Order, goals: Sequence[str]) -> Probe:
        """What makes the runs of its search, in whatever process."""
        from harness.runner.explored import OnAgent

        return OnAgent(self.scenario, self.subject).probe(order, goals=goals, places=False)


def _all(
    work: Sequence[_Job], jobs: int, options: dict[str, Any]
) -> tuple[list[Exploration], list[NotRun]]:
    """What came of each search, one after the other, and of those that could not be made."""
    from harness.exploration.budget import Means
    from harness.runner.exploring import explore as explore_scenario
    from harness.runner.processes import processes

    found: list[Exploration] = []
    lost: list[NotRun] = []
    makes = [partial(job.probe, options["order"], options["goals"]) for job in work]
    pool = nullcontext([None] * len(work)) if jobs == 1 else processes(jobs, makes)
    with telling() as told, pool as manies:
        for number, (job, many) in enumerate(zip(work, manies, strict=True), 1):
            at = f"{number} of {len(work)}: {job.scenario.name}"
            clock = time.monotonic  # noqa: TID251 - the budget is of real seconds
            means = Means(many, clock, partial(told.progress, at))
            try:
                found.append(explore_scenario(job.scenario, job.subject, means=means, **options))
            except HarnessError as error:
                lost.append(not_run("search", job.scenario, job.subject, error))
    return found, lost
