"""The file of a log: one writer, no half row whatever the disk does, and nothing else touched."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import FileError, FileInUse, UsageError
from harness.core.outcome import Error
from harness.core.rows import AssistantRow, Row, TurnEndRow, TurnStartRow, UserRow
from harness.loops.turn import line_file
from harness.loops.turn.disk_log import DiskLog, read_log
from harness.loops.turn.row_text import write_row
from tests.loops.turn.world import World, done, play

REPOSITORY = Path(__file__).parents[3]
HI = UserRow("hi")
LINE = b'{"type":"user_message","text":"hi"}\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# --- two writers


def test_a_second_writer_in_this_process_is_refused_and_harms_nothing(path: Path) -> None:
    with DiskLog(path) as log:
        log.append(HI)
        for _ in range(2):
            with pytest.raises(FileInUse) as caught:
                DiskLog(path)
            assert str(caught.value) == (
                f"{path.as_posix()}: this process ({os.getpid()}) has it open for writing; close "
                "it there first. Reading needs no lock"
            )
        assert read_log(path).rows() == (HI,)
        log.append(HI)
    with DiskLog(path) as log:
        assert log.rows() == (HI, HI)


def test_another_name_of_the_file_is_the_same_file(path: Path) -> None:
    link, hard = path.with_name("link"), path.with_name("hard")
    link.symlink_to(path)
    with DiskLog(link) as log:
        log.append(HI)
        hard.hardlink_to(path)
        for name, holder in ((path, "this process"), (link, "this process"), (hard, "another")):
            with pytest.raises(FileInUse, match=f"{name.name}: {holder}"):
                DiskLog(name)
    with DiskLog(hard) as log:
        assert log.rows() == (HI,)


def test_nothing_but_the_log_is_left_after_a_close(path: Path) -> None:
    log = DiskLog(path)
    assert path.with_name("session.jsonl.writer").read_text().startswith(f"process {os.getpid()} ")
    log.close()
    log.close()
    assert names(path.parent) == ["session.jsonl"]


@pytest.mark.parametrize("note", [None, b"", b"\xff"])
def test_a_holder_who_left_no_name_holds_all_the_same(path: Path, note: bytes | None) -> None:
    with DiskLog(path):
        written = path.with_name("session.jsonl.writer")
        written.unlink()
        if note is not None:
            written.write_bytes(note)
        with pytest.raises(FileInUse, match="another writer has it open for writing"):
            DiskLog(path)


def test_a_name_that_a_killed_writer_left_holds_nothing(path: Path) -> None:
    path.with_name("session.jsonl.writer").write_text("process 1 on elsewhere")
    with DiskLog(path), pytest.raises(FileInUse, match="this process"):
        DiskLog(path)


def test_a_writer_in_another_process_keeps_this_one_out_until_it_ends(path: Path) -> None:
    program = "import sys; from harness.loops.turn.disk_log import DiskLog; " + (
        f"log = DiskLog({str(path)!r}); print('open', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with pytest.raises(FileInUse, match=rf"session.jsonl: process {child.pid} on "):
            DiskLog(path)
        child.communicate()
    assert child.returncode == 0
    DiskLog(path).close()


def test_a_log_that_could_not_be_read_is_not_held(path: Path) -> None:
    path.write_bytes(b"no log\n")
    for _ in range(2):
        with pytest.raises(FileError, match="not JSON"):
            DiskLog(path)
    assert names(path.parent) == ["session.jsonl"]


def test_a_closed_log_is_read_and_not_written(path: Path) -> None:
    with DiskLog(path) as log:
        log.append(HI)
    with pytest.raises(UsageError, match=r"session.jsonl is closed; open it again to write"):
        log.append(HI)
    with pytest.raises(UsageError, match="is closed"):
        log.clear()
    assert log.rows() == (HI,)


def test_a_forked_process_is_no_second_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DiskLog(path) as log:
        with monkeypatch.context() as forked:
            forked.setattr("os.getpid", lambda: 0)
            with pytest.raises(UsageError, match=r"opened by process \d+, which forked"):
                log.append(HI)
        log.append(HI)
    assert path.read_bytes() == LINE


# --- what is no log


def no_log(path: Path) -> str:
    """What opening says, and reading too; nothing is changed by it."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(FileError) as caught:
        DiskLog(path)
    assert before is None or path.read_bytes() == before
    assert not path.with_name(path.name + ".torn").exists()
    with pytest.raises(FileError) as again:
        read_log(path)
    if before is not None:
        assert str(again.value) == str(caught.value)
    return str(caught.value).replace(path.as_posix(), "log")


START = b'{"type":"turn_start","id":"turn-0"}\n'


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (START + b"oops\n" + LINE, "log:2:1: not JSON: Expecting value, in 'oops'\n"),
        (START + LINE[:-3] + b"\n" + LINE, "log:2:31: not JSON: Unterminated string"),
        (START + LINE[:9] + LINE + LINE, "log:2:12: not JSON: Expecting ',' delimiter, in"),
        (START + b"7\n", "log:2:1: a row is a JSON object with a type, not 7\n"),
        (START + b"\0\0\0\n" + LINE, "log:2:1: NUL bytes, as a file system leaves them"),
        (START + "é\0\n".encode(), "log:2:2: NUL bytes, as a file system leaves them"),
        (START + b"\0\0" + LINE[:9], "log:2:1: NUL bytes, as a file system leaves them"),
        (START + 'é"\udcff'.encode(errors="surrogateescape") + b"\n",
         "log:2:3: the byte 0xff is not UTF-8, in 'é\"\\\\xff'\n"),
        (START.decode().encode("utf-16"), "log:1:1: the byte 0xff is not UTF-8, in "),
        (START + b'{"type":"user_message","text":"\xed\xa0\x80"}\n', "log:2:32: the byte 0xed"),
        (START + b'{"type":"song"}\n', "log:2:1: unknown kind of row 'song'; known: turn_start"),
        (START + b'{"type":"song"}', "log:2:1: unknown kind of row 'song'; known: turn_start"),
        (START[:-2] + b',"by":1}', "log:1:1: unknown key of a turn_start row 'by'; known: type"),
        (START[:-2] + b',"id":"t"}\n', "log:1:1: duplicate key 'id' in a JSON object"),
        (b'{"type":"log_cleared","turns":-1}\n', "log:1:1: Expected `int` >= 0"),
        (b'{"type":"log_cleared","turns":1,"by":1}\n', "log:1:1: Object contains unknown field"),
        (b'{"type":"user_message","text":NaN}\n', "log:1:1: NaN is not JSON"),
        (START + b'{"type":"tool_call","args":' + b"[" * 99_999, "log:2:1: nested too deep, in "),
        (b"a letter", "log:1:1: not JSON: Expecting value, in 'a letter'\n"),
        (b'{"a": 1, "ty', "log:1:10: not JSON: Unterminated string"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named(path: Path, data: bytes, problem: str) -> None:
    path.write_bytes(data)
    told = no_log(path)
    assert told.startswith(problem)
    assert told.endswith(
        'log: expected the rows of a session log, one a line, such as {"type":"turn_start",'
        '"id":"turn-0"}; nothing was changed: mend the line(s), or move the file away and begin '
        "anew"
    )


def test_all_lines_that_cannot_be_read_are_told_up_to_ten(path: Path) -> None:
    path.write_bytes(START + b"a\n" + LINE + b"b\n" + b"torn")
    told = no_log(path).splitlines()
    assert [line[:7] for line in told] == ["log:2:1", "log:4:1", "log:5:1", "log: ex"]
    path.write_bytes(b"a\n" * 13)
    assert no_log(path).splitlines()[10] == "log: 3 more line(s) cannot be read"


def test_a_long_line_is_not_told_whole(path: Path) -> None:
    path.write_bytes(b"x" * 10_000 + b"\n")
    assert len(no_log(path)) < 400


def test_a_folder_a_missing_one_and_a_pipe_are_no_logs(tmp_path: Path) -> None:
    assert no_log(tmp_path) == "log: is a folder; expected a file, or a name not yet used"
    folder = (tmp_path / "no").as_posix()
    assert no_log(tmp_path / "no" / "x") == f"log: there is no folder {folder}; make it first"
    (tmp_path / "file").touch()
    assert no_log(tmp_path / "file" / "x") == "log: cannot be opened for writing: Not a directory"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    told = no_log(tmp_path / "loop")
    assert told == "log: cannot be opened for writing: Too many levels of symbolic links"
    (tmp_path / "loop").unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="pipe: is not a regular file; expected a file"):
        DiskLog(tmp_path / "pipe")
    assert names(tmp_path) == ["file", "pipe"]


def test_a_file_without_permission_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(FileIO):
        def __init__(self, *args: Any) -> None:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(line_file, "FileIO", Closed)
    told = re.escape(f"{path.as_posix()}: cannot be opened for writing: Permission denied")
    with pytest.raises(FileError, match=told):
        DiskLog(path)


def test_a_file_system_without_locks_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_descriptor: int) -> bool:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(line_file, "try_lock", no_locks)
    with pytest.raises(FileError, match=r"session.jsonl: cannot be locked: No locks available"):
        DiskLog(path)


# --- what others have done to a log


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"", ()),
        (b"\n \n\t\r\n", ()),
        (b"   ", ()),
        (b"\xef\xbb\xbf", ()),
        (b"\xef\xbb\xbf" + LINE, (HI,)),
        (LINE.replace(b"\n", b"\r\n") * 2, (HI, HI)),
        (LINE + b"\n" + LINE, (HI, HI)),
        (b' { "text" : "hi", "type" : "user_message" } \n', (HI,)),
        (b'{"type":"user_message","text":"\\u0068i"}\n', (HI,)),
        (LINE[:-1], (HI,)),
        (LINE[:-1] + b"\r", (HI,)),
        (LINE + LINE[:-1], (HI, HI)),
    ],
)
def test_a_log_that_an_editor_touched_is_read_and_goes_on(
    path: Path, data: bytes, rows: tuple[Row, ...]
) -> None:
    path.write_bytes(data)
    assert read_log(path).rows() == rows
    with DiskLog(path) as log:
        assert (log.rows(), bool(log.recovery)) == (rows, False)
        log.append(HI)
    assert path.read_bytes().startswith(data)
    assert read_log(path).rows() == (*rows, HI)


@pytest.mark.parametrize(
    ("torn", "rows"),
    [
        (b"{", ()),
        (LINE[:-2], ()),
        ('{"type":"user_message","text":"é'.encode()[:-1], ()),
        (b'{"type":"user_message","text":"\\ud8', ()),
        (b'{"type":"user_message","text":"\0\0\0 more', ()),
        (bytes(4096), ()),
    ],
)
@pytest.mark.parametrize("before", [b"", LINE, b"\xef\xbb\xbf", LINE[:-1] + b"\r\n"])
def test_a_torn_line_is_moved_aside(
    path: Path, torn: bytes, rows: tuple[Row, ...], before: bytes
) -> None:
    path.write_bytes(before + torn)
    whole = (HI,) * before.count(b"\n")
    assert read_log(path).rows() == whole
    assert path.read_bytes() == before + torn
    with DiskLog(path) as log:
        assert (log.rows(), log.recovery.torn) == (whole, torn)
        log.append(HI)
        assert Path(log.recovery.kept_in).read_bytes() == torn + b"\n"
    assert read_log(path).rows() == (*whole, HI)


def test_what_is_torn_later_is_kept_too(path: Path) -> None:
    for torn in (b'{"type', b'{"ty'):
        path.write_bytes(torn)
        with DiskLog(path) as log:
            kept = Path(log.recovery.kept_in)
    assert kept.read_bytes() == b'{"type\n{"ty\n'


def test_a_row_that_lacks_only_its_line_feed_is_kept(path: Path) -> None:
    path.write_bytes(LINE + LINE[:-1] + bytes(7))
    with DiskLog(path) as log:
        assert (log.rows(), log.recovery.torn) == ((HI, HI), bytes(7))
    assert path.read_bytes() == LINE + LINE


def test_lone_surrogates_survive(path: Path) -> None:
    odd = AssistantRow("\ud83d and \udc00, \ud83d\ude00")
    with DiskLog(path) as log:
        log.append(odd)
    assert read_log(path).rows() == (AssistantRow("\ud83d and \udc00, 😀"),)


# --- a disk that fails

ENOSPC = OSError(errno.ENOSPC, "No space left on device")


class Faulty(FileIO):
    """A file whose writes do what `plan` says, each entry once: a number of bytes is all that one
    write takes, an error is raised. `stuck` is how many times it cannot be cut.
    """

    plan: list[int | BaseException]
    stuck: int
    writes: int
    last_cut_failed = False

    def write(self, data: Any) -> int:
        Faulty.writes += 1
        step = self.plan.pop(0) if self.plan else len(data)
        if isinstance(step, BaseException):
            raise step
        return super().write(data[:step])

    def truncate(self, size: int | None = None) -> int:
        Faulty.last_cut_failed = self.stuck > 0
        if self.stuck:
            Faulty.stuck -= 1
            raise OSError(errno.EIO, "Input/output error")
        return super().truncate(size)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Faulty]]:
    Faulty.plan, Faulty.stuck, Faulty.writes = [], 0, 0
    monkeypatch.setattr(line_file, "FileIO", Faulty)
    yield Faulty
    Faulty.plan, Faulty.stuck = [], 0


def test_a_row_is_one_write_and_nothing_is_read_for_it(
    path: Path, faulty: type[Faulty], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = AssistantRow("word " * 20)
    with DiskLog(path, fsync="never") as log:
        monkeypatch.setattr(faulty, "readall", None)
        for _ in range(10_000):
            log.append(row)
        assert faulty.writes == 10_000
    assert path.stat().st_size == 10_000 * (len(write_row(row)) + 1)


def test_a_write_that_is_taken_in_parts_is_whole(path: Path, faulty: type[Faulty]) -> None:
    with DiskLog(path) as log:
        faulty.plan[:] = [1, 7, 0, 2]
        log.append(HI)
    assert path.read_bytes() == LINE


@pytest.mark.parametrize("taken", [0, 1, 20, len(LINE) - 1])
@pytest.mark.parametrize("stuck", [0, 1])
def test_a_row_that_found_no_room_is_wholly_absent(
    path: Path, faulty: type[Faulty], taken: int, stuck: int
) -> None:
    with DiskLog(path) as log:
        log.append(HI)
        faulty.plan[:], faulty.stuck = [taken, ENOSPC], stuck
        with pytest.raises(OSError, match=r"No space left on device: '.*session.jsonl'"):
            log.append(UserRow("lost"))
        assert log.rows() == (HI,)
        assert stuck or path.read_bytes() == LINE
        log.append(HI)
        assert log.rows() == read_log(path).rows() == (HI, HI)
    assert path.read_bytes() == LINE + LINE


def test_nothing_is_glued_to_half_a_row_that_cannot_be_cut(
    path: Path, faulty: type[Faulty]
) -> None:
    log = DiskLog(path)
    log.append(HI)
    faulty.plan[:], faulty.stuck = [4, ENOSPC], 99
    for message in ("No space left", "Input/output error"):
        with pytest.raises(OSError, match=message):
            log.append(UserRow("lost"))
    log.close()
    assert path.read_bytes() == LINE + LINE[:4]
    faulty.stuck = 0
    with DiskLog(path) as log:
        assert (log.rows(), log.recovery.torn) == ((HI,), LINE[:4])
        faulty.plan[:], faulty.stuck = [4, ENOSPC], 1
        with pytest.raises(OSError, match="No space left"):
            log.append(UserRow("lost"))
        assert path.read_bytes() == LINE + LINE[:4]
    assert path.read_bytes() == LINE


def test_a_row_that_cannot_be_synced_is_absent(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DiskLog(path, fsync="always") as log:
        log.append(HI)
        with monkeypatch.context() as broken:
            broken.setattr("os.fsync", _fails)
            with pytest.raises(OSError, match=r"Input/output error: '.*session.jsonl'"):
                log.append(UserRow("lost"))
        assert log.rows() == read_log(path).rows() == (HI,)


def _fails(_descriptor: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_a_clear_that_found_no_room_forgets_nothing(path: Path, faulty: type[Faulty]) -> None:
    with DiskLog(path) as log:
        log.append(HI)
        faulty.plan[:] = [5, ENOSPC]
        with pytest.raises(OSError, match="No space left"):
            log.clear()
        assert log.rows() == read_log(path).rows() == (HI,)


def test_an_interrupt_within_a_write_leaves_no_half_row(path: Path, faulty: type[Faulty]) -> None:
    with DiskLog(path) as log:
        faulty.plan[:] = [5, KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            log.append(HI)
        assert path.read_bytes() == b""


def test_a_log_that_cannot_be_mended_stays_as_it_is(path: Path, faulty: type[Faulty]) -> None:
    path.write_bytes(START + LINE[:9])
    for plan, stuck, told in (
        ([ENOSPC], 0, "session.jsonl.torn: cannot be written: No space left"),
        ([], 1, "session.jsonl: cannot be mended: Input/output error"),
    ):
        faulty.plan[:], faulty.stuck = plan, stuck
        with pytest.raises(FileError, match=told):
            DiskLog(path)
        assert path.read_bytes() == START + LINE[:9]
    faulty.plan[:] = [99, 5, ENOSPC]  # the torn line aside, then half of the turn's end
    with pytest.raises(OSError, match="No space left"):
        DiskLog(path)
    assert path.read_bytes() == START
    with DiskLog(path) as log:
        assert log.recovery.ended_turns == ("turn-0",)


def test_a_turn_whose_disk_is_full_fails_and_the_next_one_goes_on(
    path: Path, faulty: type[Faulty]
) -> None:
    with DiskLog(path) as log:
        world = World([[done("Hello.")], [done("Back again.")]])
        world.log = log
        faulty.plan[:] = [999, 999, 3, ENOSPC]
        assert play(world, "Hi") is ENOSPC
        rows = log.rows()
        assert rows[:2] == (TurnStartRow("turn-0"), UserRow("Hi"))
        assert isinstance(rows[2], TurnEndRow)
        assert isinstance(rows[2].outcome, Error)
        play(world, "Still there?")
        assert log.derive_messages()[-1].text == "Back again."
        assert read_log(path).rows() == log.rows()


@given(st.data())
def test_whatever_the_disk_does_file_and_memory_agree(data: st.DataObject) -> None:
    rows = st.sampled_from([HI, UserRow("é" * 9), TurnStartRow("turn-4")])
    plans = st.lists(st.integers(0, 40) | st.just(ENOSPC), max_size=4)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_file, "FileIO", Faulty)
        Faulty.plan, Faulty.stuck = [], 0
        path = Path(folder, "log")
        with DiskLog(path, fsync="never") as log:
            for row in data.draw(st.lists(rows, max_size=6)):
                Faulty.plan[:], Faulty.stuck = data.draw(plans), data.draw(st.integers(0, 2))
                before = log.rows()
                try:
                    log.append(row)
                except OSError:
                    assert log.rows() == before
                else:
                    assert log.rows() == (*before, row)
                read = read_log(path).rows()
                # Whole but for its line feed, and not to be cut: a reader takes it for written.
                assert read in (log.rows(), (*before, row))
                assert read == log.rows() or Faulty.last_cut_failed
            Faulty.plan, Faulty.stuck = [], 0
        assert read_log(path).rows() == log.rows()


def test_a_limit_that_the_system_sets_is_a_full_disk(path: Path) -> None:
    resource = pytest.importorskip("resource")
    with DiskLog(path) as log:
        log.append(HI)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(LINE) + 10, hard))
        try:
            with pytest.raises(OSError, match=r"File too large: '.*session.jsonl'"):
                log.append(HI)
            left = path.read_bytes()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert left == LINE
        log.append(HI)
    assert path.read_bytes() == LINE + LINE
