"""How long a log on disk takes: a row written, by fsync policy, and a file opened.

Run it by hand: ``python tests/benchmarks/bench_disk_log.py``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.core.rows import (
    AssistantRow,
    Row,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)
from harness.loops.turn.disk_log import DiskLog, Fsync, read_log
from harness.loops.turn.log import MemoryLog

TEXT = "A sentence of the length that people write when they talk to an agent, or it to them. " * 3


def rows(size: int) -> Iterator[Row]:
    """Turns of six rows: a question, a call, its result, an answer."""
    turn = (
        TurnStartRow("turn-0"),
        UserRow(TEXT),
        ToolCallRow("call_1", "read_file", {"path": "/srv/data/1.txt", "lines": 40}),
        ToolResultRow("call_1", TEXT),
        AssistantRow(TEXT),
        TurnEndRow("turn-0"),
    )
    return islice(cycle(turn), size)


def write(log: MemoryLog, size: int) -> float:
    """Microseconds a row."""
    start = time.perf_counter()
    for row in rows(size):
        log.append(row)
    return (time.perf_counter() - start) / size * 1e6


def main() -> None:
    """Print one line a size and policy."""
    runs: list[tuple[int, Fsync]] = [
        (1_000, "never"),
        (10_000, "never"),
        (100_000, "never"),
        (10_000, "turn"),
        (1_000, "always"),
    ]
    sys.stdout.write(f"in memory: {write(MemoryLog(), 10_000):.1f} us a row\n")
    for size, fsync in runs:
        with TemporaryDirectory() as folder:
            path = Path(folder, "log")
            with DiskLog(path, fsync=fsync) as log:
                written = write(log, size)
            start = time.perf_counter()
            read_log(path)
            read = (time.perf_counter() - start) / size * 1e6
        sys.stdout.write(
            f"{size:>7} rows, fsync {fsync:<6}: {written:8.1f} us a row written, "
            f"{read:6.1f} us a row read\n"
        )


if __name__ == "__main__":
    main()
