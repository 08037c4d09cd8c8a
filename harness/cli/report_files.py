"""Files that commands write what came out to, beside what they print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from harness.core.errors import UsageError

if TYPE_CHECKING:
    from harness.report.html import Item as HtmlItem
    from harness.report.json_report import Item

JsonOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write what came out to this file too, as JSON for other programs.",
    ),
]

HtmlOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write what came out to this file too, as a page for a browser.",
    ),
]


def check_targets(*paths: Path | None) -> None:
    """Say before anything is run that one of these files (None: not asked for) cannot be written,
    where that can be known; UsageError.
    """
    from harness.core import files

    for path in filter(None, paths):
        if path.is_dir():
            raise UsageError(f"{path.as_posix()} is a folder; name a file in it")
        if not files.writable(path):
            raise UsageError(
                f"{path.as_posix()} cannot be written; name a file in a folder that can"
            )


def write_json(file: Path | None, items: Sequence[Item]) -> None:
    """Write what came out as JSON, where a file is named for it; UsageError where that fails."""
    if file is not None:
        from harness.report.json_report import json_report, result_of

        write_report(file, json_report([result_of(each) for each in items]))


def write_html(file: Path | None, items: Sequence[HtmlItem]) -> None:
    """Write what came out as a page, where a file is named for it; UsageError where that fails."""
    if file is not None:
        from harness.report.html import page

        write_report(file, page(items))


def write_report(file: Path, text: str) -> None:
    """Write a report whole, or leave the file as it was; UsageError where it cannot be written.

    Its folders are made. What is no regular file, such as a pipe, takes the text as it comes.
    """
    from harness.core import files

    try:
        if file.exists() and not file.is_file():
            file.write_bytes(text.encode())
        else:
            files.replace(file, text.encode())
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"{file.as_posix()} cannot be written: {reason}") from error
