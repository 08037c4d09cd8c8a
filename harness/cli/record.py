"""`harness record`: what a program, or a run with a real provider, asks for, as a cassette."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.cassette.options import (
    HarmlessOption,
    IgnoreOption,
    NameOption,
    PatternOption,
    VolatileOption,
    rules_of,
)
from harness.cli.completion import providers
from harness.cli.output import tell
from harness.cli.selection import AgentOption, LoopOption, PolicyOption, load_one
from harness.core import shell
from harness.core.errors import UsageError
from harness.core.wording import counted

if TYPE_CHECKING:
    from harness.runner.agents import Subject
    from harness.runner.cassettes.live import Limits
    from harness.runner.cassettes.record import Recording
    from harness.runner.scenario import Scenario
    from harness.transport.rules import Rules


def record(  # noqa: PLR0913, PLR0917 - an argument for each option
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO | -- COMMAND...",
            help="With --provider a scenario file; else a program and its arguments, behind --.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The cassette.")
    ] = Path("cassette.yaml"),
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="missing plays what the file has and records the rest; all records all anew; "
            "replay lets no request out; drift asks the provider, and tells what has changed.",
        ),
    ] = "missing",
    upstream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=URL",
            help="Where a provider is: openai=, anthropic= or gemini=; else as OPENAI_BASE_URL and "
            "the like say, else at its public address.",
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Run a scenario with this protocol's real provider: openai_chat, "
            "openai_responses, anthropic, gemini.",
            autocompletion=providers,
        ),
    ] = None,
    loop: LoopOption = None,
    agent: AgentOption = None,
    policy: PolicyOption = None,
    max_requests: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="With --provider: how many requests it gets, at most."
        ),
    ] = 100,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="N", min=0.001, help="With --provider: seconds that an answer may take."
        ),
    ] = 300,
    ignore: IgnoreOption = None,
    volatile: VolatileOption = None,
    name: NameOption = None,
    pattern: PatternOption = None,
    harmless: HarmlessOption = None,
) -> None:
    """Record what a program, or an agent in a scenario, asks real providers for.

    A program, in whatever language, finds a proxy on this machine under OPENAI_BASE_URL,
    ANTHROPIC_BASE_URL and GOOGLE_GEMINI_BASE_URL; each chunk goes on as it comes. Its keys pass,
    and are never written. The exit code is the program's own, 128 and the signal's number where a
    signal ended it. Where that is 0, it is 1 if replay had nothing for a request or something that
    was not asked for, or if drift found a change.

    With --provider an agent plays the turns of a scenario with its tools, and the replies are the
    provider's own; OPENAI_API_KEY or the like has the key. The last line plays it again.

    What --ignore, --volatile, --name, --pattern and --harmless say is kept in the cassette, for all
    who play it or record more into it.

    \b
    Examples:
      harness record -- python my_agent.py
      harness record -o cassettes/agent.yaml --mode all -- node agent.mjs -v
      harness record -o cassettes/agent.yaml --mode replay -- python my_agent.py
      harness record --provider anthropic -o a.yaml b.yaml --agent my.agent:build
    """
    rules = rules_of(ignore, name, pattern, harmless, volatile)
    if provider is None:
        for option, value in {"--loop": loop, "--agent": agent, "--policy": policy}.items():
            if value is not None:
                raise UsageError(f"{option} is for scenarios; name their --provider too")
        raise typer.Exit(_command(words, output, mode, upstream or [], rules))
    if len(words) != 1:
        raise UsageError(f"--provider takes one scenario file; found {shell.join(words)}")
    from harness.runner.cassettes.live import Limits

    played = load_one(Path(words[0]), loop, agent, policy)
    limits = Limits(max_requests, timeout)
    raise typer.Exit(_scenario(*played, provider, output, mode, upstream or [], limits, rules))


def _command(words: list[str], output: Path, mode: str, upstream: list[str], rules: Rules) -> int:
    from harness.runner.cassettes.record import mode_of, record_command
    from harness.transport.homes import homes_in

    homes = homes_in(os.environ, upstream)
    recording = record_command(words, output, mode_of(mode), homes, os.environ, rules)
    _tell(recording)
    return recording.code or (0 if recording.as_recorded else 1)


def _scenario(
    scenario: Scenario,
    subject: Subject,
    provider: str,
    output: Path,
    mode: str,
    upstream: list[str],
    limits: Limits,
    rules: Rules,
) -> int:
    from harness.report.terminal import make_console, print_results
    from harness.runner.cassettes.live import Live, ProviderFailed
    from harness.runner.cassettes.record import mode_of
    from harness.transport.homes import homes_in

    homes = homes_in(os.environ, upstream)
    live = Live(output, mode_of(mode), provider, homes, os.environ, limits, tell, rules)
    try:
        result = live.play(scenario, subject)
    except ProviderFailed as error:
        tell(f"{error}\n{live.save()}")
        return 1
    except BaseException:
        tell(live.save())
        raise
    tell(live.save())
    print_results(make_console(), [result.report()], about=False, verbose=False)
    if not result.ok:
        return 1
    line = result.subject.command(scenario.source, "run")
    assert line is not None, "both are named on the command line"
    sys.stdout.write(f"{line}\n")
    return 0


def _tell(recording: Recording) -> None:
    """Say on standard error, since standard output is the program's, what came of it."""
    for error in recording.missed:
        tell(str(error))
    for trouble in recording.troubles:
        tell(trouble)
    if recording.drift is not None and recording.drift.changes:
        tell(recording.drift.text)
    if recording.unused:
        unused = counted(recording.unused, "interaction")
        tell(f"nobody asked for {unused} of the cassette; record all anew with --mode all")
    tell(recording.said)
