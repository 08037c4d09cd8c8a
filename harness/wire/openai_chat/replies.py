"""What whole and streamed replies of this protocol are made of."""

from __future__ import annotations

from typing import Any

from harness.core.json_text import Json
from harness.core.messages import Usage
from harness.wire.codec import Answer, Asked, Noise, Stopped
from harness.wire.openai_chat.history import thought_of
from harness.wire.openai_chat.tools import custom_names, written_call
from harness.wire.reading import Field

_REASONS: dict[Stopped, str] = {
    "end": "stop",
    "calls": "tool_calls",
    "length": "length",
    "filtered": "content_filter",
    "refused": "stop",
    "paused": "stop",
}


def head(asked: Asked, answer: Answer, kind: str) -> dict[str, Any]:
    """What every reply and every chunk of one says first."""
    return {
        "id": answer.id,
        "object": kind,
        "created": answer.created,
        "model": answer.model or asked.request.model,
        "service_tier": "default",
        "system_fingerprint": "fp_harness",
    }


def strange(noise: Noise) -> dict[str, Any]:
    """A field that no client knows, where there is to be one."""
    return {"x_new": {"since": "tomorrow"}} if noise.unknown else {}


def reason_of(asked: Asked, answer: Answer) -> str:
    """Why the model stopped, in its own words: a call that was forced ends with ``stop``."""
    forced = answer.stopped == "calls" and _forced(asked.options.get("tool_choice"))
    return "stop" if forced else _REASONS[answer.stopped]


def _forced(choice: Json) -> bool:
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools")
        return isinstance(allowed, dict) and allowed.get("mode") == "required"
    return choice not in (None, "auto", "none")


def written_reply(asked: Asked, answer: Answer, noise: Noise) -> dict[str, Any]:
    """The body of a whole reply."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.message.text or None,
        "refusal": answer.refusal,
        "annotations": [],
    }
    if thought := thought_of(answer.message):
        message["reasoning_content"] = thought
    if calls := answer.message.calls:
        custom = custom_names(asked.options)
        message["tool_calls"] = [written_call(call, custom) for call in calls]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": reason_of(asked, answer),
    }
    rest = {"choices": [choice], "usage": written_usage(answer.usage or Usage())}
    return head(asked, answer, "chat.completion") | rest | strange(noise)


def written_usage(usage: Usage) -> Json:
    """What was counted, with all the details that the provider tells."""
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
    """What was counted; what is left out is 0."""
    cached = _detail(field, "prompt_tokens_details", "cached_tokens")
    reasoning = _detail(field, "completion_tokens_details", "reasoning_tokens")
    prompt, completion, total = [
        field[key].integer() or 0 for key in ("prompt_tokens", "completion_tokens", "total_tokens")
    ]
    return Usage(prompt, completion, total, cached, reasoning)


def _detail(field: Field, details: str, key: str) -> int:
    return field[details][key].integer() or 0 if field.has(details) else 0
