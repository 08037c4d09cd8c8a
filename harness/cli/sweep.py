"""`harness sweep`: cancel scenarios at every point, say what came of it and how to see it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

import typer
from msgspec.structs import replace

from harness.cli.completion import addressees, cancel_modes, task_roles
from harness.cli.output import tell
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
    several,
    subjects,
)
from harness.core.errors import HarnessError
from harness.report.not_run import NotRun

if TYPE_CHECKING:
    from harness.exploration.budget import Progress
    from harness.report.sweep import Sweep
    from harness.runner.scenario import Scenario

_Found: TypeAlias = "Sweep | NotRun"


def sweep(  # noqa: PLR0913, PLR0917 - an argument for each option
    paths: PathsArgument = None,
    loop: LoopOption = None,
    agent: AgentOption = None,
    policy: PolicyOption = None,
    level: LevelOption = "model",
    modes: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="When to cancel: start, early, late, mid, double, with commas between; or all.",
            autocompletion=cancel_modes,
        ),
    ] = "start,early,late",
    roles: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="At whose tasks: turn, model, tool, thread, other; all if not given.",
            autocompletion=task_roles,
            show_default=False,
        ),
    ] = None,
    whom: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Who is told: agent, turn, task; all there are if not given.",
            autocompletion=addressees,
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="RUNS",
            min=1,
            help="The most runs that one sweep may take; 20,000 if not given.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many scenarios to sweep at a time.")
    ] = 1,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Run scenarios again and again, cancelled at every point there is, and judge each run.

    Without PATH, all of scenarios/. Without --loop and --agent, each on the loops that it names.
    The exit code is 0 only where every point that exists was tried and nothing is wrong with any.

    \b
    Examples:
      harness sweep scenarios/cancel/slow_tool.yaml
      harness sweep scenarios --loop turn --modes all --jobs 4
      harness sweep case.yaml --agent my.agent:build --roles tool --whom turn
    """
    from harness.report.sweep import print_sweeps
    from harness.report.terminal import make_console

    check_targets(json, html)
    with also_refused("sweep", json, html):
        scenarios = load_all(paths, loop)
        for scenario in scenarios:
            subjects(scenario, loop, agent, policy, level)  # tells a mistake before all runs
        options = _options(modes, roles, whom, budget)
        work = partial(_sweep, loop=loop, agent=agent, policy=policy, level=level, options=options)
        found = [one for some in _each(work, scenarios, jobs) for one in some]
    sweeps = [one for one in found if not isinstance(one, NotRun)]
    lost, without = _lost(found, swept=bool(sweeps))
    items: list[_Found] = [*lost, *sweeps, *without]
    with also_json(json, items), also_html(html, items):
        if sweeps:
            if without:
                tell(f"passed over, with no such point: {several([one.source for one in without])}")
            print_sweeps(make_console(), sweeps)
    if lost:
        raise HarnessError(not_made(lost, len(found), "sweep"))
    raise typer.Exit(0 if all(one.ok for one in sweeps) else 1)


def _lost(found: Sequence[_Found], *, swept: bool) -> tuple[list[NotRun], list[NotRun]]:
    """What could not be swept, and what is passed over for want of points, which is right only
    where others have some.
    """
    all_of_them = [one for one in found if isinstance(one, NotRun)]
    if not swept:
        return [replace(one, passed_over=False) for one in all_of_them], []
    lost = [one for one in all_of_them if not one.passed_over]
    return lost, [one for one in all_of_them if one.passed_over]


def _options(modes: str, roles: str | None, whom: str | None, budget: int | None) -> dict[str, Any]:
    """What the options mean for `exploring.sweep`; UsageError for a name that nothing has."""
    from harness.exploration.probe import ROLES, Whom
    from harness.exploration.sweep import MODES, chosen

    options: dict[str, Any] = {
        "modes": MODES if modes == "all" else chosen("mode", _names(modes), MODES)
    }
    if roles is not None:
        options["roles"] = chosen("role", _names(roles), ROLES)
    if whom is not None:
        options["whom"] = chosen("addressee", _names(whom), get_args(Whom))
    if budget is not None:
        options["budget"] = budget
    return options


def _names(text: str) -> tuple[str, ...]:
    return tuple([name.strip() for name in text.split(",") if name.strip()])


def _sweep(
    scenario: Scenario,
    tell: Callable[[Progress], None] | None = None,
    *,
    loop: str | None,
    agent: str | None,
    policy: str | None,
    level: str,
    options: dict[str, Any],
) -> list[_Found]:
    """Sweep one scenario on each of its subjects, in this process or in another."""
    from harness.exploration.budget import Means
    from harness.runner.exploring import sweep

    found: list[_Found] = []
    for subject in subjects(scenario, loop, agent, policy, level):
        try:
            swept = sweep(scenario, subject, means=Means(on_progress=tell), **options)
        except HarnessError as error:
            found.append(not_run("sweep", scenario, subject, error))
        else:
            found.append(swept)
    return found


def _each(
    work: Callable[..., list[_Found]], scenarios: Sequence[Scenario], jobs: int
) -> Iterator[list[_Found]]:
    """What comes of each scenario, in their order, with progress where a terminal shows it."""
    with telling() as told:
        if jobs == 1 or len(scenarios) == 1:
            for number, scenario in enumerate(scenarios, 1):
                at = f"{number} of {len(scenarios)}: {scenario.name}"
                yield work(scenario, partial(told.progress, at))
            return
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import active_children, get_context

        from harness.runner.processes import ignore_interrupts

        spawn = get_context("spawn")
        with ProcessPoolExecutor(jobs, spawn, initializer=ignore_interrupts) as pool:
            begun = [pool.submit(work, scenario) for scenario in scenarios]
            try:
                for number, sweeps in enumerate(begun, 1):
                    found = sweeps.result()
                    told.say(f"{number} of {len(scenarios)} scenarios")
                    yield found
            except BaseException:  # Ctrl-C: nobody waits for sweeps that may take minutes
                for process in active_children():
                    process.terminate()
                raise
