"""What whole and streamed replies of this protocol are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.core.json_text import Json
from harness.core.messages import Block, Image, Message, ToolCall, Usage
from harness.wire.anthropic.blocks import written_block
from harness.wire.codec import Answer, Noise, Stopped
from harness.wire.reading import Field

_REASONS: dict[Stopped, str] = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "filtered": "refusal",
    "refused": "refusal",
    "paused": "pause_turn",
}
_STOPPED: dict[str, Stopped] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
    "pause_turn": "paused",
}
_DIRECT = {"type": "direct"}


def head(answer: Answer) -> dict[str, Any]:
    """A message without content, reason and usage."""
    return {
        "id": answer.id,
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
    }


def strange(noise: Noise) -> dict[str, Any]:
    """A member that no client knows, where such noise is on."""
    return {"x_new": {"since": "tomorrow"}} if noise.unknown else {}


def spoken(message: Message) -> list[Block]:
    """The blocks of a reply: models draw no pictures here."""
    return [block for block in message.content if not isinstance(block, Image)]


def replied_block(block: Block) -> dict[str, Any]:
    """A whole block of a reply."""
    written = written_block(block)
    return {**written, "caller": _DIRECT} if isinstance(block, ToolCall) else written


def ending(answer: Answer) -> dict[str, Any]:
    """Why the model stopped."""
    reason = "refusal" if answer.refusal is not None else _REASONS[answer.stopped]
    details: Json = None
    if reason == "refusal" and answer.stopped != "filtered":
        details = {"type": "refusal", "category": None, "explanation": answer.refusal}
    return {"stop_reason": reason, "stop_sequence": None, "stop_details": details}


def written_usage(usage: Usage) -> dict[str, Any]:
    """The counts of a reply; what came from the cache is not among the input's."""
    counts: dict[str, Any] = {
        "input_tokens": max(usage.prompt_tokens - usage.cache_read, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.completion_tokens,
    }
    if usage.reasoning_tokens:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counts


def first_usage(usage: Usage, output: int) -> dict[str, Any]:
    """The counts as a message has them, with this many tokens of output."""
    return written_usage(usage) | {
        "output_tokens": output,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
        "inference_geo": "not_available",
    }


def usage_of(field: Field) -> Usage:
    """The counts, those of the cache among the prompt's."""
    cached = field["cache_read_input_tokens"].integer() or 0
    created = field["cache_creation_input_tokens"].integer() or 0
    prompt = (field["input_tokens"].integer() or 0) + cached + created
    output = field["output_tokens"].integer() or 0
    thought = 0
    if field.has("output_tokens_details"):
        thought = field["output_tokens_details"]["thinking_tokens"].integer() or 0
    return Usage(prompt, output, prompt + output, cached, thought)


def answered(
    head: Field, content: Iterable[Block | None], ending: Field, usage: Usage | None
) -> Answer:
    """The reply of these blocks; a reason that nobody knows is the usual one."""
    message = Message("assistant", tuple([block for block in content if block is not None]))
    usual: Stopped = "calls" if message.calls else "end"
    reason = ending["stop_reason"].text() if ending.has("stop_reason") else ""
    stopped = _STOPPED.get(reason, usual)
    refusal = None
    if stopped == "refused" and not ending.has("stop_details"):
        stopped = "filtered"  # nothing is said of why: what there is, is what a filter left of it
    if ending.has("stop_details") and ending["stop_details"].has("explanation"):
        refusal = ending["stop_details"]["explanation"].text()
    reply_id = head["id"].text() if head.has("id") else ""
    model = head["model"].text() if head.has("model") else ""
    return Answer(message, usage, stopped, refusal, reply_id, model)
