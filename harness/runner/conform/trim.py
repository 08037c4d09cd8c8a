"""Vectors of trimming: messages and a budget in, messages and what was removed out."""

from __future__ import annotations

import math

from harness.core.json_text import Json
from harness.loops.turn.tokens import message_tokens
from harness.loops.turn.trim import trim
from harness.runner.conform.common import (
    VectorTexts,
    difference,
    message_from_json,
    message_json,
    only_keys,
)

_INPUTS = {"messages", "systemTokens", "window", "threshold", "keepRecent"}


def check(vector: Json, texts: VectorTexts) -> str | None:
    """Trim the vector's messages; those that stay must be the very same."""
    given = only_keys(vector["input"], _INPUTS, "the input")
    messages = [message_from_json(value) for value in given["messages"]]
    spelled = {id(m): value for m, value in zip(messages, given["messages"], strict=True)}
    kept, outcome = trim(
        messages,
        given["systemTokens"],
        given["window"],
        math.nan if given["threshold"] is None else given["threshold"],  # JSON has no NaN
        given["keepRecent"],
        marker=texts.texts.trim_marker,
    )
    found = {
        "messages": [spelled.get(id(message)) or message_json(message) for message in kept],
        "outcome": {
            "removedMessages": outcome.removed_messages,
            "removedTokens": outcome.removed_tokens,
            "trimmed": outcome.trimmed,
        },
        "estimate": sum([message_tokens(message) for message in messages]),
    }
    return difference(vector["expected"], found)
