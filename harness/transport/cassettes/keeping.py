"""What becomes of a cassette's file: what was there, and what is written when a session ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final, Literal, TypeAlias, get_args

from msgspec import structs

from harness.core import files
from harness.core.errors import CassetteMiss, FileError, HarnessError, Problem, UsageError
from harness.core.wording import counted
from harness.transport.cassettes import file
from harness.transport.cassettes.comparing import compare
from harness.transport.cassettes.failures import failures_told, renewed, unanswered
from harness.transport.cassettes.form import Cassette, Interaction
from harness.transport.cassettes.missing import in_mode
from harness.transport.cassettes.session import Session
from harness.transport.redact_bodies import interaction as redacted
from harness.transport.rules import Rules, joined

if sys.platform != "win32":
    import fcntl

Mode: TypeAlias = Literal["replay", "missing", "all", "drift"]
"""What is done with requests: play them and let none out; play them and record those that are not
there; record all anew; or have the real provider answer, and tell what has changed.
"""

MODES: Final[tuple[Mode, ...]] = get_args(Mode)


_TOLD: Final = 3
"""How many misses are told where a session ends badly."""
_WRITING: Final = Lock()
"""The same among the threads of this process, where folders cannot be locked."""


class Changed(HarnessError):
    """Somebody else wrote the cassette meanwhile; what was recorded stands beside it."""


class Kept:
    """The file of a cassette, for one session.

    `loaded` is what was there, with `rules` added and with `source` where that is given; `again`
    are the places of what is asked again instead of being played, since it had failed.
    """

    def __init__(self, path: Path, mode: Mode, rules: Rules, source: str) -> None:
        self._path = path
        self._mode = mode
        if mode != "replay":
            _check_place(path)
        self._state = _state(path)
        if self._state is not None:
            loaded = file.load(path)
        elif mode in ("missing", "all"):
            loaded = Cassette(path=path.as_posix())
        else:
            raise UsageError(
                f"{files.missing(path)}; record it with mode='missing', or with `harness record`"
            )
        self.loaded = structs.replace(
            loaded, rules=joined(loaded.rules, rules), source=source or loaded.source
        )
        self.again: frozenset[int] = frozenset()
        if mode == "missing":
            self.again = unanswered(self.loaded.interactions, self.loaded.rules)

    def end(self, session: Session, error: BaseException | None = None) -> None:
        """End the session, write what there is to write, and have it say what was done.

        `error` is what ends it where it ends badly. Changed where the file is not any more what it
        was.
        """
        session.end()
        recorded = session.recorded
        played = len(session.interactions) - len(recorded)
        session.said = (
            f"{self._path.as_posix()}: {played} of {len(self.loaded.interactions)} played"
        )
        if self._mode == "replay":
            hidden = [each for each in session.missed if each is not error]
            if error is not None:
                session.said = "\n".join([session.said, *_told(hidden)])
        elif self._mode == "missing":
            self._add(session, error)
        elif not recorded:
            session.said += ", nothing recorded"
        elif self._mode == "drift":
            safe = tuple([redacted(each, self.loaded.rules) for each in recorded])
            session.drift = compare(self.loaded, structs.replace(self.loaded, interactions=safe))
            self._write(session, safe, _beside(self._path, "drift"), len(safe))
        elif error is None or self._state is None:
            self._write(session, recorded, self._path, len(recorded))
        else:
            self._write(session, recorded, _beside(self._path, "partial"), len(recorded))

    def _add(self, session: Session, error: BaseException | None) -> None:
        """Write the cassette with what was recorded, unless it broke off, behind what was there."""
        recorded, before = session.recorded, self.loaded.interactions
        kept = [each for each in recorded if not error or not _broke_off(each)]
        unused = len(session.unused())
        if kept:
            whole = renewed(before, self.again, kept, self.loaded.rules)
            unused -= len(before) + len(kept) - len(whole)
            self._write(session, whole, self._path, len(kept))
        elif not recorded:
            session.said += ", nothing recorded"
        if left_out := len(recorded) - len(kept):
            session.said += f", {counted(left_out, 'exchange')} not kept that broke off"
        if unused and error is None:
            session.said += (
                f"; nobody asked for {counted(unused, 'interaction')}, which replay would tell: "
                f"where a request has changed, record all anew {in_mode('all')}"
            )

    def _write(
        self, session: Session, all_of_it: tuple[Interaction, ...], path: Path, new: int
    ) -> None:
        """Write a cassette, of which so many are new; beside its file, where that is not what it
        was.
        """
        text = file.write(structs.replace(self.loaded, interactions=all_of_it))
        with suppress(OSError):  # saving tells of it
            path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path.parent):
            found = _state(path)
            changed = path == self._path and found is not None and found != self._state
            if changed:
                path = _free(path)
            file.save_text(path, text)
        into = "" if path == self._path else f" into {path.as_posix()}"
        session.said += f", {new} recorded{into}{self._failed(session.recorded)}"
        if changed:
            raise Changed(
                f"{self._path.as_posix()} was written by somebody else while this session "
                f"recorded; what it recorded stands in {path.as_posix()}: compare them with "
                "`harness cassette diff`, keep one"
            )

    def _failed(self, recorded: Sequence[Interaction]) -> str:
        """Words for what was recorded and failed, and what becomes of it."""
        told = failures_told(recorded, unanswered(recorded, self.loaded.rules))
        asked_again = told and self._mode != "drift"
        return f"{told}; the mode missing asks again" if asked_again else told


def _told(missed: Sequence[CassetteMiss]) -> list[str]:
    """The first misses in words; those behind them mostly come of them."""
    more = len(missed) - _TOLD
    return [*map(str, missed[:_TOLD]), *([f"and {more} more"] if more > 0 else [])]


def _broke_off(given: Interaction) -> bool:
    """Whether it may have ended only because the session did: it would be played like that ever
    after, and is recorded again where it is missing.
    """
    return given.ended == "cancelled"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let nobody else look whether a file of a folder has changed, and write it, meanwhile."""
    with _WRITING, ExitStack() as stack:
        if sys.platform != "win32":
            with suppress(OSError):  # there are file systems without locks, and no folder at all
                descriptor = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _beside(path: Path, word: str) -> Path:
    """The name of a file beside a cassette, such as ``trip.drift.yaml``."""
    return path.with_name(f"{path.stem}.{word}{path.suffix}")


def _free(path: Path) -> Path:
    """A file beside a cassette that is not there yet, such as ``trip.2.yaml``."""
    return next(free for n in count(2) if not (free := _beside(path, str(n))).exists())


def _check_place(path: Path) -> None:
    """Raise FileError where no file can be made, as long as nothing is lost by it."""
    # what cannot be looked at is as good as not there
    folder = next(each for each in path.absolute().parents if os.path.exists(each))  # noqa: PTH110
    if not folder.is_dir():
        why = f"{folder.as_posix()} is no folder"
    elif not os.access(folder, os.W_OK | os.X_OK):
        why = f"nothing may be written into {folder.as_posix()}"
    else:
        return
    raise FileError(path.as_posix(), [Problem(f"cannot be written: {why}; nothing was recorded")])


def _state(path: Path) -> tuple[int, int, int] | None:
    """What tells whether a file was written again; None where there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise FileError(path.as_posix(), [Problem(problem)]) from None
    return found.st_ino, found.st_mtime_ns, found.st_size
