"""What every part of the page is made of: its head, what failed in it, what runs it again."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from harness.core.verdict import Status
from harness.report.html.figure import line_anchor
from harness.report.html.markup import Markup, joined, tag
from harness.report.not_run import Unjudged


class Part(Struct, frozen=True):
    """One of the things that a page shows, with what a list of them says of it.

    `summary` is how it went, in a line; `status` is None where nothing was to be judged.
    """

    kind: str
    name: str
    on: str
    status: Status | Unjudged | None
    summary: str
    body: Markup


class Shown(Struct, frozen=True):
    """Something that is wrong: what, and the lines of the run that show it."""

    message: str
    lines: tuple[int, ...]


def badge(status: Status | Unjudged | None) -> Markup | None:
    """A status as a word of its own colour."""
    return None if status is None else tag("b", status, class_=f"badge {status.lower()}")


def paragraphs(texts: Iterable[str], class_: str | None = None) -> Markup:
    """Texts, a paragraph each."""
    return joined([tag("p", text, class_=class_) for text in texts])


def compact(line: str) -> str:
    """A line of a run without columns.

    >>> compact("10ms     1.1    tool_effect         clock call_1")
    '10ms 1.1 tool_effect clock call_1'
    """
    return " ".join(line.split(maxsplit=3))


def findings(found: Iterable[Shown], anchor: str, lines: tuple[str, ...]) -> Markup | None:
    """What is wrong, each with the lines that show it, which lead to where they stand in the run's
    figure at `anchor`.
    """
    items = [
        tag(
            "li",
            tag("p", each.message),
            *[
                tag("a", compact(lines[line]), href=f"#{line_anchor(anchor, line)}", data_line=line)
                for line in each.lines
            ],
        )
        for each in found
    ]
    return tag("ul", *items, class_="findings") if items else None


def rerun(line: str) -> Markup | None:
    """The line that runs it again, to be copied."""
    if not line:
        return None
    return tag("div", tag("span", "run it again"), tag("code", line), class_="rerun")


def sentences(title: str, lines: Iterable[str]) -> Markup | None:
    """A list under a title; nothing where it would be empty."""
    items = [tag("li", line.strip()) for line in lines]
    return joined([tag("h4", title), tag("ul", *items)]) if items else None
