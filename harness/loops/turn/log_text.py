"""What the bytes of a session log's file mean, and where a kill has torn them.

A line is a row, or says that the rows before it are forgotten; blank lines, CR LF and a byte order
mark at the start mean nothing. A line counts as written with its last byte before the line feed:
only a whole JSON object can be read, so what was torn off a line is never missed.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from harness.core import json_text
from harness.core.errors import FileError, Problem
from harness.core.located import shortened
from harness.core.rows import Row, TurnStartRow
from harness.loops.turn.row_text import row_from_json, write_row

_BOM = b"\xef\xbb\xbf"
_START = b'{"type":"'
"""How every line begins that this package writes."""

_MOST_PROBLEMS = 10


class Cleared(Struct, frozen=True, tag_field="type", tag="log_cleared", forbid_unknown_fields=True):
    """The rows before are forgotten; `turns` ids were given until then."""

    turns: Annotated[int, Meta(ge=0)]


Line: TypeAlias = Row | Cleared


class LogText(Struct, frozen=True):
    """What a file holds: the rows that are not forgotten, and how many turn ids they follow.

    The first `end` bytes are whole lines (`ended`: the last one has its line feed), the rest is
    what a kill or a crash has left of another one.
    """

    rows: tuple[Row, ...]
    turns: int
    end: int
    ended: bool


def write_line(line: Line) -> str:
    r"""A line as it is stored, with its end.

    >>> write_line(Cleared(3))
    '{"type":"log_cleared","turns":3}\n'
    """
    if isinstance(line, Cleared):
        return f'{{"type":"log_cleared","turns":{line.turns}}}\n'
    return write_row(line) + "\n"


def read_lines(data: bytes, file: str) -> LogText:
    """Read the bytes of a log's `file`.

    FileError with the places of all lines that cannot be read, but for one at the end that is the
    beginning of a line and no more.
    """
    lines = data.split(b"\n")
    lines[0] = lines[0].removeprefix(_BOM)
    last = lines.pop()
    end = len(data) - len(last)
    kept = last.rstrip(b"\0")  # a file system may have room for what it lost in a crash
    if not _torn(kept):
        lines.append(kept)
        end += len(kept)
    rows: list[Row] = []
    turns = 0
    problems: list[Problem] = []
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = _read_line(text)
        except (ValueError, RecursionError, msgspec.ValidationError) as error:
            problems.append(_problem(text, number, error))
            continue
        if isinstance(line, Cleared):
            rows, turns = [], line.turns
        else:
            rows.append(line)
    if problems:
        raise FileError(file, _told(problems))
    return LogText(tuple(rows), turns, end, ended=end == 0 or data[end - 1 : end] == b"\n")


def _read_line(text: bytes) -> Line:
    value = json_text.loads(text.decode("utf-8"))
    if isinstance(value, dict) and value.get("type") == "log_cleared":
        return msgspec.convert(value, Cleared)
    return row_from_json(value)


def _torn(text: bytes) -> bool:
    """Whether `text` is the beginning of a line, and no whole one."""
    if not text.startswith(_START):
        return _START.startswith(text)
    try:
        json_text.loads(text.decode("utf-8"))
    except ValueError:
        return True
    except RecursionError:
        pass
    return False


def _problem(text: bytes, line: int, error: Exception) -> Problem:
    """What is wrong with a line, where in it, and what stands there."""
    column = 1
    if isinstance(error, UnicodeDecodeError):
        why = f"the byte 0x{text[error.start]:02x} is not UTF-8"
        column = len(text[: error.start].decode("utf-8")) + 1
    elif b"\0" in text:
        why = "NUL bytes, as a file system leaves them after a crash"
        column = len(text[: text.index(b"\0")].decode("utf-8")) + 1
    elif isinstance(error, RecursionError):
        why = "nested too deep"
    elif hasattr(error, "colno"):
        why, column = f"not JSON: {getattr(error, 'msg', error)}", error.colno
    else:
        return Problem(str(error), line, column)
    found = shortened(repr(text.decode("utf-8", "backslashreplace")))
    return Problem(f"{why}, in {found}", line, column)


def _told(problems: list[Problem]) -> list[Problem]:
    """The first problems, how many more there are, and what to do."""
    more = len(problems) - _MOST_PROBLEMS
    example = write_row(TurnStartRow("turn-0"))
    return [
        *problems[:_MOST_PROBLEMS],
        *([Problem(f"{more} more line(s) cannot be read")] if more > 0 else []),
        Problem(
            f"expected the rows of a session log, one a line, such as {example}; nothing was "
            "changed: mend the line(s), or move the file away and begin anew"
        ),
    ]
