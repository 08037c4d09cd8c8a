"""YAML text out for files that hold long texts: written fast, read alike by old and new readers.

What `yaml_text.dump` writes is for short values. Here a text of several lines stands as it is, with
a line for each of its own, also where YAML wants it in quotes; no line is folded, no value is
shared, and what a reader of YAML 1.1 could take for something else is quoted.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, Union

Value: TypeAlias = Union[
    "Mapping[str, Value]", "Sequence[Value]", str, bytes, bool, int, float, None
]
"""What can be written: JSON values, and bytes."""

_NOT_AS_IT_IS = "\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
"""Characters that need an escape, beside the end of a line."""
_UNPRINTABLE = re.compile(f"[{_NOT_AS_IT_IS}]")
_NO_BLOCK = re.compile(f"[{_NOT_AS_IT_IS}]| \n| \\Z|\\A\n*\\Z")
"""What keeps a text from standing as it is; editors take spaces at the ends of lines away."""
_ESCAPED = re.compile(f'[{_NOT_AS_IT_IS}\n"\\\\]')
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", '"': '\\"', "\\": "\\\\"}
_PLAIN = re.compile(r"[A-Za-z/](?:[\w./+=@*()?%&;-]|:(?=[\w/])| (?=[\w./+=@*()?%&;-]))*", re.ASCII)
_WORDS = frozenset(["y", "yes", "n", "no", "true", "false", "on", "off", "null"])


class Line(dict[str, Value]):
    """A mapping that is written in one line."""


def dump(value: Mapping[str, Value]) -> str:
    r"""Write a mapping as YAML: keys in their own order, fractions with three to six decimals. Half
    of a surrogate pair, which no file can hold, becomes U+FFFD.

    >>> print(dump({"body": "a\nb\n", "at": 0.5, "list": [Line(code=200, message="OK")]}), end="")
    body: |
      a
      b
    at: 0.500
    list:
    - {code: 200, message: OK}
    """
    return "".join(_mapping(value, 0)).removeprefix("\n") + "\n"


def _mapping(value: Mapping[str, Value], column: int) -> Iterator[str]:
    for key, item in value.items():
        yield f"\n{' ' * column}{_scalar(key)}:"
        yield from _below(item, column + 2)


def _below(value: Value, column: int) -> Iterator[str]:
    """A value behind a key or a dash; what it holds stands at `column`."""
    match value:
        case Mapping() if value and not isinstance(value, Line):
            yield from _mapping(value, column)
        case bytes():
            yield " !!binary |"
            for line in base64.encodebytes(value).decode().splitlines():
                yield f"\n{' ' * column}{line}"
        case str() if "\n" in value:
            yield from _quoted(value, column) if _NO_BLOCK.search(value) else _lines(value, column)
        case str():
            yield f" {_scalar(value)}"
        case Sequence() if not all(map(_in_line, value)):
            for item in value:
                yield f"\n{' ' * (column - 2)}-"
                pieces = _below(item, column + 2 * isinstance(item, list | tuple))
                # what begins a line of its own goes on behind the dash instead
                yield next(pieces).replace(f"\n{' ' * column}", " ", 1)
                yield from pieces
        case _:
            yield f" {_flow(value)}"


def _lines(text: str, column: int) -> Iterator[str]:
    """A text as it is, below a bar."""
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    yield " |" + ("2" if text[0] in " \n" else "") + ("-" if not ends else "+" if ends > 1 else "")
    before = f"\n{' ' * column}"
    for line in body.split("\n"):
        yield f"{before}{line}" if line else "\n"
    yield "\n" * (ends - 1)


def _quoted(text: str, column: int) -> Iterator[str]:
    """A text in quotes, with a line for each of its own."""
    *lines, rest = text.split("\n")
    pieces = [f"{_escaped(line)}\\n" for line in lines] + ([_escaped(rest)] if rest else [])
    yield f' "{pieces[0]}'
    for piece in pieces[1:]:
        # the spaces that begin a line count only behind a backslash
        shown = f"\\{piece}" if piece.startswith(" ") else piece
        yield f"\\\n{' ' * column}{shown}"
    yield '"'


def _in_line(value: Value) -> bool:
    """Whether an item lets its list stand in one line."""
    return not isinstance(value, bytes | Mapping | list | tuple) and not (
        isinstance(value, str) and "\n" in value
    )


def _flow(value: Value) -> str:
    match value:
        case Mapping():
            inner = [f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()]
            return f"{{{', '.join(inner)}}}"
        case str():
            shown = _scalar(value)
            bare = shown[0] not in "'\""
            return f"'{shown}'" if bare and (":" in shown or "?" in shown) else shown
        case bytes():
            return f'!!binary "{base64.b64encode(value).decode()}"'
        case Sequence():
            return f"[{', '.join(map(_flow, value))}]"
        case _:
            return _word(value)


def _word(value: float | None) -> str:
    """A value that is no text."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case _ if math.isfinite(value):
            whole, _point, decimals = f"{value:.6f}".partition(".")
            return f"{whole}.{decimals.rstrip('0').ljust(3, '0')}"
        case _:
            raise ValueError(f"{value} cannot be written; give a finite number or None")


def _scalar(text: str) -> str:
    """A text in one line."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if "\n" in text or _UNPRINTABLE.search(text):
        return f'"{_escaped(text)}"'
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if "\ud800" <= char <= "\udfff":
        return "\\ufffd"
    return _SHORT.get(char) or f"\\u{ord(char):04x}"
