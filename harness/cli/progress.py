"""How far a command is, on standard error, where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.exploration.budget import Progress


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """What shows a line in place of the last one, and nothing where there is no terminal."""
    from harness.report.terminal import make_console

    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda _text: None
        return
    with console.status("") as status:
        yield status.update


def tell_progress(say: Callable[[str], None], at: str, progress: Progress) -> None:
    """Say what is being tried `at` some scenario, and how many runs of how many are done."""
    planned = "" if progress.planned is None else f" of {progress.planned:,}"
    say(f"{at}: {progress.doing}, run {progress.runs:,}{planned}")
