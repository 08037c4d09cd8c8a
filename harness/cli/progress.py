"""How far a command is, on standard error: where that is a terminal, or all is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from harness.core.wording import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from harness.exploration.budget import Progress


class Telling:
    """Shows a line in place of the last one by `show`, and counts the runs that it is told of."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._runs = 0

    def say(self, text: str) -> None:
        """Show a line."""
        self._show(text)

    def progress(self, at: str, progress: Progress) -> None:
        """Say what is being tried `at` some scenario after one run more, of how many."""
        self._runs += 1
        planned = progress.planned
        whole = "" if planned is None or progress.runs > planned else f" of {planned:,}"
        self._show(f"{at}: {progress.doing}, run {progress.runs:,}{whole}")

    @property
    def interrupted(self) -> str:
        """What is said where all that is told of ends before its time."""
        after = f" after {counted(self._runs, 'run')}" if self._runs else ""
        return f"interrupted{after}; nothing was judged whole"


@contextmanager
def telling() -> Iterator[Telling]:
    """What tells how far all is; where no terminal shows it, that is silent. A KeyboardInterrupt
    tells it too.
    """
    from harness.report.terminal import make_console, on_terminal

    console = make_console(stderr=True)
    spinner = "dots" if _is_utf(console) else "line"
    shown = console.status("", spinner=spinner) if on_terminal(console) else nullcontext()
    with shown as status:
        told = Telling(_silent if status is None else partial(_show, console, status))
        try:
            yield told
        except KeyboardInterrupt:
            raise KeyboardInterrupt(told.interrupted) from None


def _silent(_text: str) -> None:
    pass


def _show(console: Console, status: Status, text: str) -> None:
    """Show what fits into one line, beside what turns."""
    from rich.text import Text

    line = Text(text)
    line.truncate(console.width - 3, overflow="ellipsis" if _is_utf(console) else "crop")
    status.update(line)


def _is_utf(console: Console) -> bool:
    return console.encoding.startswith("utf")
