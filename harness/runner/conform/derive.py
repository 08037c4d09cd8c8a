"""Vectors of derivation: rows in, messages out."""

from __future__ import annotations

from harness.core.json_text import Json
from harness.loops.turn.derive import derive
from harness.loops.turn.policy import REFERENCE
from harness.loops.turn.row_text import row_from_json
from harness.runner.conform.common import VectorTexts, difference, message_json


def check(vector: Json, texts: VectorTexts) -> str | None:
    """Derive messages from the vector's rows."""
    rows = [row_from_json(row) for row in vector["input"]["events"]]
    messages = derive(rows, REFERENCE, texts.texts)
    return difference(vector["expected"], {"messages": [message_json(m) for m in messages]})
