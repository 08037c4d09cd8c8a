"""One run as a figure: its lanes, which a script draws, and all of its lines, which need none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.core.wording import counted
from harness.report.html.lanes import picture
from harness.report.html.markup import Markup, data, tag, text


def figure(
    anchor: str, lines: Sequence[str], marked: Iterable[int] = (), *, open_: bool = False
) -> Markup | None:
    """The lanes of a run and its lines below them, which are unfolded where `open_` says so; None
    where there is no line.

    `marked` are the lines that show what is wrong; a link to `line_anchor` leads to each.
    """
    if not lines:
        return None
    marks = frozenset(marked)
    rows = [
        tag("mark", line, id=line_anchor(anchor, index)) if index in marks else text(line)
        for index, line in enumerate(lines)
    ]
    return tag(
        "div",
        data(picture(lines).plain(marks)),
        tag(
            "details",
            tag("summary", f"All that happened ({counted(len(lines), 'line')})"),
            tag("pre", Markup("\n".join(rows)), tabindex=0),
            class_="events",
            open=open_,
        ),
        class_="figure",
        id=anchor,
    )


def line_anchor(figure_anchor: str, index: int) -> str:
    """Where a line stands that is marked."""
    return f"{figure_anchor}-{index}"
