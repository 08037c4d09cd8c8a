"""What both of OpenAI's protocols go by."""

from __future__ import annotations

from collections.abc import Sequence

from harness.core.messages import Message, Text, ToolCall
from harness.wire.codec import Secrets
from harness.wire.writing import text_of

SECRETS = Secrets(
    headers=frozenset({"authorization", "api-key", "openai-organization", "openai-project"})
)
"""Where requests carry what nobody must see."""


def input_of(call: ToolCall, custom: frozenset[str]) -> str:
    """What a tool is given, as the text that goes over the wire."""
    if call.raw is not None:
        return call.raw
    if call.name in custom and isinstance(call.args, str):
        return call.args
    return text_of(call.args)


def leading_of(messages: Sequence[Message]) -> int:
    """How many messages at the start make the system prompt: those of text with the role."""
    for n, message in enumerate(messages):
        if message.role != "system" or not all(isinstance(part, Text) for part in message.content):
            return n
    return len(messages)
