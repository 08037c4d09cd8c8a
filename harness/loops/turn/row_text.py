"""Rows of a session log as lines of JSON: how a log is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import asdict

from harness.core import json_text
from harness.core.errors import unknown
from harness.core.json_text import Json
from harness.core.located import shortened
from harness.core.messages import Image, Thinking
from harness.core.outcome import COMPLETED, Error, Outcome, outcome_name
from harness.core.rows import (
    ROW_KINDS,
    AssistantRow,
    Row,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)

_FIELDS: dict[str, tuple[str, ...]] = {
    kind: ("type", *row.__struct_fields__)
    for kind, row in zip(ROW_KINDS, get_args(Row), strict=True)
}
"""What each kind of row may hold."""

_PARTS: dict[str, type[Image | Thinking]] = {"attachments": Image, "thinking": Thinking}
"""What stands in the lists of rows."""

_NEWER = "a newer version of this package may have written it"


def write_row(row: Row) -> str:
    r"""One line, without its end: the kind first, then the fields in their order.

    >>> write_row(ToolResultRow("c1", {"b": 1, "a": 2}))
    '{"type":"tool_result","id":"c1","value":{"a":2,"b":1},"error":null}'
    """
    try:
        fields = [f"{json_text.dumps(k)}:{json_text.dumps(v)}" for k, v in row_json(row).items()]
    except TypeError as error:
        raise TypeError(f"{shortened(repr(row))} cannot be written: {error}") from None
    return "{" + ",".join(fields) + "}"


def read_row(line: str) -> Row:
    """The row of one line; ValueError where it is none."""
    return row_from_json(json_text.loads(line))


def row_json(row: Row) -> dict[str, Json]:
    """A row as a JSON object, in the order of its text; absent fields are left out."""
    match row:
        case UserRow(text=text, attachments=images):
            attached = {"attachments": list(map(asdict, images))} if images else {}
            return {"type": "user_message", "text": text, **attached}
        case AssistantRow(text=text, thinking=thinking):
            signed = {} if thinking is UNSET else {"thinking": list(map(asdict, thinking))}
            return {"type": "assistant_message", "text": text, **signed}
        case TurnStartRow() | ThinkingRow() | ToolCallRow() | ToolResultRow():
            present = {name: value for name, value in asdict(row).items() if value is not UNSET}
            return {"type": row.__struct_config__.tag, **present}
        case TurnEndRow(id=turn_id, outcome=outcome):
            return {"type": "turn_end", "id": turn_id, "outcome": outcome_json(outcome)}
        case _:
            raise TypeError(f"it is no row; expected one of the kinds {', '.join(ROW_KINDS)}")


def row_from_json(value: Json) -> Row:
    """The row that a JSON object stands for; ValueError with what is wrong where there is none.

    What this version does not know is refused, since to leave it out would lose it.
    """
    kind = _kind(value)
    if kind is None:
        raise ValueError(f"a row is a JSON object with a type, not {_shown(value)}")
    if kind not in _FIELDS:
        raise ValueError(f"{unknown('kind of row', kind, ROW_KINDS)}; {_NEWER}")
    _refuse_unknown(value, _FIELDS[kind], f"key of a {kind} row")
    for name, part in _PARTS.items():
        items = value.get(name)
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict):
                _refuse_unknown(item, part.__struct_fields__, f"key in {name}")
    fields = value
    try:
        if kind == "turn_end":
            outcome = value.get("outcome")
            read = COMPLETED if outcome is None else outcome_from_json(outcome)
            fields = {**value, "outcome": read}
        row: Row = msgspec.convert(fields, Row)
    except msgspec.ValidationError as error:
        raise ValueError(f"{_shown(value)} is not a row: {error}") from None
    return row


def outcome_json(outcome: Outcome) -> Json:
    """An outcome as a log spells it: its name, or an object for an error.

    >>> outcome_json(COMPLETED), outcome_json(Error("stream", "gone"))
    ('completed', {'error': {'kind': 'stream', 'message': 'gone'}})
    """
    if isinstance(outcome, Error):
        return {"error": {"kind": outcome.kind, "message": outcome.message}}
    return outcome_name(outcome)


def outcome_from_json(value: Json) -> Outcome:
    """The outcome that a log's spelling stands for; ValueError where it stands for none."""
    match value:
        case {"error": dict(error)}:
            _refuse_unknown(value, ("error",), "key of an outcome")
            _refuse_unknown(error, Error.__struct_fields__, "key of an error")
            fields = {**error, "type": "error"}
        case str():
            fields = {"type": value}
        case _:
            raise ValueError(f"{_shown(value)} is not an outcome")
    outcome: Outcome = msgspec.convert(fields, Outcome)
    return outcome


def _kind(value: Json) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else None


def _refuse_unknown(found: dict[str, Json], known: Sequence[str], what: str) -> None:
    for key in found:
        if key not in known:
            raise ValueError(f"{unknown(what, key, known)}; {_NEWER}")


def _shown(value: Json) -> str:
    return shortened(json_text.dumps(value))
