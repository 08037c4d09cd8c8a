"""A run that writes every kind of row to a log on disk; as a program, one that waits to be killed.

``python -m tests.loops.turn.disk_runs FILE ROWS`` plays it and stops for good after ROWS rows: it
says so in a line, then waits for input that never comes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.core.messages import Message, Text, Thinking, ToolCall
from harness.core.outcome import COMPLETED
from harness.core.reply import ReplyDone, ThinkingDelta
from harness.core.rows import Row
from harness.loops.turn.disk_log import DiskLog
from harness.loops.turn.policy import SAFE, Policy
from tests.loops.turn.world import World, done, play

CLOCK = ToolCall("c1", "clock", {"zone": "Zürich"})
WEATHER = ToolCall("c2", "weather", {"city": "東京", "odd": "\ud800"})
LATE = ToolCall("c3", "clock", None, raw='{"zone": ')


def three_steps(log: DiskLog, policy: Policy = SAFE) -> World:
    """A turn of three steps with two tools, not played yet."""
    looks = Message("assistant", (Thinking("Hm.", "sig"), Text("Moment…"), CLOCK, WEATHER))
    steps = [
        [ThinkingDelta("What is "), ThinkingDelta("the time 🕰?"), ReplyDone(looks)],
        [done("", LATE)],
        [done("Noon, and sunny ☀.")],
    ]
    world = World(steps, {"c1": "12:00", "c2": ValueError("no such city: 東京")}, policy=policy)
    world.log = log
    return world


def play_two_turns(log: DiskLog, policy: Policy = SAFE) -> None:
    """A turn of one step, a clear, and a turn of three steps."""
    first = World([[done("Hello.")]], policy=policy)
    first.log = log
    assert play(first, "Hi 👋") == COMPLETED
    log.clear()
    assert play(three_steps(log, policy), "Time and weather?") == COMPLETED


class StopsAfter(DiskLog):
    """A log whose process waits for good after a number of rows."""

    rows_left = 0

    def append(self, row: Row) -> None:
        super().append(row)
        self.rows_left -= 1
        if self.rows_left == 0:
            print("waiting", flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    log = StopsAfter(Path(sys.argv[1]))
    log.rows_left = int(sys.argv[2])
    play_two_turns(log)
