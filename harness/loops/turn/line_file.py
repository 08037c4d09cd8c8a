"""A file of lines that only grows, for one writer at a time; a line is wholly in it or not at all.

Beside the file ``x`` stand ``x.writer`` while somebody writes, to say who, and ``x.torn`` where
something was taken from its end.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from harness.core.errors import FileError, FileInUse, Problem, UsageError
from harness.loops.turn.file_lock import try_lock


class LineFile:
    """An open and locked file, made where there is none.

    FileError where it cannot be, FileInUse where somebody else writes it.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.as_posix()
        self._process = os.getpid()
        self._file = _open(path)
        real = path.resolve()
        self._folder = real.parent
        self._writer = real.with_name(real.name + ".writer")
        self._torn = real.with_name(real.name + ".torn")
        try:
            self._lock()
            self._end = self._file.seek(0, os.SEEK_END)
        except BaseException:
            self._file.close()
            raise
        self._whole = True
        """Whether nothing stands behind `_end`, where the last whole line ends."""

    @property
    def torn_name(self) -> str:
        """The file that keeps what was taken from the end."""
        return self._torn.as_posix()

    def read(self) -> bytes:
        """All that is in the file."""
        self._file.seek(0)
        return self._file.readall()

    def take_end(self, end: bytes) -> None:
        """Move the last bytes, which are `end`, to the file for torn ends."""
        with _told(self.torn_name, "written"), FileIO(self._torn, "a") as torn:
            _write(torn, end + b"\n")
        size = self._end - len(end)
        with _told(self.name, "mended"):
            self._file.truncate(size)
        self._end = size

    def append(self, text: str, *, sync: bool) -> None:
        """Write `text`, as one write; with `sync` it is on the disk when this returns.

        OSError where that fails: then nothing of it stays in the file; what cannot be cut off at
        once is cut off before anything else is written.
        """
        if self._file.closed:
            raise UsageError(f"{self.name} is closed; open it again to write")
        if os.getpid() != self._process:
            raise UsageError(
                f"{self.name} was opened by process {self._process}, which forked this one; "
                "a file has one writer"
            )
        data = text.encode()
        try:
            self._mend()
            self._whole = False
            _write(self._file, data)
            if sync:
                os.fsync(self._file.fileno())
        except BaseException as error:
            with suppress(OSError):
                self._mend()
            if isinstance(error, OSError):
                error.filename = self.name
            raise
        self._end += len(data)
        self._whole = True

    def sync_folder(self) -> None:
        """See to it that a new file's name is on the disk too, on systems that can be told to."""
        with suppress(OSError):
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Let another writer have the file; a second call does nothing."""
        if not self._file.closed:
            with suppress(OSError):
                self._mend()
            with suppress(OSError):
                self._writer.unlink()
            self._file.close()

    def _mend(self) -> None:
        """Take away what a write that failed has left."""
        if not self._whole:
            self._file.truncate(self._end)
            self._whole = True

    def _lock(self) -> None:
        me = f"process {os.getpid()} on {platform.node()}"
        with _told(self.name, "locked"):
            locked = try_lock(self._file.fileno())
        if not locked:
            holder = "another writer"
            with suppress(OSError, UnicodeDecodeError):
                holder = self._writer.read_text(encoding="utf-8") or holder
            if holder == me:
                holder = f"this process ({os.getpid()})"
            problem = Problem(
                f"{holder} has it open for writing; close it there first. Reading needs no lock"
            )
            raise FileInUse(self.name, [problem])
        with suppress(OSError):  # the lock holds without it
            self._writer.write_text(me, encoding="utf-8")


def _open(path: Path) -> FileIO:
    name = path.as_posix()
    with _told(name, "opened for writing"):
        if path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "not a regular file"
            raise FileError(name, [Problem(f"is {what}; expected a file, or a name not yet used")])
        if not path.parent.exists():
            folder = path.parent.as_posix()
            raise FileError(name, [Problem(f"there is no folder {folder}; make it first")])
        return FileIO(path, "a+")


@contextmanager
def _told(name: str, done: str) -> Iterator[None]:
    """Tell a failure of the system as one of the file `name`, which cannot be `done`."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise FileError(name, [Problem(f"cannot be {done}: {why}")]) from None


def _write(file: FileIO, data: bytes) -> None:
    """Write all of `data`; a system may take it in parts where room is short."""
    written = 0
    while written < len(data):
        written += file.write(data[written:])
