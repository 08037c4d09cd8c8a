"""`harness cassette stats`: how much of what there is in cassettes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.cassette.options import load_each, rules_of, usual

if TYPE_CHECKING:
    from rich.console import Console

    from harness.runner.cassettes.stats import Stats

_NARROW = ("file", "provider", "asked", "time")
"""The columns that a narrow terminal has."""


def stats(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Cassette files, or folders of them."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, a list of objects.")] = False,
) -> None:
    """Count what cassettes hold, by file and provider.

    Without PATH, those in cassettes/. Tokens are what providers have reported; time is from the
    first request to the last end; ends are how interactions ended that are not complete.

    \b
    Examples:
      harness cassette stats cassettes
      harness cassette stats session.yaml --json
    """
    from harness.core.json_text import dumps_indented
    from harness.report.terminal import make_console
    from harness.runner.cassettes.stats import as_json, found_in, stats_of

    cassettes = load_each(found_in(usual(paths, "stats")), rules_of())
    rows = [row for cassette in cassettes for row in stats_of(cassette)]
    if json:
        sys.stdout.write(f"{dumps_indented([as_json(row) for row in rows])}\n")
    else:
        _print(make_console(), rows)


def _print(console: Console, rows: list[Stats]) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.core.durations import moment
    from harness.report.terminal import WHOLE_FROM, print_table
    from harness.report.values import printable

    table = Table(box=None, pad_edge=False, header_style="bold")
    cells = [
        {
            "file": printable(row.file),
            "provider": row.provider or "none",
            "asked": f"{row.interactions:,}",
            "sent": f"{row.sent:,}",
            "got": f"{row.received:,}",
            "frames": f"{row.frames:,}",
            "tokens": f"{row.prompt_tokens:,} + {row.completion_tokens:,}",
            "time": moment(row.time) if row.time else "none",
            "ends": ", ".join([f"{count} {end}" for end, count in row.ends if end != "complete"]),
        }
        for row in rows
    ]
    columns = [
        name
        for name in (cells[0] if cells else _NARROW)
        if console.width >= WHOLE_FROM or name in _NARROW
    ]
    for name in columns:
        words = name in ("file", "provider", "ends")
        table.add_column(name, overflow="fold", justify="left" if words else "right")
    for row in cells:
        table.add_row(*[Text(row[name]) for name in columns])
    print_table(console, table)
