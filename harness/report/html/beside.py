"""A failing run beside the passing run that is most like it, line by line, with what differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from msgspec import Struct

from harness.core.wording import counted
from harness.exploration.probe import Run
from harness.report.decisions import decision_texts
from harness.report.html.markup import Markup, joined, tag, text
from harness.report.html.part import compact
from harness.report.sweep import Beside
from harness.report.text import untimed
from harness.report.values import printable
from harness.report.why import moves, said

AROUND = 3
"""How many lines that are alike are shown before and after what differs."""
ROWS_MAX = 400
"""How many rows of two runs are shown."""
_COMPARED_MAX = 2_000
"""Up to how many characters two lines are compared word by word."""
_WINDOW, _WIDEST = 500, 8_000
"""How many lines, or words, of two texts are compared with each other at a time, and how many at
most where few are alike.
"""
_ALIKE_FROM = 0.4
"""From which share on two lines are one line that was changed."""
_WORDS = re.compile(r"\w+|\W")

_Code: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]
"""What happened to a stretch: what, its begin and end in the one text, and in the other."""


class Line(Struct, frozen=True):
    """A line of one of two runs: what makes it the same as one of the other, and what is shown."""

    key: str
    shown: str
    note: str = ""
    """What was decided here."""


class _Row(Struct, frozen=True):
    """A row of the two; a line is None where the other run has one more."""

    left: Line | None
    right: Line | None
    alike: bool


def happened(run: Run) -> list[Line]:
    """What happened in a run; times do not make lines different."""
    return [Line(untimed(line), compact(line)) for line in run.lines]


def steps(run: Run) -> list[Line]:
    """Who ran when, and where it waits then; the numbers of steps make no difference."""
    texts = decision_texts(run)
    lines = []
    for row in moves(run):
        move = row[0]
        where = "(has ended)" if move.where is None else move.where
        number = f"{move.step:,}" if len(row) == 1 else f"{move.step:,}-{row[-1].step:,}"
        note = "; ".join(said(move, texts))
        shown = printable(f"{number:>6}  {move.path:<6} {where}")
        lines.append(Line(f"{move.path} {where}", shown, note))
    return lines


def both(beside: Beside, run: Run) -> Markup:
    """What happened in the two runs, and who ran when."""
    heads = (f"nearest run that passes: {beside.changed}", "this run")
    ran = (steps(beside.run), steps(run))
    return joined(
        [
            tag("h4", "Beside the nearest run that passes"),
            aligned(happened(beside.run), happened(run), heads, "What happened in the two runs"),
            _who_ran(aligned(*ran, heads, "Who ran when in the two runs"), sum(map(len, ran)))
            if all(ran)
            else who_ran(run),
        ]
    )


def who_ran(run: Run) -> Markup | None:
    """Who ran when in one run; None where nobody knows."""
    ran = steps(run)
    if not ran:
        return None
    rows = [tag("tr", _cell(text(line.shown), line, "ran")) for line in ran[:ROWS_MAX]]
    if len(ran) > ROWS_MAX:
        rows.append(tag("tr", tag("td", f"… {len(ran) - ROWS_MAX:,} more"), class_="gap"))
    caption = tag("caption", "Who ran when in this run", class_="unseen")
    head = tag("thead", tag("tr", tag("th", "this run", scope="col")))
    return _who_ran(tag("table", caption, head, tag("tbody", *rows), class_="beside"), len(ran))


def _who_ran(table: Markup, count: int) -> Markup:
    title = tag("summary", "Who ran when, and where it waits then")
    return tag("details", title, table, open=count < ROWS_MAX // 4)


def aligned(
    left: Sequence[Line], right: Sequence[Line], heads: tuple[str, str], caption: str
) -> Markup:
    """Two runs as a table of two columns, with lines that are the same beside each other.

    Long stretches that are alike are left out, with their number; and so is what is too much.
    """
    rows = _rows(left, right)
    shown = _shown(rows)
    if not shown:
        return tag("p", "Nothing differs in it but the times.", class_="quiet")
    body: list[Markup] = []
    last = -1
    for index in shown[:ROWS_MAX]:
        if index > last + 1:
            body.append(_gap(index - last - 1, "alike"))
        body.append(_row(rows[index]))
        last = index
    if len(shown) > ROWS_MAX:
        body.append(_gap(len(shown) - ROWS_MAX, "more"))
    elif last + 1 < len(rows):
        body.append(_gap(len(rows) - last - 1, "alike"))
    head = tag("tr", *[tag("th", name, scope="col") for name in heads])
    return tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", head),
        tag("tbody", *body),
        class_="beside",
    )


def _gap(count: int, what: Literal["alike", "more"]) -> Markup:
    says = f"{counted(count, 'line')} alike" if what == "alike" else f"{count:,} more"
    return tag("tr", tag("td", f"… {says}", colspan=2), class_="gap")


def _shown(rows: Sequence[_Row]) -> list[int]:
    """The rows that differ or in which something was decided, and those around them."""
    near = [False] * len(rows)
    for index, row in enumerate(rows):
        if not row.alike or any(line is not None and line.note for line in (row.left, row.right)):
            for at in range(max(0, index - AROUND), min(len(rows), index + AROUND + 1)):
                near[at] = True
    return [index for index, shown in enumerate(near) if shown]


def _rows(left: Sequence[Line], right: Sequence[Line]) -> list[_Row]:
    before, after = [line.key for line in left], [line.key for line in right]
    rows: list[_Row] = []
    for what, from_, to, start, end in _codes(before, after):
        rows += _pairs(left[from_:to], right[start:end], alike=what == "equal")
    return rows


def _codes(before: Sequence[str], after: Sequence[str]) -> Iterator[_Code]:
    """What is equal in two texts and what is not, as `SequenceMatcher` says it, which takes time by
    the square of what it is given: so it is given what is not the same at both ends, and of that a
    window at a time.
    """
    first = _common(before, after)
    last = _common(before[first:][::-1], after[first:][::-1])
    left, right = before[first : len(before) - last], after[first : len(after) - last]
    yield "equal", 0, first, 0, first
    at, on = 0, 0
    while at < len(left) or on < len(right):
        codes = _window(left[at : at + _WIDEST], right[on : on + _WIDEST])
        for what, from_, to, start, end in codes:
            yield what, first + at + from_, first + at + to, first + on + start, first + on + end
        at, on = at + codes[-1][2], on + codes[-1][4]
    yield "equal", first + at, len(before), first + on, len(after)


def _window(left: Sequence[str], right: Sequence[str]) -> Sequence[_Code]:
    """What is equal at the beginning of two texts and what is not, so far as that is certain: what
    has no partner at the end of a window may have one behind it.
    """
    size = _WINDOW
    while size < max(len(left), len(right)):
        codes = SequenceMatcher(None, left[:size], right[:size], autojunk=False).get_opcodes()
        known = max([at for at, code in enumerate(codes, 1) if code[0] == "equal"], default=0)
        if known and max(codes[known - 1][2], codes[known - 1][4]) >= _WINDOW // 2:
            return codes[:known]
        size *= 2
    return SequenceMatcher(None, left, right, autojunk=False).get_opcodes()


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """How many at the beginning are the same."""
    pairs = enumerate(zip(left, right, strict=False))
    shared = min(len(left), len(right))
    return next((index for index, (a, b) in pairs if a != b), shared)


def _pairs(left: Sequence[Line], right: Sequence[Line], *, alike: bool) -> list[_Row]:
    """Lines beside each other as far as both have some; one that is quite another stands alone."""
    rows = []
    for a, b in zip(left, right, strict=False):
        if alike or _ratio(a, b) >= _ALIKE_FROM:
            rows.append(_Row(a, b, alike))
        else:
            rows += [_Row(a, None, alike=False), _Row(None, b, alike=False)]
    both_have = min(len(left), len(right))
    rows += [_Row(line, None, alike=False) for line in left[both_have:]]
    return rows + [_Row(None, line, alike=False) for line in right[both_have:]]


def _ratio(a: Line, b: Line) -> float:
    if max(len(a.shown), len(b.shown)) > _COMPARED_MAX:
        return 0.0
    return SequenceMatcher(None, a.key.split(), b.key.split()).ratio()


def _row(row: _Row) -> Markup:
    if row.left is not None and row.right is not None and not row.alike:
        left, right = _words(row.left.shown, row.right.shown)
        pair = (_cell(left, row.left, "del"), _cell(right, row.right, "ins"))
        return tag("tr", *pair, class_="changed")
    cells = [
        _cell(None if line is None else _whole(line, name, alike=row.alike), line, name)
        for line, name in ((row.left, "del"), (row.right, "ins"))
    ]
    return tag("tr", *cells, class_="alike" if row.alike else "alone")


def _cell(shown: Markup | None, line: Line | None, name: str) -> Markup:
    note = tag("em", line.note) if line is not None and line.note else None
    return tag("td", shown, note, class_="none" if line is None else name)


def _whole(line: Line, name: str, *, alike: bool) -> Markup:
    return text(line.shown) if alike else tag(name, line.shown)


def _words(left: str, right: str) -> tuple[Markup, Markup]:
    """Two lines, with the words marked that are not in the other."""
    before, after = _WORDS.findall(left), _WORDS.findall(right)
    codes = list(_codes(before, after))
    lefts = [(what, "".join(before[start:end])) for what, start, end, _, _ in codes]
    rights = [(what, "".join(after[start:end])) for what, _, _, start, end in codes]
    return joined(_marked(lefts, "del")), joined(_marked(rights, "ins"))


def _marked(parts: Sequence[tuple[str, str]], name: str) -> Iterator[Markup]:
    for what, words in parts:
        if words:
            yield text(words) if what == "equal" else tag(name, words)
