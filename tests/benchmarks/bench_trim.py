"""How long trimming takes: a history read for the first time, and one message more.

Run it by hand: ``python tests/benchmarks/bench_trim.py``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from harness.core.messages import Message, Text, ToolCall
from harness.core.rows import AssistantRow, Row, ToolCallRow, ToolResultRow, UserRow
from harness.loops.turn.config import TEXTS
from harness.loops.turn.log import MemoryLog
from harness.loops.turn.tokens import message_tokens
from harness.loops.turn.trim import trim

WINDOW, THRESHOLD, KEEP = 65536, 0.8, 10
TEXT = "A sentence of the length that people write when they talk to an agent, or it to them. " * 3


def history(size: int) -> list[Message]:
    """Turns of four: a question, a call, its result, an answer."""
    messages: list[Message] = []
    for n in range(0, size, 4):
        call = ToolCall(f"call_{n}", "read_file", {"path": f"/srv/data/{n}.txt", "lines": 40})
        messages += [
            Message("user", (Text(TEXT),)),
            Message("assistant", (call,)),
            Message("tool", (Text(TEXT),), call.id),
            Message("assistant", (Text(TEXT),)),
        ]
    return messages


def rows(size: int) -> list[Row]:
    """The same as rows of a log."""
    written: list[Row] = []
    for n in range(0, size, 4):
        args = {"path": f"/srv/data/{n}.txt", "lines": 40}
        written += [
            UserRow(TEXT),
            ToolCallRow(f"call_{n}", "read_file", args),
            ToolResultRow(f"call_{n}", TEXT),
            AssistantRow(TEXT),
        ]
    return written


def milliseconds(work: Callable[[], object], times: int = 3) -> float:
    """The best of a few runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def main() -> None:
    """Print one line a size."""
    for size in (1_000, 10_000, 100_000):
        messages = history(size)
        log = MemoryLog(rows=rows(size))
        cold = milliseconds(lambda given=messages: trim(given, 50, WINDOW, THRESHOLD, KEEP))
        log.ledger(message_tokens)

        def one_more(grown: MemoryLog = log) -> None:
            grown.append(UserRow(TEXT))
            ledger = grown.ledger(message_tokens)
            ledger.cut(50, WINDOW, THRESHOLD, KEEP, TEXTS.trim_marker)

        warm = milliseconds(one_more, 20)
        whole = milliseconds(lambda grown=log: grown.derive_messages())
        sys.stdout.write(
            f"{size:>7} messages: cold {cold:8.2f} ms, one more {warm * 1000:7.1f} us, "
            f"the list as a tuple {whole * 1000:7.1f} us\n"
        )


if __name__ == "__main__":
    main()
