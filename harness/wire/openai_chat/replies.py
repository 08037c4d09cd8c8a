"""What whole and streamed replies of this protocol are made of."""

from __future__ import annotations

from typing import Any

from harness.core.json_text import Json
from harness.core.messages import Message, Thinking, ToolCall, Usage
from harness.wire.codec import Answer, Asked, Noise, Stopped
from harness.wire.reading import Field
from harness.wire.writing import text_of

_REASONS: dict[Stopped, str] = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "filtered": "content_filter",
    "refused": "stop",
    "paused": "stop",
}


def head(answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": answer.id,
        "object": kind,
        "created": answer.created,
        "model": answer.model,
        "service_tier": "default",
        "system_fingerprint": "fp_harness",
    }


def strange(noise: Noise) -> dict[str, Any]:
    return {"x_new": {"since": "tomorrow"}} if noise.unknown else {}


def reason_of(asked: Asked, answer: Answer) -> str:
    """Why the model stopped, in its own words: a call that was forced ends with ``stop``."""
    forced = asked.options.get("tool_choice") not in (None, "auto", "none")
    return "stop" if answer.stopped == "calls" and forced else _REASONS[answer.stopped]


def thought_of(message: Message) -> str:
    return "".join([block.text for block in message.content if isinstance(block, Thinking)])


def arguments_of(call: ToolCall) -> str:
    return text_of(call.args) if call.raw is None else call.raw


def written_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}


def written_usage(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens or usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def usage_of(field: Field) -> Usage:
    prompt = field["prompt_tokens_details"] if field.has("prompt_tokens_details") else None
    completion = (
        field["completion_tokens_details"] if field.has("completion_tokens_details") else None
    )
    return Usage(
        field["prompt_tokens"].integer() or 0,
        field["completion_tokens"].integer() or 0,
        field["total_tokens"].integer() or 0,
        0 if prompt is None else prompt["cached_tokens"].integer() or 0,
        0 if completion is None else completion["reasoning_tokens"].integer() or 0,
    )
