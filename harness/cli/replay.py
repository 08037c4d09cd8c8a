"""`harness replay`: one run of a sweep or a search again, exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.completion import scenarios
from harness.cli.report_files import HtmlOption, JsonOption, also_html, also_json, check_targets
from harness.cli.selection import (
    AgentOption,
    LevelOption,
    LoopOption,
    PolicyOption,
    load_one,
)


def replay(
    token: Annotated[
        str, typer.Argument(metavar="TOKEN", help="The word h1.… of a failure's last line.")
    ],
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="The scenario file that it was made of.",
            autocompletion=scenarios,
        ),
    ],
    loop: LoopOption = None,
    agent: AgentOption = None,
    policy: PolicyOption = None,
    level: LevelOption = "model",
    json: JsonOption = None,
    html: HtmlOption = None,
) -> None:
    """Run one scenario as a sweep or a search did, with the same cancels and choices.

    The exit code is 1 where something is wrong with the run again, or where its cancel is not
    reached any more; it is 0 where all is well.

    \b
    Example:
      harness replay h1.311.9620ba1eef.1:1:early:turn.5a1fc0de a.yaml --loop turn
    """
    from harness.report.replay import print_replay
    from harness.report.terminal import make_console
    from harness.runner.exploring import replay as replay_scenario

    check_targets(json, html)
    replayed = replay_scenario(token, *load_one(path, loop, agent, policy, level))
    with also_json(json, [replayed]), also_html(html, [replayed]):
        print_replay(make_console(), replayed)
    raise typer.Exit(0 if replayed.ok else 1)
