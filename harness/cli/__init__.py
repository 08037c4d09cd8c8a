"""The command line: one file a command, each loading what it needs when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from harness.cli.cassette import ABOUT, CASSETTE
from harness.cli.completion import join_words
from harness.cli.conform import conform
from harness.cli.exits import exit_asked
from harness.cli.explore import explore
from harness.cli.help import Command, Group
from harness.cli.init import init
from harness.cli.output import EXIT_UNREAD, Unwritten, standard_output, tell
from harness.cli.record import record
from harness.cli.replay import replay
from harness.cli.run import run
from harness.cli.schema import schema
from harness.cli.serve import serve
from harness.cli.show import show
from harness.cli.sweep import sweep
from harness.core.errors import HarnessError

COMMANDS: tuple[Callable[..., None], ...] = (
    init,
    run,
    show,
    sweep,
    explore,
    replay,
    serve,
    record,
    schema,
    conform,
)

COMPLETE = "_HARNESS_COMPLETE"
"""The variable by which a shell asks what a word may become."""
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
"""What a shell shows for a program that Ctrl-C has ended."""

_ABOUT = """\
Test LLM agent loops: run scenarios with a scripted model and scripted tools in virtual time, and
judge what happened.

\b
  harness init                               an example to start from
  harness run                                every scenario in scenarios/
  harness run scenarios/cancel --loop turn   a folder, on one of our loops
  harness run a.yaml --agent my.agent:build  one file, on your own agent
  harness show a.yaml --loop turn            what happened, as a time line
  harness sweep a.yaml --loop turn           cancelled at every point
  harness explore a.yaml --loop turn         in other orders and latencies
  harness serve a.yaml                       its script over HTTP, to any agent
  harness cassette show a.yaml               recorded traffic, to be read
  harness record -- python my_agent.py       its traffic, to play it again

Exit codes: 0 all is well; 1 something failed, and the last line printed runs it again; 2 a file, a
name, an option or an agent is wrong, so that something was not run; or what was found cannot be
written; 130 it was interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (None: the process's own arguments) and give the exit code.

    Users' mistakes are told on standard error without a traceback; our own bugs are raised.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with standard_output():
            return _exit_code(arguments)
    except Unwritten as error:
        if error.code != EXIT_UNREAD:
            tell(str(error))
        return error.code


def _exit_code(arguments: Sequence[str] | None) -> int:
    if COMPLETE in os.environ:
        join_words(os.environ)
    try:
        _app()(args=arguments, prog_name="harness", complete_var=COMPLETE)
    except HarnessError as error:
        try:
            sys.stdout.flush()  # what was found comes before what went wrong
        finally:
            tell(str(error))
        return EXIT_BAD_INPUT
    except SystemExit as end:  # typer's own: a command lets no other out
        return end.code if isinstance(end.code, int) else 0
    raise AssertionError("a command line always ends with an exit code")


def _contained(command: Callable[..., None]) -> Callable[..., None]:
    """A command out of which no exit comes that an agent asked for, and no traceback of Ctrl-C."""

    @wraps(command)
    def contained(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except SystemExit as end:
            raise exit_asked(end) from end
        except KeyboardInterrupt as interrupt:
            tell(str(interrupt) or "interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None

    return contained


def _app() -> typer.Typer:
    app = _with(COMMANDS, _ABOUT, add_completion=True)
    app.callback()(_top)
    app.add_typer(_with(CASSETTE, ABOUT), name="cassette")
    return app


def _with(
    commands: Sequence[Callable[..., None]], about: str, *, add_completion: bool = False
) -> typer.Typer:
    app = typer.Typer(
        cls=Group,
        help=about,
        add_completion=add_completion,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for command in commands:
        app.command(cls=Command)(_contained(command))
    return app


def _print_version(value: bool) -> None:
    if value:
        from harness import __version__

        sys.stdout.write(f"harness {__version__}\n")
        raise typer.Exit


def _top(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass
