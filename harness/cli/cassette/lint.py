"""`harness cassette lint`: find secrets in cassettes, and in any other files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.cassette.options import (
    HarmlessOption,
    NameOption,
    PatternOption,
    rules_of,
    usual,
)
from harness.core.errors import UsageError
from harness.core.wording import counted


def lint(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Files of any kind, or folders of them."),
    ] = None,
    name: NameOption = None,
    pattern: PatternOption = None,
    harmless: HarmlessOption = None,
) -> None:
    """Look for secrets in cassettes, ours and others', and in any other files.

    Without PATH, in cassettes/. Prints file, line, kind and place of each, never the secret. The
    exit code is 1 where there is one, or where something could not be looked into.

    \b
    Examples:
      harness cassette lint
      harness cassette lint tests/cassettes scenarios --pattern 'tk_[0-9a-f]{32}'
    """
    from harness.core.files import missing
    from harness.report.values import printable
    from harness.transport.lint import files_in, scan_folder

    given = usual(paths, "lint")
    for path in given:
        if not path.exists():
            raise UsageError(missing(path))
    files = list(files_in(given))
    if not files:
        raise UsageError(f"there is no file in {', '.join(map(str, given))}; nothing was looked at")
    found = list(scan_folder(files, rules_of(None, name, pattern, harmless)))
    sys.stdout.writelines([f"{printable(str(leak))}\n" for leak in found])
    if not found:
        sys.stdout.write(f"no secrets found in {counted(len(files), 'file')}\n")
        return
    sys.stdout.write(
        f"{counted(len(found), 'finding')}: replace such a secret where it came from, since others "
        "may have seen it, and\ntake it out of a cassette: harness cassette scrub FILE\n"
    )
    raise typer.Exit(1)
