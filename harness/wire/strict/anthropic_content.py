"""What Anthropic refuses of messages, whatever they call or reason."""

from __future__ import annotations

from collections.abc import Iterator

from harness.core.json_text import Json
from harness.core.tokens import text_tokens
from harness.wire.anthropic_words import NEWER
from harness.wire.strict.anthropic_turns import (
    blocks_of,
    generation,
    messages_in,
    turns_of,
)
from harness.wire.strict.rule import Breach, Case

_SAMPLING = ("temperature", "top_p", "top_k")
_SMALL, _LARGE = 200_000, 1_000_000
_OPAQUE = frozenset({"source", "signature", "data", "cache_control"})
"""Members that are not counted as text: pictures, and what nobody reads."""


def has_prefill(case: Case) -> bool:
    """Whether a model goes on with words that are put in its mouth."""
    return generation(case.model) < (4, 6)


def blank(case: Case) -> Breach | None:
    """A8: a block of text that says nothing."""
    for role in ("user", "assistant"):
        for block in blocks_of(case, role):
            if block.kind == "text" and not block.text("text").strip():
                what = "contain non-whitespace text" if block.text("text") else "be non-empty"
                return Breach(f"messages: text content blocks must {what}")
    return None


def empty(case: Case) -> Breach | None:
    """A9: a message without content, that is not the last one and the model's."""
    messages = messages_in(case)
    for number, message in enumerate(messages):
        last = number == len(messages) - 1 and message.get("role") == "assistant"
        if message.get("content") in ("", []) and not last:
            must = "all messages must have non-empty content"
            return Breach(
                f"messages.{number}: {must} except for the optional final assistant message"
            )
    return None


def no_messages(case: Case) -> Breach | None:
    """A10: no conversation at all."""
    if messages_in(case):
        return None
    return Breach("messages: at least one message is required")


def prefilled(case: Case) -> Breach | None:
    """A11: the model's own words are the last ones, and it was not paused while it used a tool of
    the provider's.
    """
    turns = turns_of(case)
    if turns and turns[-1].role == "assistant" and not turns[-1].of("server_tool_use"):
        must = "The conversation must end with a user message."
        return Breach(f"This model does not support assistant message prefill. {must}")
    return None


def trailing_space(case: Case) -> Breach | None:
    """A12: words put in the model's mouth that end with white space."""
    turns = turns_of(case)
    if turns and turns[-1].role == "assistant" and turns[-1].blocks:
        text = turns[-1].blocks[-1].text("text")
        if text != text.rstrip():
            return Breach("messages: final assistant content cannot end with trailing whitespace")
    return None


def newer_version(case: Case) -> bool:
    """Whether the newer version of the protocol is spoken."""
    return case.version >= NEWER


def given_up(case: Case) -> Breach | None:
    """A18: what the newer version has no longer."""
    for key in _SAMPLING:
        if case.body.get(key) is not None:
            return Breach(f"{key}: Extra inputs are not permitted")
    for block in blocks_of(case, "assistant"):
        if block.kind == "document":
            return Breach(f"{block.place}: `document` blocks cannot be in `assistant` messages")
    for block in blocks_of(case, "user"):
        if block.kind == "text" and block.value.get("citations"):
            return Breach(f"{block.place}.text.citations: Extra inputs are not permitted")
    return None


def no_temperature(case: Case) -> Breach | None:
    """A18.model: models that have no temperature allow the usual one only."""
    if case.body.get("temperature") in (None, 1) or generation(case.model) < (4, 7):
        return None
    return Breach("`temperature` is deprecated for this model.")


def system_inside(case: Case) -> Breach | None:
    """A19: a message of the role ``system``, where the model knows none, or not after a user's."""
    before = ""
    for turn in turns_of(case):
        if turn.role == "system" and generation(case.model) < (4, 8):
            return Breach("role 'system' is not supported on this model")
        if turn.role == "system" and before != "user":
            return Breach(f"messages.{turn.last}: role 'system' must come after a user message")
        before = turn.role
    return None


def too_long(case: Case) -> Breach | None:
    """A21: more than the model can hold, as `harness.core.tokens` counts it."""
    limit = _SMALL if generation(case.model) < (4, 6) else _LARGE
    texts = [case.body.get(key) for key in ("system", "messages", "tools")]
    count = int(sum(text_tokens(text) for text in _texts(texts)))
    if count > limit:
        return Breach(f"prompt is too long: {count} tokens > {limit} maximum")
    more = case.body.get("max_tokens")
    if isinstance(more, int) and count + more > limit:
        exceed = "input length and `max_tokens` exceed context limit"
        return Breach(f"{exceed}: {count} + {more} > {limit}")
    return None


def _texts(value: Json) -> Iterator[str]:
    todo = [value]
    while todo:
        match todo.pop():
            case str(text):
                yield text
            case list(items):
                todo += items
            case dict(members):
                todo += [item for key, item in members.items() if key not in _OPAQUE]
            case _:
                pass
