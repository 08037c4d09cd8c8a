"""Whatever a kill leaves of a log, the conversation goes on from every row that was written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import FileInUse
from harness.core.outcome import COMPLETED
from harness.core.pairing import breaches
from harness.core.rows import TurnStartRow
from harness.loops.turn.config import TEXTS
from harness.loops.turn.disk_log import DiskLog, read_log
from harness.loops.turn.policy import REFERENCE, SAFE, Policy
from harness.loops.turn.row_text import row_json
from tests.loops.turn.disk_runs import play_two_turns
from tests.loops.turn.world import World, done, play

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(params=[SAFE, REFERENCE], ids=["safe", "reference"])
def policy(request: pytest.FixtureRequest) -> Policy:
    return request.param


def written(path: Path, policy: Policy) -> bytes:
    """What a run of two turns writes."""
    with DiskLog(path, policy, fsync="never") as log:
        assert not log.recovery
        play_two_turns(log, policy)
    return path.read_bytes()


class Left:
    """What a kill left of a file, read without the code under test."""

    def __init__(self, data: bytes) -> None:
        lines = data.split(b"\n")
        self.torn = lines.pop()
        try:
            lines.append(json.dumps(json.loads(self.torn)).encode())
            self.torn = b""
        except ValueError:
            pass
        self.lines = [json.loads(line) for line in lines]
        kinds = [line["type"] for line in self.lines]
        cleared = len(kinds) - kinds[::-1].index("log_cleared") if "log_cleared" in kinds else 0
        self.rows = self.lines[cleared:]
        self.next_id = f"turn-{kinds.count('turn_start')}"
        self.open_turns = self.ids("turn_start", without="turn_end")
        self.open_calls = self.ids("tool_call", without="tool_result")

    def ids(self, kind: str, without: str) -> list[str]:
        gone = [row["id"] for row in self.rows if row["type"] == without]
        return [row["id"] for row in self.rows if row["type"] == kind and row["id"] not in gone]


def check_mended(log: DiskLog, data: bytes, policy: Policy) -> None:
    """Nothing that was written is lost, what was open is closed, and all of it was told."""
    left = Left(data)
    rows: list[Any] = [row_json(row) for row in log.rows()]
    assert rows[: len(left.rows)] == left.rows
    error = TEXTS.process_ended if policy is SAFE else TEXTS.cancelled_before_execution
    assert rows[len(left.rows) :] == [
        *[
            {"type": "tool_result", "id": call, "value": None, "error": error}
            for call in left.open_calls
        ],
        *[{"type": "turn_end", "id": turn, "outcome": "interrupted"} for turn in left.open_turns],
    ]
    assert log.recovery.torn == left.torn
    assert list(log.recovery.answered_calls) == left.open_calls
    assert list(log.recovery.ended_turns) == left.open_turns
    assert bool(log.recovery) == bool(left.torn or left.open_turns)
    if left.torn:
        assert Path(log.recovery.kept_in).read_bytes().endswith(left.torn + b"\n")
        assert f"took away {len(left.torn)} bytes" in str(log.recovery)
    assert breaches(log.derive_messages()) == ()


def check_goes_on(log: DiskLog, turn_id: str, policy: Policy) -> None:
    """The next turn has a new id, asks with a valid history and completes."""
    world = World([[done("On we go.")]], policy=policy)
    world.log = log
    assert play(world, "Go on") == COMPLETED
    [request] = world.model.requests
    assert breaches(request.messages) == ()
    assert request.messages[-1].text == "Go on"
    started = [row.id for row in log.rows() if isinstance(row, TurnStartRow)]
    assert started[-1] == turn_id
    assert started.count(turn_id) == 1


def test_a_kill_at_any_byte_loses_no_row_that_was_written(tmp_path: Path, policy: Policy) -> None:
    path = tmp_path / "session.jsonl"
    data = written(path, policy)
    assert len(data.decode()) < len(data), "characters of several bytes are cut too"
    kinds = {line["type"] for line in Left(data).lines}
    assert len(kinds) == 8, kinds
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        before = read_log(path, policy)
        assert path.read_bytes() == data[:size]
        if policy is SAFE:
            assert breaches(before.derive_messages()) == ()
        with DiskLog(path, policy, fsync="never") as log:
            check_mended(log, data[:size], policy)
            assert before.rows() == log.rows()[: len(before.rows())]
        mended = path.read_bytes()
        with DiskLog(path, policy, fsync="never") as log:
            assert not log.recovery
            assert path.read_bytes() == mended
            check_goes_on(log, Left(data[:size]).next_id, policy)
        assert path.read_bytes().startswith(mended)


def line_ends(data: bytes) -> Iterator[int]:
    """How long a file may be that ends with a whole line."""
    return (index + 1 for index, byte in enumerate(data) if byte == ord("\n"))


def test_a_kill_while_the_log_is_mended_is_mended_to_the_same(
    tmp_path: Path, policy: Policy
) -> None:
    path = tmp_path / "session.jsonl"
    data = written(path, policy)
    for start in line_ends(data):
        path.write_bytes(data[:start])
        DiskLog(path, policy, fsync="never").close()
        mended = path.read_bytes()
        for size in range(start, len(mended)):
            path.write_bytes(mended[:size])
            with DiskLog(path, policy, fsync="never") as log:
                check_mended(log, mended[:size], policy)
            assert path.read_bytes() == mended


def test_room_that_a_file_system_had_made_for_lost_rows_is_no_row(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    data = written(path, SAFE)
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size] + bytes(50))
        with DiskLog(path, fsync="never") as log:
            found = log.rows()
            assert log.recovery.torn.endswith(bytes(50))
        path.write_bytes(data[:size])
        with DiskLog(path, fsync="never") as log:
            assert log.rows() == found


FIRST_TURN = 4
"""The rows of the turn before the clear."""


@pytest.mark.parametrize("rows", [1, FIRST_TURN, 9, 11, 13])
def test_a_process_killed_after_a_row_leaves_it(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "session.jsonl"
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.loops.turn.disk_runs", str(path), str(rows)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"waiting\n"
        with pytest.raises(FileInUse, match=rf"session.jsonl: process {child.pid} on .* has it"):
            DiskLog(path)
        reading = len(read_log(path).rows())
        child.kill()
    assert child.returncode < 0
    data = path.read_bytes()
    with DiskLog(path) as log:
        check_mended(log, data, SAFE)
        assert reading == (rows if rows <= FIRST_TURN else rows - FIRST_TURN)
        check_goes_on(log, Left(data).next_id, SAFE)
