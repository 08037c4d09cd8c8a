"""`harness serve`: a script over HTTP, and what the client did wrong."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from harness.cli.completion import providers, scenarios
from harness.core import shell
from harness.core.errors import UsageError
from harness.core.wording import counted

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from harness.runner.serving import Service


def serve(
    script: Annotated[
        Path,
        typer.Argument(
            metavar="SCRIPT",
            help="A scenario file, or a file with a list of replies.",
            autocompletion=scenarios,
        ),
    ],
    provider: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The protocol: openai_chat, openai_responses, anthropic, gemini.",
            autocompletion=providers,
        ),
    ] = "all",
    port: Annotated[int, typer.Option(metavar="N", help="The port; 0 is one that is free.")] = 0,
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            help="Refuse what a real provider refuses; as the scenario says if not given.",
            show_default=False,
        ),
    ] = None,
    pedantic: Annotated[
        bool, typer.Option("--pedantic", help="Judge by rules of little evidence too.")
    ] = False,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a line of JSON for each request to this file."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="End when all of the script was given.")
    ] = False,
) -> None:
    """Serve a script over HTTP on this machine, to an agent in any language.

    Prints the address and the variables that point clients at it, serves until Ctrl-C, and prints
    what the client did wrong: the exit code is 1 where that is anything. The turn that is played is
    told by the requests: one begins when its text appears. A list of replies is given in its order.

    \b
    Examples:
      harness serve scenarios/weather.yaml
      harness serve replies.yaml --provider anthropic --port 8080 --once
      harness serve case.yaml --journal requests.jsonl
    """
    import asyncio

    from harness.runner.serving import Service

    with ExitStack() as stack:
        file = None
        if journal is not None:
            file = _open(journal)
            stack.callback(_close, file)
        service = Service(script, strict=strict, pedantic=pedantic, provider=provider, journal=file)
        asyncio.run(_serve(service, port, once=once))
    code = _summary(service)
    failed = service.journal.failed
    if failed is not None:
        raise UsageError(f"{journal} could not be written whole: {failed.strerror}")
    raise typer.Exit(code)


async def _serve(service: Service, port: int, *, once: bool) -> None:
    import asyncio

    from harness.runner.serving import GRACE

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    _at_signals(loop, stop.set)
    await service.server.start(port=port)
    until = "the script is used up" if once else "Ctrl-C"
    sys.stdout.write(f"serving {service.scenario.source} at {service.url} until {until}\n")
    sys.stdout.writelines([f"{shell.setting(*each)}\n" for each in service.variables.items()])
    sys.stdout.flush()
    waits = [loop.create_task(stop.wait())]
    if once:
        waits.append(loop.create_task(service.used_up.wait()))
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for each in waits:
        each.cancel()
    await service.server.close(0 if stop.is_set() else GRACE)


def _at_signals(loop: AbstractEventLoop, act: Callable[[], object]) -> None:
    """Act where the process is asked to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:  # the loop of Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(act))


def _summary(service: Service) -> int:
    """Print what the client did wrong, and give the exit code."""
    from harness.report.values import printable

    found = service.findings()
    requests = counted(len(service.requests), "request")
    sys.stdout.write(f"{requests}; {counted(len(found), 'finding') if found else 'all is well'}\n")
    sys.stdout.writelines([f"{printable(str(each))}\n" for each in found])
    return 1 if found else 0


def _close(file: TextIO) -> None:
    with suppress(OSError):  # what could not be written is told already
        file.close()


def _open(file: Path) -> TextIO:
    try:
        return file.open("w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file.as_posix()} cannot be written: {error.strerror}") from error
