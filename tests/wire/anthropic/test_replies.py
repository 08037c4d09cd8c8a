"""A reply is written and read the same, whole or streamed, however its bytes come."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.messages import Image, Message, Text, Thinking, ToolCall, Usage
from harness.core.reply import ReplyDone, TextDelta, ThinkingDelta, UsageReport
from harness.testing.strategies import chunkings
from harness.wire import sse
from harness.wire.anthropic_words import redacted
from harness.wire.codec import Answer, Failure, Garbled, Noise, ProviderError, Truncated
from harness.wire.http import Response
from tests.wire.anthropic.answers import (
    ASKED,
    CODEC,
    NOISES,
    altered,
    answers,
    calls,
    frames,
    halves,
    parts_of,
    said,
)

CALL = ToolCall("toolu_1", "f", {"a": 1})
THOUGHT = Thinking("Let me see.", "EqQB")
FULL = Answer(
    Message("assistant", (THOUGHT, Text("Hi"), CALL, ToolCall("toolu_2", "now", {}))),
    Usage(12, 7, 19, 3, 2),
    "calls",
    None,
    "msg_1",
    "claude-x",
)
DONE = ReplyDone(FULL.message)


def events(sent: list[bytes]) -> list[dict]:
    """The data of frames, each under the name that its type says."""
    found = sse.Reader().feed(b"".join(sent))
    assert [json.loads(each.data)["type"] for each in found] == [each.name for each in found]
    return [json.loads(each.data) for each in found]


def read(sent: bytes) -> Answer:
    decoder = CODEC.decoder()
    decoder.feed(sent)
    return decoder.end()


def event(kind: str, **rest: object) -> bytes:
    return sse.frame(json.dumps({"type": kind, **rest}), kind)


@given(answers(), NOISES, st.data())
def test_a_streamed_reply_is_read_from_any_pieces(
    answer: Answer, noise: Noise, data: st.DataObject
) -> None:
    sent = b"".join(frames(answer, data.draw(parts_of(answer)), noise))
    decoder = CODEC.decoder()
    parts = [part for piece in data.draw(chunkings(sent)) for part in decoder.feed(piece)]
    assert decoder.end() == answer
    content = answer.message.content
    assert said(parts, TextDelta) == answer.message.text
    thought = "".join([block.text for block in content if isinstance(block, Thinking)])
    assert said(parts, ThinkingDelta) == thought
    assert [part for part in parts if isinstance(part, UsageReport)] == [UsageReport(answer.usage)]


@given(answers(), NOISES)
def test_a_whole_reply_is_read_as_the_streamed_one(answer: Answer, noise: Noise) -> None:
    assert CODEC.read_answer(CODEC.answer(ASKED, answer, noise)) == answer


@given(answers(), st.data())
def test_each_part_is_written_when_it_comes(answer: Answer, data: st.DataObject) -> None:
    content = [block for block in answer.message.content if not isinstance(block, ToolCall)]
    answer = replace(answer, message=Message("assistant", tuple(content)))
    parts = data.draw(parts_of(answer))
    encoder, decoder = CODEC.encoder(ASKED, answer), CODEC.decoder()
    for part in parts[:-1]:
        read = [each for frame in encoder.part(part) for each in decoder.feed(frame)]
        wanted = [part] if isinstance(part, TextDelta | ThinkingDelta) and part.text else []
        assert read == wanted


@pytest.mark.parametrize("noise", [Noise(), Noise(True, True, True)], ids=["quiet", "noisy"])
def test_a_cut_anywhere_is_told(noise: Noise) -> None:
    sent = b"".join(frames(FULL, [ThinkingDelta("Let me"), TextDelta("H"), DONE], noise))
    for end in range(len(sent)):
        with pytest.raises(Truncated, match="no message_stop"):
            read(sent[:end])
    assert read(sent) == FULL
    one_by_one = CODEC.decoder()
    for at in range(len(sent)):
        one_by_one.feed(sent[at : at + 1])
    assert one_by_one.end() == FULL


@given(answers(), NOISES, st.data())
def test_a_cut_of_any_reply_is_told(answer: Answer, noise: Noise, data: st.DataObject) -> None:
    sent = b"".join(frames(answer, [ReplyDone(answer.message)], noise))
    with pytest.raises(Truncated):
        read(sent[: data.draw(st.integers(0, len(sent) - 1))])


@given(st.data())
def test_a_stream_that_was_mangled_is_told_or_read(data: st.DataObject) -> None:
    """Whatever stands in it, nothing but the named errors comes of it."""
    told = events(frames(FULL, [TextDelta("H"), DONE], Noise(pings=True, unknown=True)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(told) - 1))
        match data.draw(st.integers(0, 3)):
            case 0:
                told = told[:at] + told[at + 1 :] or told
            case 1:
                told = [*told[:at], told[at], *told[at:]]
            case 2:
                told = [*told[at:], *told[:at]]
            case _:
                told[at] = data.draw(altered(told[at]))
    sent = b"".join([sse.frame(json.dumps(each)) for each in told])
    with contextlib.suppress(Garbled, ProviderError):
        assert isinstance(read(sent), Answer)


def test_the_frames_of_a_reply() -> None:
    parts = [ThinkingDelta("Let me "), ThinkingDelta("see."), TextDelta("Hi"), DONE]
    usage = {
        "input_tokens": 9,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 3,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 2},
    }
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": 9,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 3,
            "output_tokens": 1,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "service_tier": "standard",
            "inference_geo": "not_available",
        },
    }

    def start(index: int, **block: object) -> dict:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def delta(index: int, **delta: object) -> dict:
        return {"type": "content_block_delta", "index": index, "delta": delta}

    def stop(index: int) -> dict:
        return {"type": "content_block_stop", "index": index}

    def call(call_id: str, name: str) -> dict:
        caller = {"type": "direct"}
        return {"type": "tool_use", "id": call_id, "name": name, "input": {}, "caller": caller}

    ended = {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None}
    assert events(frames(FULL, parts)) == [
        {"type": "message_start", "message": message},
        start(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="Let me "),
        delta(0, type="thinking_delta", thinking="see."),
        delta(0, type="signature_delta", signature="EqQB"),
        stop(0),
        start(1, type="text", text=""),
        delta(1, type="text_delta", text="Hi"),
        stop(1),
        start(2, **call("toolu_1", "f")),
        delta(2, type="input_json_delta", partial_json=""),
        delta(2, type="input_json_delta", partial_json='{"a"'),
        delta(2, type="input_json_delta", partial_json=": 1}"),
        stop(2),
        start(3, **call("toolu_2", "now")),
        delta(3, type="input_json_delta", partial_json=""),
        stop(3),
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]
    first = frames(FULL, parts)[1]
    assert first == (
        b"event: content_block_start\n"
        b'data: {"type": "content_block_start", "index": 0, '
        b'"content_block": {"type": "thinking", "thinking": "", "signature": ""}}\n\n'
    )


def test_noise_is_a_ping_padding_and_what_nobody_knows() -> None:
    quiet = frames(FULL, [DONE])
    pinged = events(frames(FULL, [DONE], Noise(pings=True)))
    assert [each["type"] for each in pinged[:4]] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
    ]
    assert [each for each in pinged if each["type"] != "ping"] == events(quiet)
    padded = frames(FULL, [DONE], Noise(obfuscation=True))
    assert events(padded) == events(quiet)
    assert any(frame.endswith(b"  }\n\n") for frame in padded)
    strange = events(frames(FULL, [DONE], Noise(unknown=True)))
    assert all("x_new" in each for each in strange)
    assert strange[1]["type"] == "x_new"
    assert b"x_new" in CODEC.answer(ASKED, FULL, Noise(unknown=True)).body


def test_blocks_that_say_nothing_stand_at_their_place() -> None:
    hidden = redacted("EmwK")
    content = (
        Text("a"),
        CALL,
        hidden,
        Thinking("", "s"),
        Thinking("why", "t"),
        Text(""),
        Text("b"),
    )
    answer = replace(FULL, message=Message("assistant", content))
    for parts in (
        [TextDelta("ab"), ThinkingDelta("why"), ReplyDone(answer.message)],
        [ThinkingDelta("w"), ThinkingDelta("hy and more"), TextDelta("?"), DONE, TextDelta("late")],
        [DONE],
    ):
        sent = frames(answer, parts)
        starts = [each for each in events(sent) if each["type"] == "content_block_start"]
        assert [each["index"] for each in starts] == list(range(7))
        assert starts[2]["content_block"] == {"type": "redacted_thinking", "data": "EmwK"}
        assert read(b"".join(sent)) == answer
    assert CODEC.read_answer(CODEC.answer(ASKED, answer)) == answer


@given(calls(1))
def test_a_call_alone_is_the_whole_of_a_reply(call: ToolCall) -> None:
    answer = replace(FULL, message=Message("assistant", (call,)))
    assert read(b"".join(frames(answer, [DONE], cut=list))) == answer


def test_normal_forms() -> None:
    """What the protocol has no word for is read as the nearest."""
    odd = Message("assistant", (Text("\ud83d\ude00"), Image("x"), Thinking("", "")))
    odd = replace(odd, content=(*odd.content, ToolCall("toolu_1", "f", None, "")))
    given = Answer(odd, None, "filtered", None, created=7)
    even = (Text("😀"), Thinking(""), ToolCall("toolu_1", "f", {}))
    wanted = Answer(Message("assistant", even), Usage(), "filtered")
    parts = [TextDelta("\ud83d"), TextDelta("\ude00"), ReplyDone(odd)]
    assert read(b"".join(frames(given, parts))) == wanted
    assert CODEC.read_answer(CODEC.answer(ASKED, given)) == wanted
    said_no = replace(FULL, refusal="No.", stopped="end", usage=Usage(2, 1, 99, 5))
    wanted = replace(FULL, refusal="No.", stopped="refused", usage=Usage(5, 1, 6, 5))
    assert read(b"".join(frames(said_no, [DONE]))) == wanted
    assert CODEC.read_answer(CODEC.answer(ASKED, said_no)) == wanted


def test_a_refusal_has_details() -> None:
    answer = replace(FULL, refusal="Not that.", stopped="refused")
    [delta] = [each for each in events(frames(answer, [DONE])) if each["type"] == "message_delta"]
    details = {"type": "refusal", "category": None, "explanation": "Not that."}
    assert delta["delta"] == {
        "stop_reason": "refusal",
        "stop_sequence": None,
        "stop_details": details,
    }
    assert json.loads(CODEC.answer(ASKED, answer).body)["stop_details"] == details


@pytest.mark.parametrize(
    ("reason", "stopped"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "paused"),
        ("something_new", "calls"),
        (None, "calls"),
    ],
)
def test_why_a_model_stopped(reason: str | None, stopped: str) -> None:
    body = json.loads(CODEC.answer(ASKED, FULL).body) | {"stop_reason": reason}
    assert CODEC.read_answer(Response(200, (), json.dumps(body).encode())).stopped == stopped


START = event("message_start", message={"id": "msg_1", "model": "m", "usage": {"input_tokens": 4}})
TEXT = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
STOP = event("message_stop")


def test_a_reply_is_read_as_clients_read_it() -> None:
    """Later counts and signatures replace earlier ones; what nobody knows is passed over."""
    thinking = {"type": "thinking", "thinking": "so", "signature": "first"}
    server = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    sent = [
        START,
        b": a comment\n\n",
        sse.frame("not JSON at all", "ping"),
        sse.frame('{"type": "ping"}'),
        event("content_block_start", index=0, content_block=thinking),
        event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "2"}),
        event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "3"}),
        event("content_block_delta", index=0, delta={"type": "new_delta", "new": 1}),
        event("content_block_start", index=1, content_block=server),
        event(
            "content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": "{"}
        ),
        event("content_block_start", index=2, content_block=found),
        event("content_block_start", index=3, content_block=USE | {"input": {"b": 2}}),
        event("content_block_start", index=4, content_block=USE | {"id": "toolu_2"}),
        event(
            "content_block_delta", index=4, delta={"type": "input_json_delta", "partial_json": "{"}
        ),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 5}),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 6}),
        event("something_new"),
        STOP,
        b"data: after the end\n\n",
    ]
    calls = (ToolCall("toolu_1", "f", {"b": 2}), ToolCall("toolu_2", "f", None, "{"))
    message = Message("assistant", (Thinking("so", "3"), *calls))
    wanted = Answer(message, Usage(4, 6, 10), "calls", None, "msg_1", "m")
    assert read(b"".join(sent)) == wanted
    assert read(b"".join(sent).replace(b"\n", b"\r\n")) == wanted


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        ([TEXT, STOP], "content_block_start came before message_start"),
        ([START, event("content_block_start", index=1, content_block=USE)], "index 0, but got 1"),
        ([START, TEXT, TEXT], "index 1, but got 0"),
        ([START, event("content_block_delta", index=0, delta={})], "no block with index 0"),
        ([START, event("content_block_stop", index=-1)], "no block with index -1"),
        ([START, event("content_block_stop")], "no block with index None"),
        ([START, b"data: {\n\n"], "no JSON: '{'"),
        ([START, b"data: \xff\n\n"], "no UTF-8"),
        ([b"data: []\n\n"], "expected an object"),
        ([b"data: {}\n\n"], "expected a string"),
        (
            [START, TEXT, event("content_block_delta", index=0, delta={"type": "text_delta"})],
            "text",
        ),
    ],
)
def test_what_no_client_could_put_together_is_told(sent: list[bytes], what: str) -> None:
    with pytest.raises(Garbled, match=what):
        read(b"".join(sent))


def test_a_call_that_is_no_call_is_told() -> None:
    start = event("content_block_start", index=0, content_block={"type": "tool_use", "input": {}})
    with pytest.raises(Garbled, match=r"tool_use\.id: expected a string"):
        read(START + start + STOP)


def test_a_stream_without_end_is_truncated() -> None:
    ended = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 1})
    bare = event("message_start", message={})
    for sent in (b"", bare, START, START + TEXT, START + TEXT + ended):
        with pytest.raises(Truncated):
            read(sent)


def test_a_failure_in_the_middle() -> None:
    encoder, decoder = CODEC.encoder(ASKED, FULL), CODEC.decoder()
    for frame in encoder.part(ThinkingDelta("Let")):
        decoder.feed(frame)
    [frame] = encoder.failure(Failure(529, "Overloaded"))
    assert frame.startswith(b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_')
    with pytest.raises(ProviderError, match="Overloaded") as raised:
        decoder.feed(frame)
    assert raised.value.failure == Failure(200, "Overloaded", "overloaded_error")
    assert list(encoder.part(DONE)) == []


@pytest.mark.parametrize(
    ("sent", "failure"),
    [
        (sse.frame("Internal", "error"), Failure(200, "Internal")),
        (sse.frame('{"message": "?"}', "error"), Failure(200, "status 200")),
        (sse.frame('{"type": "error", "error": {"message": "Oh."}}'), Failure(200, "Oh.")),
    ],
)
def test_a_failure_may_be_told_otherwise(sent: bytes, failure: Failure) -> None:
    with pytest.raises(ProviderError) as raised:
        read(START + sent)
    assert raised.value.failure == failure


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    doubled = STOP.replace(b'"type"', b'"type": "odd", "type"')
    assert doubled != STOP
    assert read(START + doubled).message == Message("assistant")
    body = b'{"content": [], "id": "a", "id": "b"}'
    assert CODEC.read_answer(Response(200, (), body)).id == "b"


def test_what_is_no_whole_reply_is_told() -> None:
    with pytest.raises(Garbled, match="the reply: expected an object"):
        CODEC.read_answer(Response(200, (), b"<html>"))
    with pytest.raises(Garbled, match=r"content\[0\].text.text: expected a string"):
        CODEC.read_answer(Response(200, (), b'{"content": [{"type": "text"}]}'))
    bare = CODEC.read_answer(Response(200, (), b'{"content": []}'))
    assert bare == Answer(Message("assistant"))
    assert halves("") == []
