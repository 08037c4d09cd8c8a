"""`harness run`: run scenarios, show what came out, say what failed and how to run it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

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
    CassetteOption,
    CommandOption,
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
    from harness.report.not_run import NotRun
    from harness.report.terminal import Report
    from harness.runner.agents import Subject
    from harness.runner.scenario import Scenario


def run(  # noqa: PLR0913, PLR0917 - an argument for each option
    paths: PathsArgument = None,
    loop: LoopOption = None,
    agent: AgentOption = None,
    command: CommandOption = None,
    policy: PolicyOption = None,
    level: LevelOption = "model",
    cassette: CassetteOption = None,
    about: Annotated[
        bool, typer.Option("--about", help="Say what each scenario protects against.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name the invariants that had nothing to judge.")
    ] = False,
    relations: Annotated[
        bool,
        typer.Option(
            "--relations",
            help="Judge also what must hold between runs: again, in pieces, over HTTP, cancelled "
            "later.",
        ),
    ] = False,
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Run scenarios and judge what happened.

    Without PATH, all of scenarios/. Without --loop and --agent, each on the loops that it names.

    \b
    Examples:
      harness run
      harness run scenarios/cancel scenarios/tools/serial.yaml
      harness run scenarios --loop turn --policy reference
      harness run scenarios --agent my_package.my_agent:build --relations
      harness run case.yaml --command "node agent.mjs"
      harness run case.yaml --loop turn --cassette recorded.yaml
    """
    from harness.report.terminal import make_console, print_results

    check_targets(json, html)
    reports: list[Report] = []
    lost: list[NotRun] = []
    with also_refused("run", json, html):
        jobs = [
            (scenario, subject)
            for scenario in load_all(paths, loop)
            for subject in subjects(scenario, loop, agent, policy, level, command, cassette)
        ]
        for scenario, subject in _progress(jobs):
            try:
                reports.append(_run(scenario, subject, relations=relations))
            except HarnessError as error:
                lost.append(not_run("run", scenario, subject, error))
    items: list[NotRun | Report] = [*lost, *reports]
    with also_json(json, items), also_html(html, items):
        if reports:
            print_results(make_console(), reports, about=about, verbose=verbose)
    if lost:
        raise HarnessError(not_made(lost, len(jobs), "run"))
    raise typer.Exit(0 if all(each.ok for each in reports) else 1)


def _run(scenario: Scenario, subject: Subject, *, relations: bool) -> Report:
    from harness.runner.relate import with_relations
    from harness.runner.run import run as run_scenario

    result = run_scenario(scenario, subject)
    return (with_relations(result) if relations else result).report()


def _progress(jobs: list[tuple[Scenario, Subject]]) -> Iterator[tuple[Scenario, Subject]]:
    """Give the jobs, and show on standard error how far they are, where that is a terminal."""
    with telling() as told:
        for number, (scenario, subject) in enumerate(jobs, 1):
            told.say(f"{number} of {len(jobs)}: {scenario.name}")
            yield scenario, subject
