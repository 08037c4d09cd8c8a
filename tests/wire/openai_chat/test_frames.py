"""The exact frames and bodies that are sent."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.json_text import Json, loads
from harness.core.messages import Message, Text, Thinking, ToolCall, Usage
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyInterrupted,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.wire.codec import QUIET, Answer, Asked, Failure, Limit, Noise, Stopped
from harness.wire.http import retry_after, should_retry
from tests.wire.openai_chat.making import ASKED, CODEC, COUNTED, sent

CALLS = (ToolCall("call_0", "f", {"a": 1}), ToolCall("call_1", "g", {}))
HEAD = {
    "id": "c1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "service_tier": "default",
    "system_fingerprint": "fp_harness",
}


def answer_of(*content: Any, stopped: Stopped = "end", **more: Any) -> Answer:
    return Answer(Message("assistant", content), stopped=stopped, id="c1", created=1, **more)


def chunks(
    answer: Answer, parts: list[ReplyPart], asked: Asked = ASKED, noise: Noise = QUIET
) -> list[Json]:
    """The chunks of a stream that ends as it must."""
    *frames, done = sent(asked, answer, [*parts, ReplyDone(answer.message)], noise=noise)
    assert done == b"data: [DONE]\n\n"
    assert all(frame.startswith(b"data: {") and frame.endswith(b"}\n\n") for frame in frames)
    return [loads(frame[6:]) for frame in frames]


def deltas(answer: Answer, parts: list[ReplyPart], asked: Asked = ASKED) -> list[Json]:
    """What differs between the chunks: the delta, and why it stopped."""
    found = []
    for chunk in chunks(answer, parts, asked):
        (choice,) = chunk["choices"]
        assert chunk == {**HEAD, "choices": [choice]}
        assert choice == {**choice, "index": 0, "logprobs": None}
        found.append(choice["finish_reason"] or choice["delta"])
    return found


def call(index: int, **rest: Json) -> Json:
    return {"tool_calls": [{"index": index, **rest}]}


ROLE = {"role": "assistant", "content": "", "refusal": None}


def test_text_then_two_calls() -> None:
    answer = answer_of(Text("Hi"), *CALLS, stopped="calls")
    assert deltas(answer, [TextDelta("Hi")]) == [
        ROLE,
        {"content": "Hi"},
        call(0, id="call_0", type="function", function={"name": "f", "arguments": ""}),
        call(0, function={"arguments": '{"a": 1}'}),
        call(1, id="call_1", type="function", function={"name": "g", "arguments": ""}),
        call(1, function={"arguments": "{}"}),
        "tool_calls",
    ]


def test_a_call_alone_begins_with_the_role() -> None:
    first, *rest = deltas(answer_of(CALLS[1], stopped="calls"), [])
    head = {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": ""}}
    assert first == {"role": "assistant", "content": None, **call(0, **head)}
    assert rest == [call(0, function={"arguments": "{}"}), "tool_calls"]


def test_thoughts_come_first_and_nothing_is_said_by_an_empty_reply() -> None:
    answer = answer_of(Thinking("Hm"), Text("Hi"))
    parts: list[ReplyPart] = [ThinkingDelta("Hm"), TextDelta("Hi"), UsageReport(Usage(1))]
    assert deltas(answer, parts) == [ROLE, {"reasoning_content": "Hm"}, {"content": "Hi"}, "stop"]
    assert deltas(answer_of(), []) == [ROLE, "stop"]


def test_a_refusal() -> None:
    answer = answer_of(stopped="refused", refusal="I cannot.")
    assert deltas(answer, []) == [ROLE, {"refusal": "I cannot."}, "stop"]
    body = loads(CODEC.answer(ASKED, answer).body)
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": None,
        "refusal": "I cannot.",
        "annotations": [],
    }


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (None, "tool_calls"),
        ("auto", "tool_calls"),
        ("required", "stop"),
        ({"type": "function", "function": {"name": "f"}}, "stop"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}, "tool_calls"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required"}}, "stop"),
    ],
)
def test_a_call_that_was_forced_ends_with_stop(choice: Json, reason: str) -> None:
    answer = answer_of(*CALLS, stopped="calls")
    assert deltas(answer, [], replace(ASKED, options={"tool_choice": choice}))[-1] == reason


@pytest.mark.parametrize(
    ("stopped", "reason"),
    [("length", "length"), ("filtered", "content_filter"), ("paused", "stop")],
)
def test_other_ends(stopped: Stopped, reason: str) -> None:
    assert deltas(answer_of(Text("Hi"), stopped=stopped), [TextDelta("Hi")])[-1] == reason


def test_custom_tools_take_text() -> None:
    tools = [{"type": "custom", "custom": {"name": "f"}}]
    asked = replace(ASKED, options={"tools": tools})
    answer = answer_of(ToolCall("call_0", "f", "ls -l"), CALLS[1], stopped="calls")
    first, fragment, *_ = deltas(answer, [], asked)
    assert first["tool_calls"] == [
        {"index": 0, "id": "call_0", "type": "custom", "custom": {"name": "f", "input": ""}}
    ]
    assert fragment == call(0, custom={"input": "ls -l"})
    frames = sent(asked, answer, [ReplyDone(answer.message)])
    decoder = CODEC.decoder()
    decoder.feed(b"".join(frames))
    whole = CODEC.answer(asked, answer)
    assert decoder.end().message == CODEC.read_answer(whole).message == answer.message


def test_usage_is_told_only_to_who_asks_for_it() -> None:
    usage = Usage(9, 5, 0, 2, 1)
    answer = answer_of(Text("Hi"), usage=usage)
    *before, last = chunks(answer, [TextDelta("Hi")], COUNTED)
    assert [chunk["usage"] for chunk in before] == [None] * 3
    counted = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 1,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    assert last == {**HEAD, "choices": [], "usage": counted}
    assert loads(CODEC.answer(ASKED, answer).body)["usage"] == counted
    odd = replace(ASKED, options={"stream_options": "yes"})
    assert all("usage" not in chunk for chunk in chunks(answer, [TextDelta("Hi")], odd))


def test_a_whole_reply() -> None:
    answer = answer_of(Thinking("Hm"), Text("Hi"), *CALLS, stopped="calls", model="m-2026")
    response = CODEC.answer(ASKED, answer, Noise(unknown=True))
    assert (response.status, response.header("content-type")) == (200, "application/json")
    body = loads(response.body)
    usage = body.pop("usage")
    assert usage["total_tokens"] == 0
    function = [{"name": "f", "arguments": '{"a": 1}'}, {"name": "g", "arguments": "{}"}]
    assert body == {
        **HEAD,
        "object": "chat.completion",
        "model": "m-2026",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hi",
                    "refusal": None,
                    "annotations": [],
                    "reasoning_content": "Hm",
                    "tool_calls": [
                        {"id": f"call_{n}", "type": "function", "function": function[n]}
                        for n in (0, 1)
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "x_new": {"since": "tomorrow"},
    }


def test_noise() -> None:
    answer = answer_of(Text("Hi"))
    loud = Noise(obfuscation=True, pings=True, unknown=True)
    done: list[ReplyPart] = [TextDelta("Hi"), ReplyDone(answer.message)]
    frames = sent(COUNTED, answer, done, noise=loud)
    assert frames.pop(1) == b": keep-alive\n\n"
    found = [loads(frame[6:]) for frame in frames[:-1]]
    assert all(chunk["obfuscation"].strip("x") == "" for chunk in found)
    assert len({len(chunk["obfuscation"]) for chunk in found}) > 1
    assert all(chunk["x_new"] for chunk in found)
    plain = replace(ASKED, options={"stream_options": {"include_obfuscation": False}})
    assert all(
        "obfuscation" not in chunk
        for chunk in chunks(answer, [], plain, replace(loud, pings=False))
    )


def test_a_failure_in_the_middle() -> None:
    encoder = CODEC.encoder(ASKED, answer_of(Text("Hi")))
    told = {"message": "Overloaded", "type": "server_error", "param": None, "code": None}
    (frame,) = encoder.failure(Failure(503, "Overloaded"))
    assert loads(frame[6:]) == {"error": told}
    assert list(encoder.part(ReplyFailed("stream", "Overloaded"))) == [frame]
    assert list(encoder.part(ReplyInterrupted())) == []


@pytest.mark.parametrize(
    ("failure", "kind", "code"),
    [
        (Failure(400, "no"), "invalid_request_error", None),
        (
            Failure(400, "no", code="context_length_exceeded"),
            "invalid_request_error",
            "context_length_exceeded",
        ),
        (Failure(401, "no"), "invalid_request_error", "invalid_api_key"),
        (Failure(404, "no"), "invalid_request_error", "model_not_found"),
        (Failure(429, "no"), "requests", "rate_limit_exceeded"),
        (
            Failure(429, "no", "insufficient_quota", "insufficient_quota"),
            "insufficient_quota",
            "insufficient_quota",
        ),
        (Failure(500, "no"), "server_error", None),
    ],
)
def test_a_failure_as_its_status_has_it(failure: Failure, kind: str, code: str | None) -> None:
    response = CODEC.failure(failure)
    told = {"message": "no", "type": kind, "param": None, "code": code}
    assert (response.status, loads(response.body)) == (failure.status, {"error": told})


def test_headers() -> None:
    limits = [Limit("requests", 60, 59, 0.12), Limit("tokens", 1000, 10, 50.529)]
    assert CODEC.headers("req_1", limits) == (
        ("x-request-id", "req_1"),
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-reset-requests", "120ms"),
        ("x-ratelimit-limit-tokens", "1000"),
        ("x-ratelimit-remaining-tokens", "10"),
        ("x-ratelimit-reset-tokens", "50.529s"),
    )
    asks = (*retry_after(3), *should_retry(True))
    response = CODEC.failure(Failure(429, "Slow down", headers=asks))
    assert (response.header("Retry-After"), response.header("x-should-retry")) == ("3", "true")
    assert CODEC.stream_type().startswith("text/event-stream")
