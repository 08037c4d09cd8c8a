"""`harness conform`: hold the reference loop against recorded behaviour."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.core.errors import FileError, Problem, UsageError

if TYPE_CHECKING:
    from harness.core.json_text import Json
    from harness.runner.conform.vectors import ConformReport


class Kind(StrEnum):
    """What a file of vectors records."""

    TURN = "turn"
    TRIM = "trim"
    DERIVE = "derive"
    RACE = "race"
    FSM = "fsm"
    FSM_UNITS = "fsm-units"


def conform(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="What the file records: turn, trim, derive, race, fsm or fsm-units.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE.jsonl", help="Vectors, one JSON object a line.")
    ],
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="The texts that the vectors were recorded with; texts.json beside the vectors, "
            "where there is one, else our own.",
        ),
    ] = None,
) -> None:
    """Hold the reference loops' policy `reference` against recorded behaviour.

    Prints a line for each vector that the loop fails, then those that count neither way since
    they pin what may also be otherwise, then the count. The exit code is 1 where any failed.

    \b
    Examples:
      harness conform turn vectors/turn_vectors.jsonl
      harness conform trim trim.jsonl --texts recorded/texts.json
    """
    from harness.runner.conform.vectors import run_vectors

    beside = file.parent / "texts.json"
    spoken = _texts(texts or beside) if texts is not None or beside.exists() else None
    lines = _read(file).split("\n")  # not splitlines: JSON text may hold other line ends
    try:
        found = run_vectors(kind.value, lines, spoken)
    except UsageError as error:
        raise UsageError(f"{file.as_posix()}: {error}") from error
    sys.stdout.writelines([f"{line}\n" for line in _report(found)])
    raise typer.Exit(1 if found.failed else 0)


def _report(found: ConformReport) -> Iterator[str]:
    from harness.report.values import printable

    for name, reason in found.failed:
        yield printable(f"FAIL {name}: {reason}")
    for name, tags, agrees, reason in found.lenient:
        verdict = "agrees" if agrees else f"differs, {reason}"
        yield printable(f"lenient {name} ({', '.join(tags)}): {verdict}")
    yield f"{found.passed} passed, {len(found.failed)} failed"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file.as_posix()} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file.as_posix()} is not UTF-8 text, at byte {error.start}") from error


def _texts(file: Path) -> dict[str, Json]:
    from harness.core import json_text

    try:
        texts = json_text.loads(_read(file))
    except ValueError as error:
        raise FileError(file.as_posix(), [Problem(f"is not JSON: {error}")]) from error
    if not isinstance(texts, dict):
        raise FileError(file.as_posix(), [Problem("is not a JSON object of texts by name")])
    return texts
