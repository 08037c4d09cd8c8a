"""What whole and streamed replies of this protocol are made of."""

from __future__ import annotations

import base64
from hashlib import blake2b
from typing import Any

from harness.core.messages import Message, Text, Thinking, ToolCall, Usage
from harness.wire.blockwise import said_in
from harness.wire.codec import Answer, Asked, Noise, Stopped
from harness.wire.gemini.parts import Placed, is_plain, member, placed, written_part
from harness.wire.gemini_words import signs_calls
from harness.wire.reading import Field
from harness.wire.writing import text_of

_REASONS: dict[Stopped, str] = {
    "end": "STOP",
    "calls": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "refused": "PROHIBITED_CONTENT",
    "paused": "STOP",
}
_STOPPED: dict[str, Stopped] = {
    "MAX_TOKENS": "length",
    "PROHIBITED_CONTENT": "refused",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "SPII": "filtered",
    "MALFORMED_FUNCTION_CALL": "filtered",
    "UNEXPECTED_TOOL_CALL": "filtered",
    "TOO_MANY_TOOL_CALLS": "filtered",
    "MISSING_THOUGHT_SIGNATURE": "filtered",
    "MALFORMED_RESPONSE": "filtered",
    "MODEL_ARMOR": "filtered",
}
"""Why a reply ended otherwise than with what the model wanted to say; all else is that."""


def spoken(asked: Asked, answer: Answer) -> list[Placed]:
    """The parts of a reply. A call whose arguments are no object is none; a model that signs its
    calls signs the first one also where the script does not.
    """
    content = [each for each in answer.message.content if not _is_odd(each)]
    parts = placed(Message("assistant", tuple(content)))
    if signs_calls(asked.request.model):
        for at, part in enumerate(parts):
            if isinstance(part.block, ToolCall):
                if part.signature is None:
                    parts[at] = Placed(part.block, _signature(f"{answer.id}:{part.block.id}"))
                break
    return [part for part in parts if not _is_nothing(part)]


def _ending(answer: Answer) -> dict[str, Any]:
    """Why the model stopped, as it stands beside the content of a candidate."""
    odd = [call for call in answer.message.calls if _is_odd(call)]
    if odd:
        wanted = odd[0].raw or text_of(odd[0].args)
        told = f"Malformed function call: {odd[0].name}({wanted})"
        return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": told}
    if answer.refusal is not None:
        return {"finishReason": _REASONS["refused"], "finishMessage": answer.refusal}
    reason = {"finishReason": _REASONS[answer.stopped]}
    if answer.message.calls and reason["finishReason"] == "STOP":
        reason["finishMessage"] = "Model generated function call(s)."
    return reason


def chunk(
    asked: Asked, answer: Answer, candidate: dict[str, Any], usage: Usage, noise: Noise
) -> dict[str, Any]:
    """A whole reply, or a frame of one."""
    return {
        "candidates": [{**candidate, "index": 0}],
        "usageMetadata": written_usage(usage),
        "modelVersion": answer.model or asked.request.model,
        "responseId": answer.id,
        **({"xNew": {"since": "tomorrow"}} if noise.unknown else {}),
    }


def written_usage(usage: Usage) -> dict[str, Any]:
    """The counts of a reply; what was thought is not among the candidates'."""
    counts: dict[str, Any] = {
        "promptTokenCount": usage.prompt_tokens,
        "candidatesTokenCount": max(usage.completion_tokens - usage.reasoning_tokens, 0),
        "totalTokenCount": usage.total_tokens or usage.prompt_tokens + usage.completion_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.prompt_tokens}],
    }
    if usage.reasoning_tokens:
        counts["thoughtsTokenCount"] = usage.reasoning_tokens
    if usage.cache_read:
        counts["cachedContentTokenCount"] = usage.cache_read
    return counts


def usage_of(field: Field) -> Usage:
    """The counts, those of reasoning among the completion's; what is left out is 0."""

    def count(key: str) -> int:
        return member(field, key).integer() or 0

    thought, prompt = count("thoughtsTokenCount"), count("promptTokenCount")
    completion = count("candidatesTokenCount") + thought
    total = count("totalTokenCount") or prompt + completion
    return Usage(prompt, completion, total, count("cachedContentTokenCount"), thought)


def stopped_by(reason: str, message: Message) -> Stopped:
    """Why a model stopped; a reason that nobody knows is the usual one."""
    return _STOPPED.get(reason, "calls" if message.calls else "end")


def written_reply(asked: Asked, answer: Answer, noise: Noise) -> dict[str, Any]:
    """The body of a whole reply."""
    ids = signs_calls(asked.request.model)
    parts = [written_part(part, ids=ids) for part in spoken(asked, answer)]
    candidate = closed(parts, answer)
    return chunk(asked, answer, candidate, answer.usage or Usage(), noise)


def closed(parts: list[dict[str, Any]], answer: Answer) -> dict[str, Any]:
    """The candidate with the last parts and the reason; with nothing to say it has empty text,
    and after a call that was none no content at all.
    """
    ends = _ending(answer)
    if not parts and ends["finishReason"] == "MALFORMED_FUNCTION_CALL":
        return ends
    return {**content_of(parts or [{"text": ""}]), **ends}


def content_of(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The content of a candidate."""
    return {"content": {"parts": parts, "role": "model"}}


def _is_nothing(part: Placed) -> bool:
    said = isinstance(part.block, Text | Thinking)
    return said and part.signature is None and not said_in(part.block)


def _is_odd(block: object) -> bool:
    return isinstance(block, ToolCall) and not is_plain(block)


def _signature(text: str) -> str:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=24).digest()
    return base64.b64encode(digest).decode()
