"""`harness cassette lint`: find secrets in cassettes, and in any other files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.cassette.options import HarmlessOption, NameOption, PatternOption, rules_of
from harness.core.errors import UsageError
from harness.core.wording import counted

USUAL = Path("cassettes")
"""The folder that is meant where no path is given."""


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
    from harness.transport.lint import scan_folder

    if not paths:
        paths = [USUAL]
        if not USUAL.is_dir():
            raise UsageError(
                f"no PATH was given, and there is no folder {USUAL}/ here; name a file or a folder"
            )
    for path in paths:
        if not path.exists():
            raise UsageError(missing(path))
    found = list(scan_folder(paths, rules_of(None, name, pattern, harmless)))
    sys.stdout.writelines([f"{printable(str(leak))}\n" for leak in found])
    if not found:
        sys.stdout.write("no secrets found\n")
        return
    sys.stdout.write(
        f"{counted(len(found), 'finding')}: replace such a secret where it came from, since others "
        "may have seen it, and\ntake it out of a cassette: harness cassette scrub FILE\n"
    )
    raise typer.Exit(1)
