"""Files replaced whole, and what to say of one that is not there."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from harness.core.errors import hint, nearest

_SOURCES = (".py", ".yaml", ".yml")


def replace(path: Path, data: bytes) -> None:
    """Replace what a file holds, at once or not at all: no reader sees half of it, and after a
    crash it is the old one or the new one. Its folders are made if need be, its permissions stay,
    and a link leads to the file that is replaced. OSError where writing fails; then all is as it
    was.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")
    try:
        with half.open("xb") as file:
            with suppress(FileNotFoundError):
                half.chmod(stat.S_IMODE(target.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        half.replace(target)
    except BaseException:
        with suppress(OSError):
            half.unlink()
        raise


def put(path: Path, data: bytes) -> None:
    """The same for a file that may be no regular one, such as a pipe: that takes the data as it
    comes.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        replace(path, data)


def writable(path: Path) -> bool:
    """Whether a file can be written at a path, as far as that can be known without writing it."""
    folder = path.absolute().parent
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return not path.is_dir() and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def is_source(path: Path) -> bool:
    """Whether a file is named as what people write, scenarios and programs: a report that is told
    to go there would take the place of one, where an option has lost its own argument.
    """
    return path.suffix.lower() in _SOURCES


def missing(path: Path) -> str:
    """Say that a path is not there, and which one was probably meant."""
    wanted, parent = path, path.parent
    while not parent.is_dir() and parent != parent.parent:
        wanted, parent = parent, parent.parent
    try:
        guess = nearest(wanted.name, sorted(entry.name for entry in parent.iterdir()))
    except OSError:
        guess = None
    meant = hint((parent / guess).as_posix() if guess else None)
    return f"there is no {path.as_posix()}{meant}"
