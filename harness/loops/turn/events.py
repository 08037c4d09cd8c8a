"""What a turn writes down and what it tells its consumer, made in one place.

Where one happening has both a row and an event, one builder makes the two from the same values, so
that log and event stream cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from harness.core.json_text import Json, well_formed
from harness.core.messages import Message, Thinking, ToolCall
from harness.core.outcome import Outcome
from harness.core.rows import AssistantRow, ThinkingRow, ToolCallRow, ToolResultRow, TurnEndRow
from harness.loops.turn.registry import ToolOutput


class TextTold(Struct, frozen=True):
    """A piece of the reply's text came."""

    delta: str


class ThinkingTold(Struct, frozen=True):
    """A piece of the model's reasoning came."""

    delta: str


class CallTold(Struct, frozen=True):
    """The model asked for a tool."""

    id: str
    name: str
    args: Json


class ResultTold(Struct, frozen=True):
    """A call was answered; `ok` where there is no error, not even an empty one."""

    call_id: str
    ok: bool
    value: Json
    render: str | None
    error: str | None
    decision: str | None
    """The tag of the decision on it."""


class DoneTold(Struct, frozen=True):
    """The reply is whole."""

    text: str
    calls: tuple[CallTold, ...]


class EndTold(Struct, frozen=True):
    """The turn has ended; nothing follows."""

    outcome: Outcome


TurnEvent: TypeAlias = TextTold | ThinkingTold | CallTold | ResultTold | DoneTold | EndTold


def burst(deltas: Iterable[str]) -> ThinkingRow:
    """The row of one contiguous burst of reasoning, whose deltas were told one by one."""
    return ThinkingRow(well_formed("".join(deltas)))


def reply(texts: Iterable[str], signed: Sequence[Thinking]) -> AssistantRow:
    """The row of a whole reply's text, with the reasoning that was signed."""
    text = well_formed("".join(texts))
    return AssistantRow(text, tuple(signed)) if signed else AssistantRow(text)


def done(message: Message) -> DoneTold:
    """The event of a whole reply; its text and calls become rows only if the turn goes on."""
    calls = tuple([CallTold(call.id, call.name, call.args) for call in message.calls])
    return DoneTold(well_formed(message.text), calls)


def called(call: ToolCall) -> tuple[ToolCallRow, CallTold]:
    """The model asked for a tool."""
    row = ToolCallRow(call.id, call.name, call.args)
    if call.raw is not None:
        row = ToolCallRow(call.id, call.name, call.args, raw=call.raw)
    return row, CallTold(call.id, call.name, call.args)


def answered(call_id: str, output: ToolOutput) -> tuple[ToolResultRow, ResultTold]:
    """The call `call_id` came to `output`."""
    value, error, decision = output.value, output.error, output.decision
    label = None if decision is None else str(decision.__struct_config__.tag)
    told = ResultTold(call_id, error is None, value, output.render, error, label)
    return ToolResultRow(call_id, value, error), told


def ended(turn_id: str, outcome: Outcome) -> tuple[TurnEndRow, EndTold]:
    """The turn came to its terminal state."""
    return TurnEndRow(turn_id, outcome), EndTold(outcome)
