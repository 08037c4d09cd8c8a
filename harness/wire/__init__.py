"""How a provider spells a conversation: bytes on one side, the neutral form on the other."""

from __future__ import annotations

from harness.wire.anthropic.codec import Anthropic
from harness.wire.codec import Codec
from harness.wire.openai_chat.codec import OpenAIChat

CODECS: tuple[Codec, ...] = (OpenAIChat(), Anthropic())
"""The protocols that are known."""
