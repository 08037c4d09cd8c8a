"""Rows of a session log as lines of JSON: how a log is stored."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from harness.core import json_text
from harness.core.json_text import Json
from harness.core.messages import Image, Thinking
from harness.core.outcome import COMPLETED, Error, Outcome, outcome_name
from harness.core.rows import (
    AssistantRow,
    Row,
    ThinkingRow,
    ToolCallRow,
    ToolResultRow,
    TurnEndRow,
    TurnStartRow,
    UserRow,
)


def write_row(row: Row) -> str:
    r"""One line, without its end: the kind first, then the fields in their order.

    >>> write_row(ToolResultRow("c1", {"b": 1, "a": 2}))
    '{"type":"tool_result","id":"c1","value":{"a":2,"b":1},"error":null}'
    """
    fields = [f"{json_text.dumps(k)}:{json_text.dumps(v)}" for k, v in row_json(row).items()]
    return "{" + ",".join(fields) + "}"


def read_row(line: str) -> Row:
    """The row of one line; ValueError where it is none."""
    return row_from_json(json_text.loads(line))


def row_json(row: Row) -> dict[str, Json]:
    """A row as a JSON object, in the order of its text; absent fields are left out."""
    match row:
        case TurnStartRow(id=turn_id):
            return {"type": "turn_start", "id": turn_id}
        case UserRow(text=text, attachments=images):
            attached = {"attachments": [_image_json(image) for image in images]} if images else {}
            return {"type": "user_message", "text": text, **attached}
        case ThinkingRow(text=text):
            return {"type": "thinking_delta", "text": text}
        case AssistantRow(text=text, thinking=thinking):
            signed = (
                {} if thinking is UNSET else {"thinking": [_thinking_json(t) for t in thinking]}
            )
            return {"type": "assistant_message", "text": text, **signed}
        case ToolCallRow() | ToolResultRow():
            fields: dict[str, Json] = msgspec.structs.asdict(row)
            present = {name: value for name, value in fields.items() if value is not UNSET}
            return {"type": row.__struct_config__.tag, **present}
        case TurnEndRow(id=turn_id, outcome=outcome):
            return {"type": "turn_end", "id": turn_id, "outcome": outcome_json(outcome)}


def row_from_json(value: Json) -> Row:
    """The row that a JSON object stands for; ValueError with what is wrong where there is none."""
    if not isinstance(value, dict):
        raise ValueError(f"a row is a JSON object, not {json_text.dumps(value)}")
    try:
        match value.get("type"):
            case "turn_end":
                outcome = value.get("outcome")
                read = COMPLETED if outcome is None else outcome_from_json(outcome)
                return TurnEndRow(value["id"], read)
            case "user_message":
                images = [_image(item) for item in value.get("attachments", ())]
                return UserRow(value["text"], tuple(images))
            case "assistant_message" if "thinking" in value:
                signed = [_thinking(item) for item in value["thinking"]]
                return AssistantRow(value["text"], tuple(signed))
            case _:
                row: Row = msgspec.convert(value, Row)
                return row
    except KeyError as error:
        raise ValueError(f"a {value['type']} row needs {error}") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"{json_text.dumps(value)} is not a row: {error}") from None


def outcome_json(outcome: Outcome) -> Json:
    """An outcome as a log spells it: its name, or an object for an error.

    >>> outcome_json(COMPLETED), outcome_json(Error("stream", "gone"))
    ('completed', {'error': {'kind': 'stream', 'message': 'gone'}})
    """
    if isinstance(outcome, Error):
        return {"error": {"kind": outcome.kind, "message": outcome.message}}
    return outcome_name(outcome)


def outcome_from_json(value: Json) -> Outcome:
    """The outcome that a log's spelling stands for."""
    match value:
        case {"error": dict(error)}:
            fields = {**error, "type": "error"}
        case str():
            fields = {"type": value}
        case _:
            raise ValueError(f"{json_text.dumps(value)} is not an outcome")
    outcome: Outcome = msgspec.convert(fields, Outcome)
    return outcome


def _image_json(image: Image) -> Json:
    return {
        "attachment_id": image.attachment_id,
        "media_type": image.media_type,
        "width": image.width,
        "height": image.height,
    }


def _thinking_json(thinking: Thinking) -> Json:
    return {"text": thinking.text, "signature": thinking.signature}


def _thinking(value: Any) -> Thinking:
    thinking: Thinking = msgspec.convert({"type": "thinking", **value}, Thinking)
    return thinking


def _image(value: Any) -> Image:
    image: Image = msgspec.convert(value, Image)
    return image
