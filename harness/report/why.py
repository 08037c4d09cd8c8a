"""What shows why a run went as it did: who ran when, who waits for whom, where it was busy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.core.wording import counted
from harness.exploration.explain import Busy, Move, circle, hottest, interleaving
from harness.exploration.probe import Run
from harness.report.decisions import decision_texts
from harness.report.terminal import WHOLE_FROM, print_table
from harness.report.values import printable

MOVES_MAX = 24
"""How many rows of a run are shown."""
BEFORE, AFTER = 2, 3
"""How many rows are shown before one with a decision, and after it."""


def print_why(console: Console, run: Run, *, around: bool = False) -> None:
    """Who ran when; who waits for whom, where the run ended in a deadlock; the busiest lines,
    where a limit ended it.

    With `around`, only what ran shortly before and after a decision or a cancel.
    """
    _print_moves(console, run, around=around)
    left = list(waits(run))
    if left:
        console.print(Text("who waits for whom, for ever:"))
    for line in left:
        console.print(Text(printable(f"    {line}")))
    busy = hottest(run) if run.unresolved is not None else ()
    if busy:
        print_busy(console, busy)


def print_busy(console: Console, places: Sequence[Busy], which: str = "") -> None:
    """The lines at which tasks waited most often."""
    console.print(Text(f"where tasks{which} waited most often:"))
    for line in busiest(places):
        console.print(Text(printable(f"    {line}")))


def busiest(places: Sequence[Busy]) -> list[str]:
    """How often tasks waited where, a line each."""
    return [
        f"{counted(each.count, 'time')} at {each.where}, in {each.role} tasks" for each in places
    ]


def _print_moves(console: Console, run: Run, *, around: bool) -> None:
    """The steps of tasks; several of one task in a row that waits at the same place are one row."""
    rows = moves(run)
    shown = _near(rows) if around else _from_the_first(rows)
    if not shown:
        return
    console.print(Text("who ran when, and where it waits then:"))
    texts = decision_texts(run)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("    step", justify="right")
    whole = console.width >= WHOLE_FROM
    for name in ("task", "", "waits at", "decided by then") if whole else ("task", "waits at"):
        table.add_column(name, overflow="fold")
    last = shown[0]
    for at in shown:
        if at > last + 1:
            table.add_row(Text("..."))
        last = at
        move, row = rows[at][0], rows[at]
        steps = f"{move.step:,}" if len(row) == 1 else f"{move.step:,}-{row[-1].step:,}"
        where = "(has ended)" if move.where is None else move.where
        cells = (
            (move.path, move.role, where, "; ".join(said(move, texts)))
            if whole
            else (move.path, where)
        )
        table.add_row(Text(steps), *[Text(printable(cell)) for cell in cells])
    print_table(console, table)
    before = sum(map(len, rows[: shown[0]]))
    after = sum(map(len, rows[last + 1 :]))
    if before or after:
        console.print(Text(f"    (and {before:,} before and {after:,} after)", style="dim"))


def moves(run: Run) -> list[list[Move]]:
    """The steps of all tasks in their order; those in a row that are shown as one together."""
    return [list(same) for _, same in groupby(interleaving(run), _Alike())]


def said(move: Move, texts: Mapping[tuple[str, str], str]) -> list[str]:
    """What was decided by the time of a step, and what was cancelled about then; `texts` are the
    run's `decision_texts`.
    """
    made = [texts[each.source, each.label] for each in move.decisions]
    return made + [f"cancel {each.shot}" for each in move.landings]


def _from_the_first(rows: Sequence[Sequence[Move]]) -> Sequence[int]:
    """The rows from shortly before the first that was decided otherwise."""
    first = next((at for at, row in enumerate(rows) if _is_decided(row[0])), 0)
    start = max(0, min(first - BEFORE, len(rows) - MOVES_MAX))
    return range(start, min(start + MOVES_MAX, len(rows)))


def _near(rows: Sequence[Sequence[Move]]) -> Sequence[int]:
    """The rows shortly before and after each that was decided otherwise."""
    decided = [at for at, row in enumerate(rows) if _is_decided(row[0])]
    near = {at + by for at in decided for by in range(-BEFORE, AFTER + 1)}
    return sorted(near & set(range(len(rows))))[:MOVES_MAX]


def _is_decided(move: Move) -> bool:
    return bool(move.decisions or move.landings)


class _Alike:
    """Numbers moves, the same number for those in a row that are shown as one."""

    def __init__(self) -> None:
        self._number = 0
        self._last: tuple[str, str | None] = ("", None)

    def __call__(self, move: Move) -> int:
        """The number of `move`."""
        if _is_decided(move) or (move.path, move.where) != self._last:
            self._number += 1
        self._last = (move.path, move.where)
        return self._number


def waits(run: Run) -> Iterator[str]:
    """Who waits for whom, where that is for ever."""
    for each in run.left:
        others = (
            f" for {' and '.join(each.awaits)}" if each.awaits else ", for no task that is known"
        )
        yield f"{each.path} waits at {each.where}{others}"
    around = circle(run.left)
    if around:
        yield f"in a circle: {' waits for '.join([*around, around[0]])}"
