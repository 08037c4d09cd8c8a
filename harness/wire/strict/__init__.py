"""What providers refuse of a history, as rules: answered with the provider's own 400."""

from __future__ import annotations

from collections.abc import Mapping

from harness.wire.strict import openai_chat
from harness.wire.strict.rule import Rule

RULES: Mapping[str, tuple[Rule, ...]] = {
    "openai_chat": openai_chat.RULES,
    "deepseek": openai_chat.DEEPSEEK,
}
"""The rules of a provider, by the name of its protocol, or its own where it speaks another's."""
