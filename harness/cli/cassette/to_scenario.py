"""`harness cassette to-scenario`: a recorded session as a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.cassette.options import (
    HarmlessOption,
    NameOption,
    PatternOption,
    load_each,
    rules_of,
)
from harness.cli.output import tell
from harness.core.errors import UsageError

USUAL = Path("scenarios")


def to_scenario(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A cassette file.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where to write it; scenarios/NAME.yaml if not given.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    name: NameOption = None,
    pattern: PatternOption = None,
    harmless: HarmlessOption = None,
) -> None:
    """Turn a recorded session into a scenario: a loop that made it makes the same requests there.

    What cannot be taken over is said in comments of the file and on standard error. The last line
    printed is the command that runs it.

    \b
    Examples:
      harness cassette to-scenario session.yaml
      harness cassette to-scenario session.yaml -o scenarios/login.yaml --force
    """
    from harness.core import files, shell
    from harness.report.values import printable
    from harness.runner.to_scenario import convert

    [cassette] = load_each([file], rules_of(None, name, pattern, harmless))
    target = out if out is not None else USUAL / f"{file.stem}.yaml"
    if target.exists() and not force:
        raise UsageError(
            f"{target.as_posix()} is there already; give --force to replace it, or -o another"
        )
    made = convert(cassette, target.stem)
    try:
        files.replace(target, made.text.encode())
    except OSError as error:
        raise UsageError(
            f"{target.as_posix()} cannot be written: {error.strerror or error}"
        ) from error
    for note in made.notes:
        tell(printable(f"note: {note}"))
    sys.stdout.write(f"{printable(made.scenario.about)}\nwritten to {target.as_posix()}; ")
    words = ["harness", "run", target.as_posix()]
    if made.asked_again:  # the loops of ours ask once: that is their client's business
        sys.stdout.write("run it on your own agent, which asks again where a request failed:\n")
        words += ["--agent", "package.module:build"]
    else:
        sys.stdout.write(
            "run it on your own agent with --agent package.module:build, or on a loop of ours:\n"
        )
        words += ["--loop", "turn", "--level", made.level]
    sys.stdout.write(f"{shell.join(words)}\n")
