"""Files that commands write what came out to, beside what they print."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from harness.cli.exits import exit_asked
from harness.cli.selection import BrokenFiles
from harness.core.errors import FileError, HarnessError, UsageError
from harness.report.not_run import Meant, NotRun

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
    where that can be known, or that two of them are one; UsageError.
    """
    from harness.core import files

    taken: dict[str, Path] = {}
    for path in filter(None, paths):
        if files.is_source(path):
            raise UsageError(
                f"{path.as_posix()} is named as scenarios and programs are, and would be "
                "overwritten; name another file for what comes out"
            )
        try:
            if path.is_dir():
                raise UsageError(f"{path.as_posix()} is a folder; name a file in it")
            if not files.writable(path):
                raise UsageError(
                    f"{path.as_posix()} cannot be written; name a file in a folder that can"
                )
            special = path.exists() and not path.is_file()
        except OSError as error:
            raise _unwritten(path, error) from error
        one = taken.setdefault(os.path.normcase(os.path.realpath(path)), path)
        if one is not path and not special:
            raise UsageError(
                f"{one.as_posix()} and {path.as_posix()} are one file; name two"
                if one != path
                else f"{path.as_posix()} is named twice; name two files"
            )


@contextmanager
def also_refused(meant: Meant, json: Path | None, html: Path | None) -> Iterator[None]:
    """Write to these files what keeps the block from running anything, before it is told: what they
    said of another time must not stand there for this one.
    """
    try:
        yield
    except (HarnessError, SystemExit) as error:
        lost = _refused(meant, exit_asked(error) if isinstance(error, SystemExit) else error)
        with also_json(json, lost), also_html(html, lost):
            raise


def _refused(meant: Meant, error: HarnessError) -> list[NotRun]:
    match error:
        case BrokenFiles(files=files):
            return [NotRun(meant, f"{each}\nnothing was run", source=each.file) for each in files]
        case FileError(file=file):
            return [NotRun(meant, str(error), source=file)]
    return [NotRun(meant, str(error))]


@contextmanager
def also_json(file: Path | None, items: Sequence[Item]) -> Iterator[None]:
    """Write what came out as JSON when the block is left, where a file is named for it: whatever
    became of what the block prints. UsageError where that fails.
    """
    try:
        yield
    finally:
        if file is not None:
            from harness.report.json_report import json_report, result_of

            write_report(file, json_report([result_of(each) for each in items]))


@contextmanager
def also_html(file: Path | None, items: Sequence[HtmlItem]) -> Iterator[None]:
    """The same as a page."""
    try:
        yield
    finally:
        if file is not None:
            from harness.report.html import page

            write_report(file, page(items))


def write_report(file: Path, text: str) -> None:
    """Write a report whole, or leave the file as it was; UsageError where it cannot be written.

    Its folders are made. What is no regular file, such as a pipe, takes the text as it comes.
    """
    from harness.core import files

    try:
        files.put(file, text.encode())
    except OSError as error:
        raise _unwritten(file, error) from error


def _unwritten(file: Path, error: OSError) -> UsageError:
    return UsageError(f"{file.as_posix()} cannot be written: {error.strerror or error}")
