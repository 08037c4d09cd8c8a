"""Vectors of the FSM loop's pure helpers: a function's name and arguments in, its value out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.core.json_text import Json
from harness.loops.fsm import context, tokens, transcript
from harness.loops.fsm.messages import Message, ToolCall, wire
from harness.loops.fsm.prompts import Texts
from harness.loops.fsm.session import Settings
from harness.loops.fsm.tools import sanitised
from harness.runner.conform.common import VectorTexts, difference, only_keys


def check(vector: Json, texts: VectorTexts) -> str | None:
    """Call the vector's function."""
    only_keys(vector, {"fn", "args", "expected"}, "the vector")
    function = _FUNCTIONS.get(vector["fn"])
    if function is None:
        raise ValueError(f"unknown function {vector['fn']!r}; known: {', '.join(_FUNCTIONS)}")
    return difference(vector["expected"], function(vector["args"], texts.fsm))


def _salvaged(args: Json, _texts: Texts) -> Json:
    messages = [_message(value) for value in args[0]]
    kept = context.salvage(messages)
    same = all(one is other for one, other in zip(messages, kept, strict=False))
    return len(kept) if same else None


def _calibrated(args: Json, _texts: Texts) -> Json:
    raw, reported, probe = args
    calibrator = tokens.Calibrator()
    if raw is not None:
        calibrator.corrected(raw)
    for input_tokens in reported:
        calibrator.update(input_tokens, Settings().calibration)
    return [calibrator.factor, calibrator.corrected(probe)]


def _compacted(args: Json, texts: Texts) -> Json:
    messages = context.compacted(args[0], args[1], texts)
    return [[message.role, message.content, message.injected] for message in messages]


def _reasoning(args: Json, _texts: Texts) -> Json:
    message = Message("assistant", args[0], reasoning=args[1])
    return {
        "api": wire(message).get("content"),
        "text": message.text(),
        "without": message.without_reasoning(),
    }


def _message(value: Json) -> Message:
    ids = value.get("tool_calls")
    calls = None if ids is None else [ToolCall(call_id, "tool") for call_id in ids]
    return Message(value["role"], value["content"], calls, value.get("tool_call_id"))


_FUNCTIONS: Mapping[str, Callable[[Json, Texts], Json]] = {
    "sanitize_tool_result": lambda args, texts: sanitised(args[0], texts),
    "estimate_tokens": lambda args, _texts: tokens.estimate(args[0]),
    "context_window_for": lambda args, _texts: tokens.window_for(args[0]),
    "calibrate": _calibrated,
    "payload_text": lambda args, _texts: tokens.payload_text(*args),
    "estimate_payload_tokens": lambda args, _texts: tokens.payload_tokens(*args),
    "salvage_messages": _salvaged,
    "user_prompt_texts": lambda args, texts: context.kept_prompts(
        [_message(value) for value in args[0]], texts
    ),
    "compacted_messages": _compacted,
    "reasoning": _reasoning,
    "sanitize_title": lambda args, _texts: transcript.clean_title(args[0]),
    "escape_role_headers": lambda args, _texts: transcript.escape_headers(args[0]),
}
