"""Standard output that is closed, full, or read by nobody any more."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

EXIT_UNWRITTEN = 2
EXIT_UNREAD = 141
"""What a shell shows for a program that ended since nobody reads its pipe, git for one."""


class Unwritten(Exception):
    """Standard output cannot be written.

    It is no OSError, so that nobody between the stream and `main` takes it for one of theirs.
    """

    def __init__(self, reason: OSError) -> None:
        super().__init__(f"standard output cannot be written: {reason.strerror or reason}")
        self.code = EXIT_UNREAD if isinstance(reason, BrokenPipeError) else EXIT_UNWRITTEN


class _Output:
    """A stream whose errors are `Unwritten`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise Unwritten(error) from None

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise Unwritten(error) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def tell(text: str) -> None:
    """Write a line, or several, on standard error, if that can be written; what a terminal would
    obey, as in the name of a file, is escaped.
    """
    from harness.report.values import printable

    try:
        sys.stderr.write("".join([f"{printable(line)}\n" for line in text.split("\n")]))
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Let nobody try again to write what a stream could not, as Python does when it ends."""
    with suppress(OSError):  # a stream without a file keeps nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def standard_output() -> Iterator[None]:
    """Have a standard output whose errors are `Unwritten`, also where the process has none.

    What goes to a stream that was closed when the process was started is dropped, as git and ruff
    do it. Left closed, the next file that is opened would take the stream's place.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    stream = sys.stdout
    output: Any = _Output(stream)
    sys.stdout = output
    try:
        yield
        sys.stdout.flush()
    except Unwritten:
        _drop(stream)
        raise
    finally:
        if sys.stdout is output:
            sys.stdout = stream
