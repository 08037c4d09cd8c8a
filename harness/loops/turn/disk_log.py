"""A session log on disk: what was written survives a kill, and the conversation goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self, TypeAlias, get_args

from msgspec import Struct

from harness.core.errors import FileError, Problem, UsageError, unknown
from harness.core.rows import Row, ToolResultRow, TurnEndRow
from harness.loops.turn.closing import closing
from harness.loops.turn.config import TEXTS, Texts
from harness.loops.turn.line_file import LineFile
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.log_text import Cleared, Line, read_lines, write_line
from harness.loops.turn.policy import SAFE, Policy

Fsync: TypeAlias = Literal["always", "turn", "never"]
"""When rows are forced to the disk: each one, at the end of a turn, or when the system likes."""


class Recovery(Struct, frozen=True):
    """What opening a log had to mend; false where that was nothing.

    `torn` is what had been written of a line that was not whole; it is in the file `kept_in` now.
    `answered_calls` got a result in the tool's place, `ended_turns` an end as interrupted.
    """

    torn: bytes = b""
    kept_in: str = ""
    answered_calls: tuple[str, ...] = ()
    ended_turns: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != _NOTHING

    def __str__(self) -> str:
        parts = []
        if self.torn:
            parts.append(f"took away {len(self.torn)} bytes of a torn line, kept in {self.kept_in}")
        if self.answered_calls:
            parts.append(f"answered {', '.join(self.answered_calls)} in the tools' place")
        if self.ended_turns:
            parts.append(f"ended {', '.join(self.ended_turns)} as interrupted")
        return "; ".join(parts) or "nothing to mend"


_NOTHING = Recovery()


class DiskLog(MemoryLog):
    r"""A log in a file of JSON lines, one row a line; implements `harness.core.ports.SessionLog`.

    It has one writer at a time; `read_log` reads it meanwhile. A row is in the file when `append`
    returns, so a kill loses none; when it is on the disk, so that the machine may die too, is what
    `fsync` says. What a kill left is mended on opening, and told by `recovery`: a line that was
    not whole is taken away, a turn that had not ended is ended, its open calls are answered. Turn
    ids go on where they were, but for one that was asked for and never written. `clear` forgets
    rows and leaves them in the file: nothing is deleted.

    FileError where the file is no log, with all its lines that cannot be read; FileInUse where it
    has a writer; OSError where the disk fails, and then the row is wholly absent.

    >>> from tempfile import TemporaryDirectory
    >>> from harness.core.rows import ToolCallRow, TurnStartRow
    >>> folder = TemporaryDirectory()
    >>> with DiskLog(Path(folder.name, "session.jsonl")) as log:
    ...     log.append(TurnStartRow(log.next_turn_id()))
    ...     log.append(ToolCallRow("call-1", "weather", {"city": "Paris"}))
    >>> with DiskLog(Path(folder.name, "session.jsonl")) as log:
    ...     print(log.recovery)
    ...     print(log.derive_messages()[-1].text)
    ...     print(log.next_turn_id())
    answered call-1 in the tools' place; ended turn-0 as interrupted
    Error: no result before the process ended; it may have taken effect
    turn-1
    >>> folder.cleanup()

    A loop takes it as any other log: ``create_loop(model, DiskLog(path), tools)``.
    """

    def __init__(
        self,
        path: Path | str,
        policy: Policy = SAFE,
        texts: Texts = TEXTS,
        *,
        fsync: Fsync = "turn",
    ) -> None:
        if fsync not in get_args(Fsync):
            raise UsageError(unknown("fsync policy", fsync, get_args(Fsync)))
        super().__init__(policy, texts)
        self._fsync = fsync
        self._file = LineFile(Path(path))
        try:
            self.recovery = self._recover()
        except BaseException:
            self.close()
            raise

    def append(self, row: Row) -> None:
        """Write a row."""
        self._write(row, sync=isinstance(row, TurnEndRow))
        super().append(row)

    def clear(self) -> None:
        """Forget all rows; turn ids go on. The file keeps them."""
        self._write(Cleared(self._turns), sync=True)
        super().clear()

    def close(self) -> None:
        """Let another writer have the file; what was read of it stays readable here."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _write(self, line: Line, *, sync: bool) -> None:
        wanted = self._fsync == "always" or (self._fsync == "turn" and sync)
        self._file.append(write_line(line), sync=wanted)

    def _recover(self) -> Recovery:
        data = self._file.read()
        text = read_lines(data, self._file.name)
        torn = data[text.end :]
        if torn:
            self._file.take_end(torn)
        if not text.ended:
            self._file.append("\n", sync=False)
        if not data and self._fsync != "never":
            self._file.sync_folder()
        self._turns = text.turns
        for row in text.rows:
            super().append(row)
        rows = closing(text.rows, self._policy, self._texts)
        for row in rows:
            self.append(row)
        return Recovery(
            torn,
            self._file.torn_name if torn else "",
            tuple([row.id for row in rows if isinstance(row, ToolResultRow)]),
            tuple([row.id for row in rows if isinstance(row, TurnEndRow)]),
        )


def read_log(path: Path | str, policy: Policy = SAFE, texts: Texts = TEXTS) -> MemoryLog:
    """What the log at `path` holds now, in memory; nothing is locked, mended or changed.

    A line that a writer has not finished is not there yet. FileError where there is no log.
    """
    path = Path(path)
    name = path.as_posix()
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = Problem(f"cannot be read: {error.strerror or error}")
        raise FileError(name, [problem]) from None
    text = read_lines(data, name)
    return MemoryLog(policy, texts, rows=text.rows, turns=text.turns)
