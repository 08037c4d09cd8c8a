"""What the commands share: which files, and which subjects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from harness.cli.completion import levels, loops, policies, scenarios
from harness.core.errors import FileError, HarnessError, NoPoints, NotAScenario, UsageError
from harness.core.wording import counted
from harness.report.not_run import Meant, NotRun

if TYPE_CHECKING:
    from harness.runner.agents import Subject
    from harness.runner.scenario import Scenario

SHOWN = 5
"""How many files are named, where one thing is said of many."""
USUAL = Path("scenarios")
"""The folder that is meant where no path is given."""

PathsArgument: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH",
        help="Scenario files, or folders of them.",
        autocompletion=scenarios,
    ),
]
LoopOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--loop", metavar="NAME", help="Run this reference loop.", autocompletion=loops),
]
AgentOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="PKG.MOD:BUILD",
        help="Run your own agent: a function that takes the env and returns the agent.",
    ),
]
CommandOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--command",
        metavar="LINE",
        help="Run an agent that is a program, over HTTP and in real time: it answers a line with a "
        "line, or takes the turn's text where LINE has {turn}.",
    ),
]
PolicyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="How a reference loop behaves; its first policy if not given.",
        autocompletion=policies,
    ),
]

LevelOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="Where the agent meets its model: model, http or server, as in http:anthropic.",
        autocompletion=levels,
    ),
]

CassetteOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--cassette",
        metavar="FILE",
        help="Take the model's replies from this recording, at their times, and not from the "
        "scenario.",
    ),
]


class BrokenFiles(HarnessError):
    """Files that are no scenarios as they stand, each with all of its problems."""

    def __init__(self, files: Sequence[FileError]) -> None:
        self.files = tuple(files)
        found = counted(sum(len(each.problems) for each in files), "problem")
        super().__init__("\n".join([*map(str, files), f"{found} found; nothing was run"]))


def load_all(paths: Sequence[Path] | None, loop: str | None = None) -> list[Scenario]:
    """Every scenario in files and folders (None: in the folder scenarios); BrokenFiles tells the
    problems of all files at once.

    With `loop`, those of a folder that are for other loops are left out, and their number is told.
    """
    from harness.runner.agents import find_loop
    from harness.runner.files.load import find, load

    if loop is not None:
        find_loop(loop)
    if not paths:
        paths = [USUAL]
        if not USUAL.is_dir():
            raise UsageError(
                f"no PATH was given, and there is no folder {USUAL}/ here; name a scenario file or "
                "a folder that has some, or have an example written by `harness init`"
            )
    scenarios: list[Scenario] = []
    broken: list[FileError] = []
    foreign: list[str] = []
    others = 0
    for path in find(paths):
        try:
            scenario = load(path)
            if loop is None or loop in scenario.loops or not scenario.loops or path in paths:
                scenarios.append(scenario)
            else:
                others += 1
        except NotAScenario as error:
            if path in paths:
                broken.append(error)
            else:
                foreign.append(error.file)
        except FileError as error:
            broken.append(error)
    if broken:
        raise BrokenFiles(broken)
    if foreign:
        typer.echo(f"passed over, with neither `about` nor `turns`: {several(foreign)}", err=True)
    if others:
        typer.echo(
            f"left out, as they are for other loops: {counted(others, 'scenario')}", err=True
        )
    if others and not scenarios:
        raise UsageError(f"none of these scenarios is for the loop {loop}; name the file of one")
    if not scenarios:
        raise UsageError("none of these files is a scenario; name one, or a folder that has some")
    return scenarios


def several(files: Sequence[str]) -> str:
    """The first of some files, and how many more there are."""
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return ", ".join(files[:SHOWN]) + more


def not_run(meant: Meant, scenario: Scenario, subject: Subject, error: HarnessError) -> NotRun:
    """What kept a scenario from being run on a subject."""
    passed_over = isinstance(error, NoPoints)
    return NotRun(
        meant, str(error), scenario.name, scenario.source, subject.name, passed_over=passed_over
    )


def not_made(lost: Sequence[NotRun], all_of_them: int, noun: str) -> str:
    """What kept some runs, or other things, from being made, each reason once with the files that
    it concerns.
    """
    files: dict[str, list[str]] = {}
    for each in lost:
        files.setdefault(each.reason, []).append(each.source)
    lines = [f"{several(named)}: {message}" for message, named in files.items()]
    return "\n".join([*lines, f"{len(lost)} of {counted(all_of_them, noun)} could not be made"])


def subjects(
    scenario: Scenario,
    loop: str | None,
    agent: str | None,
    policy: str | None,
    level: str = "model",
    command: str | None = None,
    cassette: Path | None = None,
) -> list[Subject]:
    """What to run a scenario on: what the options say, else the loops that its file names.

    UsageError where options exclude each other or nobody names anything.
    """
    from harness.runner.agents import at_level

    found = _subjects(scenario, loop, agent, policy, command)
    if cassette is None:
        return [at_level(each, level) for each in found]
    from harness.runner.cassettes.subject import on_cassette

    return [on_cassette(each, cassette, level) for each in found]


def _subjects(
    scenario: Scenario,
    loop: str | None,
    agent: str | None,
    policy: str | None,
    command: str | None,
) -> list[Subject]:
    from harness.runner.agents import agent_subject, command_subject, find_loop, loop_subject

    if command is not None:
        given = {"--loop": loop, "--agent": agent, "--policy": policy}
        for other, value in given.items():
            if value is not None:
                raise UsageError(f"--command and {other} exclude each other; give one of them")
        return [command_subject(command)]
    if agent is not None:
        if loop is not None or policy is not None:
            other = "--loop" if loop is not None else "--policy"
            raise UsageError(f"--agent and {other} exclude each other; give one of them")
        return [agent_subject(agent)]
    names = (loop,) if loop is not None else scenario.loops
    if not names:
        raise UsageError(
            f"{scenario.source} names no loops to run it on; "
            "add `loops: [turn]` to it, or give --loop or --agent"
        )
    return [loop_subject(find_loop(name), scenario, policy) for name in names]


def load_one(
    path: Path,
    loop: str | None,
    agent: str | None,
    policy: str | None,
    level: str = "model",
) -> tuple[Scenario, Subject]:
    """The one scenario that a file holds, and the one subject to run it on.

    UsageError where there are several.
    """
    scenarios = load_all([path])
    if len(scenarios) != 1:
        raise UsageError(
            f"{path.as_posix()} holds {len(scenarios)} scenarios; name the file of one"
        )
    found = subjects(scenarios[0], loop, agent, policy, level)
    if len(found) > 1:
        names = ", ".join(scenarios[0].loops)
        raise UsageError(f"{path.as_posix()} names several loops; choose one with --loop: {names}")
    return scenarios[0], found[0]
