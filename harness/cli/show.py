"""`harness show`: one run, as a time line or as its canonical text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.completion import scenarios
from harness.cli.report_files import HtmlOption, also_html, check_targets
from harness.cli.selection import (
    AgentOption,
    LevelOption,
    LoopOption,
    PolicyOption,
    load_one,
)


def show(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A scenario file.", autocompletion=scenarios)
    ],
    loop: LoopOption = None,
    agent: AgentOption = None,
    policy: PolicyOption = None,
    level: LevelOption = "model",
    plain: Annotated[
        bool, typer.Option("--plain", help="The canonical text, in a terminal too.")
    ] = False,
    html: HtmlOption = None,
) -> None:
    """Run one scenario and show what happened.

    In a terminal it is a time line of model, tools and log. Into a pipe or a file it is the
    canonical text, one line an event, made to be compared. The exit code is 0 whatever came out.

    \b
    Examples:
      harness show scenarios/cancel/slow_tool.yaml
      harness show scenarios/cancel/slow_tool.yaml --loop turn --plain > old.txt
    """
    from harness.report.terminal import make_console, on_terminal, print_run
    from harness.report.text import render
    from harness.runner.run import run as run_scenario

    check_targets(html)
    report = run_scenario(*load_one(path, loop, agent, policy, level)).report()
    console = make_console()
    with also_html(html, [report]):
        if plain or not on_terminal(console):
            sys.stdout.write(render(report.trace))
        else:
            print_run(console, report)
