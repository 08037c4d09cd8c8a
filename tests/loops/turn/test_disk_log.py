"""A log on disk is the log in memory, kept: same rows, same messages, same ids."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.messages import tool_result
from harness.core.outcome import COMPLETED, INTERRUPTED
from harness.core.pairing import breaches
from harness.core.rows import (
    AssistantRow,
    Row,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)
from harness.loops.turn.closing import closing
from harness.loops.turn.config import TEXTS, Texts
from harness.loops.turn.derive import derive
from harness.loops.turn.disk_log import DiskLog, read_log
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.policy import POLICIES, REFERENCE, SAFE
from harness.loops.turn.request import KeepsLedger
from harness.loops.turn.tokens import message_tokens
from harness.loops.turn.trim import Ledger
from tests.loops.turn.disk_runs import play_two_turns
from tests.loops.turn.some_rows import some_rows
from tests.loops.turn.world import World, done, play

# --- what holds of every session log

MakeLog = Callable[[], MemoryLog]


@pytest.fixture(params=["memory", "disk"])
def make_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeLog]:
    made: list[DiskLog] = []

    def on_disk() -> DiskLog:
        made.append(DiskLog(tmp_path / f"{len(made)}.jsonl"))
        return made[-1]

    yield MemoryLog if request.param == "memory" else on_disk
    for log in made:
        log.close()


def test_rows_come_back_in_order_and_as_a_copy(make_log: MakeLog) -> None:
    log = make_log()
    assert log.rows() == ()
    log.append(UserRow("one"))
    before = log.rows()
    log.append(UserRow("two"))
    assert (before, log.rows()) == ((UserRow("one"),), (UserRow("one"), UserRow("two")))


def test_turn_ids_go_on_after_a_clear(make_log: MakeLog) -> None:
    log = make_log()
    assert [log.next_turn_id(), log.next_turn_id()] == ["turn-0", "turn-1"]
    log.append(UserRow("hi"))
    log.clear()
    assert (log.rows(), log.derive_messages()) == ((), ())
    assert len(log.ledger(message_tokens)) == 0
    assert log.next_turn_id() == "turn-2"


@pytest.mark.parametrize("row", [TurnStartRow("turn-7"), TurnEndRow("turn-7")])
def test_an_id_in_a_row_counts_as_given(make_log: MakeLog, row: Row) -> None:
    log = make_log()
    log.append(row)
    log.append(TurnStartRow("turn-3"))
    log.append(TurnStartRow("turn-one"))
    log.append(TurnStartRow("turn-²"))
    assert log.next_turn_id() == "turn-8"


def test_messages_and_sizes_are_those_of_the_rows(make_log: MakeLog) -> None:
    log = make_log()
    assert isinstance(log, KeepsLedger)
    written = [
        UserRow("hi"),
        AssistantRow("Let me see."),
        ToolCallRow("a", "t", {"n": 1}),
        ToolCallRow("b", "t", {"n": 2}),
        ToolResultRow("b", 2),
        UserRow("well?"),
    ]
    for count, row in enumerate(written, 1):
        log.append(row)
        assert log.derive_messages() == derive(written[:count])
        ledger = Ledger()
        ledger.extend(log.derive_messages())
        limits = (3, 40, 0.8, 2, TEXTS.trim_marker)
        assert log.ledger(message_tokens).cut(*limits) == ledger.cut(*limits)


def test_a_loop_plays_on_it(make_log: MakeLog) -> None:
    log = make_log()
    world = World([[done("Hello.")], [done("Bye.")]])
    world.log = log
    assert [play(world, "Hi"), play(world, "So long")] == [COMPLETED, COMPLETED]
    assert [m.text for m in log.derive_messages()] == ["Hi", "Hello.", "So long", "Bye."]
    assert [row.id for row in log.rows() if isinstance(row, TurnEndRow)] == ["turn-0", "turn-1"]


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    with DiskLog(tmp_path / "log") as log:
        with pytest.raises(TypeError, match=r"^'x' cannot be written: it is no row; "):
            log.append("x")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^ToolCallRow\(.* cannot be written: set is not a"):
            log.append(ToolCallRow("c1", "weather", {"city": {1}}))
        assert not log.derive_messages()


def test_a_row_that_cannot_be_written_is_not_there(tmp_path: Path) -> None:
    with DiskLog(tmp_path / "log") as log:
        with pytest.raises(TypeError, match="object is not a JSON value"):
            log.append(ToolResultRow("a", object()))
        log.append(ToolResultRow("a", 1))
    assert read_log(tmp_path / "log").rows() == (ToolResultRow("a", 1),)


# --- the same, for any rows

other_deeds = st.sampled_from(["clear", "id"])


@given(st.lists(some_rows | other_deeds, max_size=12), st.sampled_from(POLICIES))
def test_memory_disk_and_a_reader_say_the_same(deeds: list[Any], policy: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "log")
        memory = MemoryLog(policy)
        with DiskLog(path, policy, fsync="never") as disk:
            for deed in deeds:
                match deed:
                    case "clear":
                        memory.clear()
                        disk.clear()
                    case "id":
                        assert memory.next_turn_id() == disk.next_turn_id()
                    case row:
                        memory.append(row)
                        disk.append(row)
            copy = read_log(path, policy)
            for log in (disk, copy):
                assert log.rows() == memory.rows()
                assert log.derive_messages() == memory.derive_messages()
                assert len(log.ledger(message_tokens)) == len(memory.ledger(message_tokens))
            expected = memory.next_turn_id()
            assert disk.next_turn_id() == expected
            since = deeds[len(deeds) - deeds[::-1].index("clear") :] if "clear" in deeds else deeds
            # An id that was given since, and stands in no row, is not in the file.
            assert "id" in since or copy.next_turn_id() == expected


@given(st.lists(some_rows, min_size=1, max_size=6), st.integers(0, 10**6), st.booleans())
def test_a_cut_at_any_byte_leaves_the_rows_before_it(
    rows: list[Row], place: int, lost: bool
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "log")
        with DiskLog(path, fsync="never") as log:
            for row in rows:
                log.append(row)
        data = path.read_bytes()
        size = place % (len(data) + 1)
        path.write_bytes(data[:size] + bytes(9) * lost)
        # A line lacks nothing but its end where it can be read: its last byte closes it.
        whole = (data[:size] + b"\n" * (data[size : size + 1] == b"\n")).count(b"\n")
        with DiskLog(path, fsync="never") as log:
            assert log.rows()[:whole] == tuple(rows[:whole])
            assert log.rows()[whole:] == closing(rows[:whole])
            assert breaches(log.derive_messages()) == ()
        with DiskLog(path, fsync="never") as log:
            assert not log.recovery


# --- what was left open


def call(call_id: str, **more: Any) -> ToolCallRow:
    return ToolCallRow(call_id, "t", {}, **more)


def lost(call_id: str, **more: Any) -> ToolResultRow:
    return ToolResultRow(call_id, None, TEXTS.process_ended, **more)


START, END = TurnStartRow("turn-0"), TurnEndRow("turn-0", INTERRUPTED)


@pytest.mark.parametrize(
    ("rows", "rest"),
    [
        ([], []),
        ([START, END], []),
        ([START], [END]),
        ([START, call("a"), call("b")], [lost("a"), lost("b"), END]),
        ([START, call("a"), call("b"), ToolResultRow("b")], [lost("a"), END]),
        ([START, call("a"), call("a"), ToolResultRow("a")], [lost("a"), END]),
        ([START, call("a"), call("b"), call("a"), ToolResultRow("a")], [lost("b"), lost("a"), END]),
        ([START, call("a"), ToolResultRow("a"), ToolResultRow("a"), call("a")], [lost("a"), END]),
        ([START, call("a"), lost("a")], [END]),
        (
            [START, call("a"), call("b", parent_id="a"), call("b", parent_id="c")],
            [lost("a"), lost("b", parent_id="a"), lost("b", parent_id="c"), END],
        ),
        ([START, call("a"), call("a", parent_id="a"), ToolResultRow("a", parent_id="a")],
         [lost("a"), END]),
        ([call("a")], [lost("a")]),
        ([START, call("a"), END], []),
        ([START, call("a"), TurnStartRow("turn-1"), TurnEndRow("turn-1")], [END]),
        ([START, call("a"), TurnStartRow("turn-1")], [END, TurnEndRow("turn-1", INTERRUPTED)]),
    ],
)  # fmt: skip
def test_what_a_log_leaves_open_is_closed_once(rows: list[Row], rest: list[Row]) -> None:
    assert list(closing(rows)) == rest
    assert closing([*rows, *rest]) == ()


def test_the_words_of_a_result_that_was_lost_follow_policy_and_texts() -> None:
    texts = Texts(process_ended="gone", cancelled_before_execution="stopped")
    rows = [call("a")]
    assert closing(rows, SAFE, texts) == (ToolResultRow("a", None, "gone"),)
    assert closing(rows, REFERENCE, texts) == (ToolResultRow("a", None, "stopped"),)


def test_what_was_mended_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with DiskLog(path) as log:
        assert (bool(log.recovery), str(log.recovery)) == (False, "nothing to mend")
        for row in (START, UserRow("hi"), call("a"), call("b")):
            log.append(row)
    with path.open("ab") as file:
        file.write(b'{"type":"tool_res')
    with DiskLog(path, texts=Texts(process_ended="gone")) as log:
        assert str(log.recovery) == (
            f"took away 17 bytes of a torn line, kept in {path.as_posix()}.torn; "
            "answered a, b in the tools' place; ended turn-0 as interrupted"
        )
        assert log.derive_messages()[-1] == tool_result("b", "Error: gone", is_error=True)
    assert Path(log.recovery.kept_in).read_bytes() == b'{"type":"tool_res\n'


def test_what_was_cleared_stays_in_the_file_and_is_not_mended(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with DiskLog(path) as log:
        log.append(TurnStartRow(log.next_turn_id()))
        log.next_turn_id()
        log.clear()
    before = path.read_text()
    assert before == '{"type":"turn_start","id":"turn-0"}\n{"type":"log_cleared","turns":2}\n'
    with DiskLog(path) as log:
        assert not log.recovery
        assert log.next_turn_id() == "turn-2"
    assert path.read_text() == before


# --- when rows are on the disk


class Syncs:
    """Counts what is forced to the disk, and at which row."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files = 0
        self.folders = 0
        monkeypatch.setattr("os.fsync", self.fsync)

    def fsync(self, descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self.folders += 1
        else:
            self.files += 1


@pytest.mark.parametrize(("policy", "syncs"), [("always", 17), ("turn", 3), ("never", 0)])
def test_rows_are_forced_to_the_disk_when_the_policy_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Any, syncs: int
) -> None:
    path = tmp_path / "log"
    counted = Syncs(monkeypatch)
    with DiskLog(path, fsync=policy) as log:
        play_two_turns(log)
    assert counted.files == syncs
    data = path.read_bytes()
    lines = data.count(b"\n")
    assert lines == 17
    path.write_bytes(data[:-5])
    with DiskLog(path, fsync=policy):
        assert counted.files == syncs + (policy != "never")


@pytest.mark.parametrize(("policy", "syncs"), [("always", 1), ("turn", 1), ("never", 0)])
def test_the_name_of_a_new_file_is_forced_to_the_disk_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Any, syncs: int
) -> None:
    counted = Syncs(monkeypatch)
    for _ in range(2):
        with DiskLog(tmp_path / "log", fsync=policy) as log:
            log.append(UserRow("hi"))
    assert counted.folders == syncs


def test_a_row_is_synced_after_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    sizes: list[int] = []
    with DiskLog(path, fsync="always") as log:
        monkeypatch.setattr("os.fsync", lambda _descriptor: sizes.append(path.stat().st_size))
        log.append(UserRow("hi"))
    assert sizes == [path.stat().st_size]


def test_an_unknown_policy_is_the_callers_mistake(tmp_path: Path) -> None:
    wrong: Any = "turns"
    with pytest.raises(UsageError, match="unknown fsync policy 'turns'"):
        DiskLog(tmp_path / "log", fsync=wrong)
    assert list(tmp_path.iterdir()) == []
