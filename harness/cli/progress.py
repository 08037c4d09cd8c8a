"""How far a command is, on standard error: where that is a terminal, or all is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from harness.core.wording import counted

if TYPE_CHECKING:
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
        planned = "" if progress.planned is None else f" of {progress.planned:,}"
        self._show(f"{at}: {progress.doing}, run {progress.runs:,}{planned}")

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
    from harness.report.terminal import make_console

    console = make_console(stderr=True)
    with console.status("") if console.is_terminal else nullcontext() as status:
        told = Telling(_silent if status is None else status.update)
        try:
            yield told
        except KeyboardInterrupt:
            raise KeyboardInterrupt(told.interrupted) from None


def _silent(_text: str) -> None:
    pass
