"""A recorded session as a conversation: who said what, when, and what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.core.durations import moment
from harness.report.terminal import TABLE_FROM, print_table
from harness.report.values import printable

Who: TypeAlias = Literal["user", "asks", "thinks", "says", "calls", "gives", "wrong", "note"]
"""What a line is: the user's text, a request, the model's reasoning, text, and calls, what a tool
gave, what went wrong, and what else there is to say.
"""

STYLES: dict[Who, str] = {
    "user": "bold",
    "asks": "dim",
    "thinks": "magenta",
    "says": "cyan",
    "calls": "yellow",
    "gives": "green",
    "wrong": "red",
    "note": "dim",
}
_LEAST = 20
"""How many columns a text has at least."""


class Said(Struct, frozen=True):
    """One thing that was said; `at` is when, in nanoseconds since the session began, None where
    nobody knows, and `tool` is the one that is called or gives something.
    """

    who: Who
    text: str
    at: int | None = None
    tool: str = ""


class Section(Struct, frozen=True):
    """What belongs together, such as a turn, under a heading."""

    title: str
    said: tuple[Said, ...]


class Conversation(Struct, frozen=True):
    """A recorded session: what it is, in a line, and what was said."""

    title: str
    sections: tuple[Section, ...]


def print_conversation(console: Console, title: str, sections: Sequence[Section]) -> None:
    """Sections under a title; with times where they are known, and from 60 columns on."""
    console.print(Text(printable(title), style="bold"))
    known = any(each.at is not None for section in sections for each in section.said)
    timed = known and console.width >= TABLE_FROM
    for section in sections:
        console.print()
        console.print(Text(printable(section.title), style="bold underline"))
        print_table(console, _table(section.said, timed=timed))


def _table(said: Sequence[Said], *, timed: bool) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    if timed:
        table.add_column(justify="right", no_wrap=True, min_width=7)
    table.add_column(no_wrap=True, min_width=6)
    table.add_column(overflow="fold", min_width=_LEAST)
    before = None
    for each in said:
        shown = "" if each.at is None or each.at == before else moment(each.at)
        before = before if each.at is None else each.at
        row = [Text(each.who, style=STYLES[each.who]), Text(lines(each.text), STYLES[each.who])]
        table.add_row(*([Text(shown, style="dim"), *row] if timed else row))
    return table


def lines(text: str) -> str:
    r"""A text whose lines stay, with all else that cannot be seen escaped.

    >>> lines("a\nb\x1b[0m\r\nc\n")
    'a\nb\\u001b[0m\nc'
    """
    plain = text.replace("\r\n", "\n").rstrip("\n").replace("\t", "    ")
    return "\n".join([printable(line) for line in plain.split("\n")])
