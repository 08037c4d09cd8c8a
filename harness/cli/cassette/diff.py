"""`harness cassette diff`: what two recorded sessions differ in by meaning."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.cassette.options import IgnoreOption, NameOption, load_each, rules_of
from harness.core.wording import counted


def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="A cassette file.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The one to hold against it.")],
    usage: Annotated[
        bool, typer.Option("--usage", help="Compare also what the provider counted.")
    ] = False,
    timing: Annotated[
        bool, typer.Option("--timing", help="Compare also when answers began and ended.")
    ] = False,
    ignore: IgnoreOption = None,
    name: NameOption = None,
) -> None:
    """Compare two cassettes by what was asked, what was heard, and how it ended.

    Ids, headers and the cut of chunks do not count. The exit code is 1 where they differ.

    \b
    Examples:
      harness cassette diff before.yaml after.yaml
      harness cassette diff a.yaml b.yaml --ignore messages[*].name --usage
    """
    from harness.report.conversation import lines
    from harness.transport.cassettes.comparing import compare
    from harness.transport.cassettes.differing import FILES

    one, other = load_each([before, after], rules_of(ignore, name))
    found = compare(one, other, usage=usage, timing=timing, words=FILES)
    if not found.changes:
        sys.stdout.write(f"the same: {counted(found.pairs, 'interaction')}\n")
        return
    sys.stdout.writelines([f"{lines(each.sentence)}\n" for each in found.changes])
    sys.stdout.write(
        f"{counted(len(found.changes), 'difference')} in {counted(found.pairs, 'interaction')} "
        "that both have\n"
    )
    raise typer.Exit(1)
