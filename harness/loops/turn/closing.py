"""What a log lacks whose process died in the middle of a turn."""

from __future__ import annotations

from collections.abc import Iterable

from harness.core.outcome import INTERRUPTED
from harness.core.rows import Row, ToolCallRow, ToolResultRow, TurnEndRow, TurnStartRow
from harness.loops.turn.config import TEXTS, Texts
from harness.loops.turn.policy import SAFE, Policy


def closing(
    rows: Iterable[Row], policy: Policy = SAFE, texts: Texts = TEXTS
) -> tuple[ToolResultRow | TurnEndRow, ...]:
    """The rows that end what `rows` leave open: a result for each call of the last turn that has
    none, in the order of the calls, and an end for each turn that has none.

    The log does not say which calls had started, so the results do not claim to know. Calls of
    earlier turns are past answering: their place is gone.

    >>> [type(row).__name__ for row in closing([TurnStartRow("t"), ToolCallRow("c", "f", {})])]
    ['ToolResultRow', 'TurnEndRow']
    """
    turns: dict[str, None] = {}
    waiting: list[ToolCallRow] = []
    for row in rows:
        match row:
            case TurnStartRow(id=turn_id):
                turns[turn_id] = None
                waiting = []
            case TurnEndRow(id=turn_id):
                turns.pop(turn_id, None)
                waiting = []
            case ToolCallRow():
                waiting.append(row)
            case ToolResultRow():
                _answer(waiting, row)
            case _:
                pass
    error = texts.process_ended if policy.results_per_call else texts.cancelled_before_execution
    results = [ToolResultRow(call.id, None, error, call.parent_id) for call in waiting]
    return (*results, *[TurnEndRow(turn_id, INTERRUPTED) for turn_id in turns])


def _answer(waiting: list[ToolCallRow], result: ToolResultRow) -> None:
    """Take out the first call that `result` answers."""
    for index, call in enumerate(waiting):
        if (call.id, call.parent_id) == (result.id, result.parent_id):
            del waiting[index]
            return
