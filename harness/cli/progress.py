"""How far a command is, on standard error: where that is a terminal, or all is interrupted."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from harness.core.wording import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from harness.exploration.budget import Progress

_DOING = {"baseline": "no cancel", "single": "one cancel", "double": "two cancels"}
"""What a sweep is at, in words for those who wait."""


class Telling:
    """Shows a line in place of the last one by `show`, and counts the runs that it is told of.

    It raises KeyboardInterrupt where Ctrl-C was pressed before and went unheard.
    """

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._runs = 0
        self._stop = False

    def say(self, text: str) -> None:
        """Show a line."""
        if self._stop:
            raise KeyboardInterrupt
        self._show(text)

    def stop(self, *_signal: object) -> None:
        """Be what Ctrl-C calls: end what runs, or else what is told next."""
        self._stop = True
        raise KeyboardInterrupt

    def progress(self, at: str, progress: Progress) -> None:
        """Say what is being tried `at` some scenario after one run more, of how many."""
        self._runs += 1
        planned = progress.planned
        whole = "" if planned is None or progress.runs > planned else f" of {planned:,}"
        doing = _DOING.get(progress.doing, progress.doing)
        self.say(f"{at}: {doing}, run {progress.runs:,}{whole}")

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
            with _heard(told.stop):
                yield told
        except KeyboardInterrupt:
            raise KeyboardInterrupt(told.interrupted) from None


@contextmanager
def _heard(stop: Callable[..., None]) -> Iterator[None]:
    """Have Ctrl-C call `stop`, where it would raise KeyboardInterrupt.

    What that is raised in may be a destructor, which cannot raise: Python prints it, and goes on.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    hook = sys.unraisablehook
    signal.signal(signal.SIGINT, stop)
    sys.unraisablehook = lambda unraisable: (
        None if issubclass(unraisable.exc_type, KeyboardInterrupt) else hook(unraisable)
    )
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _silent(_text: str) -> None:
    pass


def _show(console: Console, status: Status, text: str) -> None:
    """Show what fits into one line, beside what turns."""
    from rich.text import Text

    from harness.report.values import printable

    line = Text(printable(text))
    line.truncate(console.width - 3, overflow="ellipsis" if _is_utf(console) else "crop")
    status.update(line)


def _is_utf(console: Console) -> bool:
    return console.encoding.startswith("utf")
