"""A reply is written and read the same, whole or streamed, however its bytes come."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.messages import Image, Message, Text, Thinking, ToolCall, Usage
from harness.core.reply import ReplyDone, TextDelta, ThinkingDelta, UsageReport
from harness.testing.strategies import chunkings
from harness.wire import sse
from harness.wire.codec import Answer, Asked, Failure, Garbled, Noise, ProviderError, Truncated
from harness.wire.http import Response
from tests.wire.anthropic.answers import NOISES, altered, parts_of, said
from tests.wire.gemini.answers import ASKED, BEFORE, CODEC, NEW, OLD, answers, frames

CALLS = (ToolCall("c0", "f", {"a": 1}), ToolCall("c1", "now", {}))
FULL = Answer(
    Message("assistant", (Thinking("Let me see.", "EqQB+/8="), Text("Hi"), *CALLS)),
    Usage(12, 7, 19, 3, 2),
    "calls",
    None,
    "rid",
    NEW,
)
DONE = ReplyDone(FULL.message)
UNKNOWN = Noise(unknown=True)
BOTH = st.sampled_from([(NEW, ASKED), (OLD, BEFORE)]).flatmap(
    lambda both: st.tuples(answers(both[0]), st.just(both[1]))
)


def told(sent: list[bytes]) -> list[dict[str, Any]]:
    """The data of frames."""
    assert all(frame.startswith(b"data: {") and frame.endswith(b"\r\n\r\n") for frame in sent)
    return [json.loads(each.data) for each in sse.Reader().feed(b"".join(sent))]


def parts_in(sent: list[bytes]) -> list[list[dict[str, Any]]]:
    return [each["candidates"][0]["content"]["parts"] for each in told(sent)]


def read(*sent: bytes) -> Answer:
    decoder = CODEC.decoder()
    for piece in sent:
        decoder.feed(piece)
    return decoder.end()


def frame(*parts: dict[str, Any], **rest: Any) -> bytes:
    """A frame with these parts; a candidate without content where there are none."""
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    return sse.frame(json.dumps({"candidates": [{**content, **rest}]}), end="\r\n")


def reread(answer: Answer, asked: Asked = ASKED) -> Answer:
    """What is read of a reply, whole and streamed alike."""
    whole = CODEC.read_answer(CODEC.answer(asked, answer))
    assert read(*frames(answer, [ReplyDone(answer.message)], asked=asked)) == whole
    return whole


@given(BOTH, NOISES, st.data())
def test_a_streamed_reply_is_read_from_any_pieces(
    both: tuple[Answer, Asked], noise: Noise, data: st.DataObject
) -> None:
    answer, asked = both
    sent = b"".join(frames(answer, data.draw(parts_of(answer)), noise, asked=asked))
    decoder = CODEC.decoder()
    parts = [part for piece in data.draw(chunkings(sent)) for part in decoder.feed(piece)]
    assert decoder.end() == answer
    assert said(parts, TextDelta) == answer.message.text
    thoughts = [each.text for each in answer.message.content if isinstance(each, Thinking)]
    assert said(parts, ThinkingDelta) == "".join(thoughts)
    assert [part for part in parts if isinstance(part, UsageReport)] == [UsageReport(answer.usage)]


@given(BOTH, NOISES)
def test_a_whole_reply_is_read_as_the_streamed_one(
    both: tuple[Answer, Asked], noise: Noise
) -> None:
    answer, asked = both
    assert CODEC.read_answer(CODEC.answer(asked, answer, noise)) == answer


@given(answers(), st.data())
def test_each_part_is_written_when_it_comes(answer: Answer, data: st.DataObject) -> None:
    content = [each for each in answer.message.content if not isinstance(each, ToolCall)]
    answer = replace(answer, message=Message("assistant", tuple(content)))
    parts = data.draw(parts_of(answer))
    encoder, decoder = CODEC.encoder(ASKED, answer), CODEC.decoder()
    for part in parts[:-1]:
        found = [each for frame in encoder.part(part) for each in decoder.feed(frame)]
        wanted = [part] if isinstance(part, TextDelta | ThinkingDelta) and part.text else []
        assert found == wanted


@pytest.mark.parametrize("noise", [Noise(), Noise(True, True, True)], ids=["quiet", "noisy"])
def test_a_cut_anywhere_is_told(noise: Noise) -> None:
    parts = [ThinkingDelta("Let me"), TextDelta("H"), DONE]
    sent = b"".join(frames(FULL, parts, noise))
    closed = len(sent) - 1  # the carriage return closes the frame as well
    for end in range(closed):
        with pytest.raises(Truncated, match="no finishReason"):
            read(sent[:end])
    assert read(sent[:closed]) == read(sent) == FULL
    assert read(*[bytes([byte]) for byte in sent]) == FULL


@given(BOTH, NOISES, st.data())
def test_a_cut_of_any_reply_is_told(
    both: tuple[Answer, Asked], noise: Noise, data: st.DataObject
) -> None:
    answer, asked = both
    sent = b"".join(frames(answer, [ReplyDone(answer.message)], noise, asked=asked))
    with pytest.raises(Truncated):
        read(sent[: data.draw(st.integers(0, len(sent) - 2))])


@given(st.data())
def test_a_stream_that_was_mangled_is_told_or_read(data: st.DataObject) -> None:
    """Whatever stands in it, nothing but the named errors comes of it."""
    found = told(frames(FULL, [TextDelta("H"), DONE], UNKNOWN))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(found) - 1))
        match data.draw(st.integers(0, 3)):
            case 0:
                found = found[:at] + found[at + 1 :] or found
            case 1:
                found = [*found[:at], found[at], *found[at:]]
            case 2:
                found = [*found[at:], *found[:at]]
            case _:
                found[at] = data.draw(altered(found[at]))
    sent = b"".join([sse.frame(json.dumps(each)) for each in found])
    with contextlib.suppress(Garbled, ProviderError):
        assert isinstance(read(sent), Answer)
    with contextlib.suppress(Garbled, ProviderError):
        body = json.dumps(data.draw(altered(found[-1]))).encode()
        assert isinstance(CODEC.read_answer(Response(200, (), body)), Answer)


def test_the_frames_of_a_reply() -> None:
    parts = [ThinkingDelta("Let me "), ThinkingDelta("see."), TextDelta("Hi"), DONE]

    def usage(candidates: int, total: int, **more: int) -> dict[str, Any]:
        return {
            "promptTokenCount": 12,
            "candidatesTokenCount": candidates,
            "totalTokenCount": total,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}],
            "cachedContentTokenCount": 3,
            **more,
        }

    def reply(parts: list[Any], usage: Any, **ending: str) -> dict[str, Any]:
        candidate = {"content": {"parts": parts, "role": "model"}, **ending, "index": 0}
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": NEW,
            "responseId": "rid",
        }

    calls = [
        {
            "functionCall": {"id": "c0", "name": "f", "args": {"a": 1}},
            "thoughtSignature": "EqQB+/8=",
        },
        {"functionCall": {"id": "c1", "name": "now", "args": {}}},
    ]
    ending = {"finishReason": "STOP", "finishMessage": "Model generated function call(s)."}
    counted = usage(5, 19, thoughtsTokenCount=2)
    sent = frames(FULL, parts)
    assert told(sent) == [
        reply([{"text": "Let me ", "thought": True}], usage(1, 13)),
        reply([{"text": "see.", "thought": True}], usage(2, 14)),
        reply([{"text": "Hi"}], usage(3, 15)),
        reply(calls, counted, **ending),
    ]
    assert sent[0].startswith(b'data: {"candidates": [{"content": {"parts": [{"text": "Let me "')
    thought = {"text": "Let me see.", "thought": True}
    whole = CODEC.answer(ASKED, FULL)
    assert json.loads(whole.body) == reply([thought, {"text": "Hi"}, *calls], counted, **ending)
    assert CODEC.stream_type() == "text/event-stream"


def test_calls_before_the_third_generation_have_no_ids() -> None:
    [parts] = parts_in(frames(FULL, [DONE], cut=lambda _text: [], asked=BEFORE))
    assert [part["functionCall"].get("id") for part in parts] == [None, None]
    read_calls = reread(FULL, BEFORE).message.calls
    assert [call.id for call in read_calls] == ["rid_0", "rid_1"]
    nameless = reread(replace(FULL, id=""), BEFORE).message.calls
    assert [call.id for call in nameless] == ["call_0", "call_1"]


def test_a_model_that_signs_its_calls_does_so_where_the_script_does_not() -> None:
    bare = replace(FULL, message=Message("assistant", (Text("Hi"), *CALLS)))
    first, second = parts_in(frames(bare, [DONE]))[-1]
    assert second.keys() == {"functionCall"}
    found = reread(bare)
    assert found.message.content[1:] == (Thinking("", first["thoughtSignature"]), *CALLS)
    assert found == reread(found)
    other = reread(replace(bare, id="rid2")).message.content[1]
    assert other != found.message.content[1]
    assert reread(bare, BEFORE).message.content[0] == Text("Hi")
    assert len(reread(bare, BEFORE).message.content) == 3


SIGNED: list[tuple[list[Any], tuple[Any, ...]]] = [
    ([{"text": "Hi", "thoughtSignature": "c2ln"}], (Text("Hi"), Thinking("", "c2ln"))),
    ([{"text": "", "thoughtSignature": "c2ln"}], (Thinking("", "c2ln"),)),
    ([{"thoughtSignature": "c2ln"}], (Thinking("", "c2ln"),)),
    (
        [{"text": "so", "thought": True, "thoughtSignature": "c2ln"}],
        (Thinking("so", "c2ln"),),
    ),
    (
        [
            {"text": "so", "thought": True},
            {"text": "", "thought": True, "thoughtSignature": "c2ln"},
            {"text": "and so", "thought": True},
        ],
        (Thinking("so", "c2ln"), Thinking("and so")),
    ),
    (
        [
            {"text": "so", "thought": True, "thoughtSignature": "bGFzdA=="},
            {"functionCall": {"id": "a", "name": "f"}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "b", "name": "f"}, "thoughtSignature": "bW9yZQ=="},
        ],
        (
            Thinking("so", "bGFzdA=="),
            Thinking("", "c2ln"),
            ToolCall("a", "f", {}),
            Thinking("", "bW9yZQ=="),
            ToolCall("b", "f", {}),
        ),
    ),
    (
        [
            {"text": "so", "thought": True},
            {"text": "", "thoughtSignature": "bGFzdA=="},
            {"functionCall": {"id": "a", "name": "f"}},
        ],
        (Thinking("so"), Thinking("", "bGFzdA=="), ToolCall("a", "f", {})),
    ),
]


@pytest.mark.parametrize(("parts", "content"), SIGNED)
def test_where_a_signature_belongs(parts: list[Any], content: tuple[Any, ...]) -> None:
    whole = read(frame(*parts, finishReason="STOP"))
    assert whole.message.content == content
    assert read(*[frame(part) for part in parts], frame(finishReason="STOP")) == whole
    again = replace(FULL, message=whole.message, stopped=whole.stopped)
    assert reread(again, BEFORE).message.text == whole.message.text
    thoughts = [each for each in content if isinstance(each, Thinking)]
    assert [
        each for each in reread(again, BEFORE).message.content if isinstance(each, Thinking)
    ] == thoughts


def test_what_nobody_knows_is_noise() -> None:
    noisy = told(frames(FULL, [DONE], UNKNOWN))
    assert all("xNew" in each for each in noisy)
    assert frames(FULL, [DONE], Noise(obfuscation=True, pings=True)) == frames(FULL, [DONE])
    assert b"xNew" in CODEC.answer(ASKED, FULL, UNKNOWN).body
    ran = {"executableCode": {"code": "1", "language": "PYTHON"}}
    other = {"index": 1, "content": {"parts": [{"text": "another"}]}, "finishReason": "STOP"}
    sent = {"candidates": [{"content": {"parts": [ran, {"text": "Hi"}]}}, other]}
    found = read(sse.frame(json.dumps(sent)), frame(finishReason="STOP"), frame({"text": "late"}))
    assert found == Answer(Message("assistant", (Text("Hi"),)))


def test_both_spellings_are_read() -> None:
    sent = {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {
                            "function_call": {"id": "a", "name": "f", "args": {"x_y": 1}},
                            "thought_signature": "c2ln",
                        }
                    ]
                },
                "finish_reason": "MAX_TOKENS",
            }
        ],
        "usage_metadata": {"prompt_token_count": 1, "thoughts_token_count": 2},
        "response_id": "rid",
        "model_version": "m",
    }
    content = (Thinking("", "c2ln"), ToolCall("a", "f", {"x_y": 1}))
    wanted = Answer(Message("assistant", content), Usage(1, 2, 3, 0, 2), "length", None, "rid", "m")
    assert read(sse.frame(json.dumps(sent))) == wanted


def test_normal_forms() -> None:
    """What the protocol has no word for is read as the nearest."""
    odd = (Text("\ud83d\ude00"), Text(""), Thinking(""), Text("!"), Image("gs://x"))
    given = Answer(Message("assistant", odd), None, "paused", None, created=7)
    wanted = Answer(Message("assistant", (Text("😀!"), Image("gs://x"))), Usage(), model=NEW)
    assert reread(given) == wanted
    split = [TextDelta("\ud83d"), TextDelta("\ude00"), ReplyDone(given.message)]
    assert read(*frames(given, split)) == wanted
    told_no = reread(replace(FULL, refusal="No.", stopped="end", usage=Usage(2, 1)))
    assert told_no == replace(FULL, refusal="No.", stopped="refused", usage=Usage(2, 1, 3))
    none = ToolCall("c0", "f")
    assert reread(replace(FULL, message=Message("assistant", (none,))), BEFORE).message.calls == [
        ToolCall("rid_0", "f", {})
    ]


@pytest.mark.parametrize(
    "call", [ToolCall("c2", "f", None, "{"), ToolCall("c2", "f", [1]), ToolCall("c2", "f", "x")]
)
def test_a_call_that_is_no_object_is_malformed(call: ToolCall) -> None:
    answer = replace(FULL, message=Message("assistant", (call,)))
    [last] = told(frames(answer, [DONE]))
    wrong = call.raw or json.dumps(call.args)
    assert last["candidates"] == [
        {
            "finishReason": "MALFORMED_FUNCTION_CALL",
            "finishMessage": f"Malformed function call: f({wrong})",
            "index": 0,
        }
    ]
    assert reread(answer) == replace(answer, message=Message("assistant"), stopped="filtered")
    more = replace(FULL, message=Message("assistant", (Text("Hi"), *CALLS[:1], call)))
    assert [type(each) for each in reread(more).message.content] == [Text, Thinking, ToolCall]


@pytest.mark.parametrize(
    ("reason", "stopped"),
    [
        ("STOP", "calls"),
        ("MAX_TOKENS", "length"),
        ("RECITATION", "filtered"),
        ("PROHIBITED_CONTENT", "refused"),
        ("SOMETHING_NEW", "calls"),
    ],
)
def test_why_a_model_stopped(reason: str, stopped: str) -> None:
    body = json.loads(CODEC.answer(ASKED, FULL).body)
    body["candidates"][0] |= {"finishReason": reason, "finishMessage": None}
    found = CODEC.read_answer(Response(200, (), json.dumps(body).encode()))
    assert (found.stopped, found.refusal) == (stopped, None)
    del body["candidates"][0]["finishReason"]
    assert CODEC.read_answer(Response(200, (), json.dumps(body).encode())).stopped == "calls"


def test_a_prompt_that_was_blocked_is_a_refusal() -> None:
    for more, refusal in ({}, None), ({"blockReasonMessage": "No."}, "No."):
        body = json.dumps({"promptFeedback": {"blockReason": "SAFETY", **more}})
        wanted = Answer(Message("assistant"), None, "refused", refusal)
        assert read(sse.frame(body)) == wanted
        assert CODEC.read_answer(Response(200, (), body.encode())) == wanted
    rated = sse.frame(json.dumps({"promptFeedback": {"safetyRatings": []}}))
    assert read(rated, frame({"text": "Hi"}, finishReason="STOP")).stopped == "end"


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (b"data: {\n\n", "no JSON: '{'"),
        (b"data: \xff\n\n", "no UTF-8"),
        (b"data: []\n\n", "expected an object"),
        (frame({"functionCall": {"args": {}}}), r"parts\[0\].functionCall.name: expected a string"),
        (frame({"functionCall": {"name": "f", "args": []}}), "args: expected an object"),
        (frame({"text": 1}), "text: expected a string"),
        (frame({"inlineData": {"data": ""}}), "mimeType: expected a string"),
    ],
)
def test_what_no_client_could_put_together_is_told(sent: bytes, what: str) -> None:
    with pytest.raises(Garbled, match=what):
        read(sent)


def test_a_failure_in_the_middle() -> None:
    encoder, decoder = CODEC.encoder(ASKED, FULL), CODEC.decoder()
    for piece in encoder.part(ThinkingDelta("Let")):
        decoder.feed(piece)
    [last] = encoder.failure(Failure(503, "Overloaded"))
    assert last.startswith(b'data: {"error": {"code": 503, "message": "Overloaded", "status": "UNA')
    assert last.endswith(b"\r\n\r\n")
    with pytest.raises(ProviderError, match="Overloaded") as raised:
        decoder.feed(last)
    assert raised.value.failure == Failure(503, "Overloaded", "UNAVAILABLE")
    assert list(encoder.part(DONE)) == list(encoder.end()) == []


def test_what_is_no_whole_reply_is_told() -> None:
    with pytest.raises(Garbled, match="the reply: expected an object"):
        CODEC.read_answer(Response(200, (), b"<html>"))
    with pytest.raises(Garbled, match="no candidates; expected one"):
        CODEC.read_answer(Response(200, (), b"{}"))
