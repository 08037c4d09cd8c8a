"""What is written is read again, whole and streamed, however it is cut, and whatever else comes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.json_text import Json, dumps
from harness.core.messages import (
    Block,
    Image,
    Message,
    ModelRequest,
    Text,
    Thinking,
    ToolCall,
    ToolSchema,
    Usage,
    tool_result,
    user,
)
from harness.core.reply import (
    ReplyDone,
    ReplyFailed,
    ReplyPart,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from harness.fakes.parts import cut as cut_up
from harness.testing.strategies import chunkings
from harness.testing.strategies_values import TEXTS
from harness.wire import sse
from harness.wire.codec import (
    QUIET,
    Answer,
    Asked,
    Cut,
    Failure,
    Garbled,
    Noise,
    ProviderError,
    Stopped,
    Truncated,
    Unreadable,
    whole,
)
from harness.wire.http import Request, Response
from harness.wire.openai_responses.codec import OpenAIResponses
from harness.wire.openai_responses.failures import Failing
from harness.wire.writing import bytes_of

CODEC = OpenAIResponses()
ASKED = Asked(ModelRequest("m", "", ()), True, {"tools": [{"type": "custom", "name": "sh"}]})
NOISES = st.builds(Noise, st.booleans(), st.booleans(), st.booleans())
CUTS: st.SearchStrategy[Cut] = st.sampled_from([1, 2, 3, 16]).map(
    lambda size: lambda text: cut_up(text, 0, size)
)
CALLS = st.sampled_from(
    [
        ToolCall("c", "f", {"a": [1, "ü"]}),
        ToolCall("c", "f", {}),
        ToolCall("c", "f", None, "{"),
        ToolCall("c", "f", None, ""),
        ToolCall("d", "sh", "ls -l"),
    ]
)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    TEXTS.map(Text), st.builds(Thinking, TEXTS, st.sampled_from([None, "sealed"])), CALLS
)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """What the protocol can carry: everything but a pause, and a reason that its blocks deny."""
    message = Message("assistant", tuple(draw(st.lists(BLOCKS, max_size=5))))
    refusal = draw(st.none() | TEXTS)
    usual: Stopped = "calls" if message.calls else "end"
    stopped: Stopped = draw(st.sampled_from([usual, "length", "filtered"]))
    if refusal is not None:
        stopped = "refused"
    return Answer(message, Usage(9, 5, 14, 2, 1), stopped, refusal, "resp_1", "m-1", 1_700)


def parts_of(answer: Answer, size: int) -> list[ReplyPart]:
    parts: list[ReplyPart] = []
    for block in answer.message.content:
        if isinstance(block, Text | Thinking):
            kind = TextDelta if isinstance(block, Text) else ThinkingDelta
            parts += [kind(piece) for piece in cut_up(block.text, 0, size)]
    return [*parts, ReplyDone(answer.message)]


def sent(
    answer: Answer,
    parts: Sequence[ReplyPart],
    cut: Cut = whole,
    noise: Noise = QUIET,
    codec: OpenAIResponses = CODEC,
) -> list[bytes]:
    encoder = codec.encoder(ASKED, answer, cut=cut, noise=noise)
    return [*[frame for part in parts for frame in encoder.part(part)], *encoder.end()]


def read(pieces: Sequence[bytes]) -> tuple[list[ReplyPart], Answer]:
    decoder = CODEC.decoder()
    parts = [part for piece in pieces for part in decoder.feed(piece)]
    return parts, decoder.end()


@given(answers(), st.sampled_from([1, 3, 50]), CUTS, NOISES, st.data())
def test_a_streamed_reply_is_read_as_it_was_from_any_pieces(
    answer: Answer, size: int, cut: Cut, noise: Noise, data: st.DataObject
) -> None:
    given_parts = parts_of(answer, size)
    stream = b"".join(sent(answer, given_parts, cut, noise))
    parts, found = read(data.draw(chunkings(stream, empty=True)))
    assert found == answer
    assert parts == [*given_parts[:-1], UsageReport(answer.usage or Usage())]
    assert read([stream.replace(b"\n", b"\r\n")])[1] == answer
    assert read([bytes([byte]) for byte in stream])[1] == answer


@given(answers(), CUTS)
def test_what_no_part_has_brought_comes_at_the_end(answer: Answer, cut: Cut) -> None:
    _, found = read(sent(answer, [ReplyDone(answer.message)], cut))
    assert found == answer
    assert CODEC.read_answer(CODEC.answer(ASKED, answer)) == answer


@given(answers(), CUTS)
def test_a_stream_cut_anywhere_is_whole_or_told_to_be_cut(answer: Answer, cut: Cut) -> None:
    stream = b"".join(sent(answer, parts_of(answer, 3), cut))
    decoder = CODEC.decoder()
    for at in range(len(stream)):
        with pytest.raises(Truncated):
            decoder.end()
        decoder.feed(stream[at : at + 1])
    assert decoder.end() == answer
    assert decoder.feed(stream) == []


@given(answers(), st.data())
def test_a_byte_that_went_wrong_is_no_other_error(answer: Answer, data: st.DataObject) -> None:
    stream = bytearray(b"".join(sent(answer, parts_of(answer, 3))))
    for _ in range(data.draw(st.integers(1, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Garbled, ProviderError):
        read([bytes(stream)])


def test_what_the_protocol_cannot_carry() -> None:
    content = (Image("p"), Thinking("a", ""), Text("b"))
    lost = Answer(Message("assistant", content), None, "paused", model="m")
    found = CODEC.read_answer(CODEC.answer(ASKED, lost))
    kept = Message("assistant", (Thinking("a"), Text("b")))
    assert found == replace(lost, message=kept, usage=Usage(), stopped="end")


def event(**told: Json) -> bytes:
    return sse.frame(dumps(told))


def reply(**more: Json) -> bytes:
    return event(type="response.completed", response={"id": "r", "created_at": 1, **more})


SAID: Json = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "hi"}],
}


def test_items_that_were_done_stand_in_for_an_output_that_is_missing() -> None:
    done = event(type="response.output_item.done", output_index=1, item=SAID)
    begun = event(type="response.output_item.added", output_index=1, item=SAID)
    for output in ([], None):
        found = read([begun, done, reply(output=output)])[1]
        assert found == Answer(Message("assistant", (Text("hi"),)), id="r", created=1)
        with pytest.raises(Garbled, match="item 1 has begun and was never done"):
            read([begun, reply(output=output)])
    assert read([begun, reply(output=[SAID])])[1].message.text == "hi"


def test_summaries_are_joined_and_other_reasoning_counts_without_them() -> None:
    both = [{"type": "summary_text", "text": text} for text in "ab"]
    shown = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "c"}]}
    output: Json = [{"type": "reasoning", "summary": both}, {"summary": [], **shown}]
    output.append({"type": "web_search_call", "id": "ws_1"})
    part = "response.reasoning_summary_part.added"
    deltas = [
        event(type=part, summary_index=0),
        event(type="response.reasoning_summary_text.delta", delta="a"),
        event(type="response.reasoning_summary_text.delta", delta=""),
        event(type=part, summary_index=1),
        event(type="response.reasoning_text.delta", delta="b"),
        event(type="response.output_text.delta", delta=""),
    ]
    parts, found = read([*deltas, reply(output=output)])
    assert parts == [ThinkingDelta("a"), ThinkingDelta("\n\n"), ThinkingDelta("b")]
    assert found.message.content == (Thinking("a\n\nb"), Thinking("c"))


@pytest.mark.parametrize(
    "stream",
    [
        b"data: [DONE]\n\n",
        b"data: 5\n\n",
        b"data: \xff\n\n",
        event(type="response.completed"),
        event(type={}),
        event(type="response.output_text.delta", delta=5),
        reply(status="queued"),
        reply(output=5),
        reply(output=[{"type": "message", "content": [{"type": "odd"}]}]),
    ],
)
def test_what_is_no_reply_is_garbled(stream: bytes) -> None:
    with pytest.raises(Garbled):
        read([stream])


def test_a_stream_without_an_end_is_garbled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LONGEST", 10)
    with pytest.raises(Garbled, match="more than 10 bytes"):
        CODEC.decoder().feed(b"data: 123456")


@pytest.mark.parametrize("reason", ["steered", None])
def test_a_reason_that_nobody_knows_is_a_limit(reason: str | None) -> None:
    details = None if reason is None else {"reason": reason}
    assert read([reply(status="incomplete", incomplete_details=details)])[1].stopped == "length"


@pytest.mark.parametrize("failing", ["nested", "flat", "failed"])
def test_a_failure_in_the_middle(failing: Failing) -> None:
    codec = OpenAIResponses(failing)
    answer = Answer(Message("assistant", (Text("hi"),)), id="resp_1")
    encoder = codec.encoder(ASKED, answer)
    failure = Failure(429, "slow", "tokens", "rate_limit_exceeded", "p", (("x-a", "1"),))
    frames = [*encoder.part(TextDelta("h")), *encoder.failure(failure)]
    assert [*encoder.part(TextDelta("i")), *encoder.end()] == []
    with pytest.raises(ProviderError) as raised:
        read(frames)
    wanted = {
        "nested": replace(failure, status=200),
        "flat": Failure(200, "slow", None, "rate_limit_exceeded", "p"),
        "failed": Failure(200, "slow", None, "rate_limit_exceeded"),
    }
    assert raised.value.failure == wanted[failing]


def test_a_part_that_failed_is_told_after_what_begins_the_stream() -> None:
    answer = Answer(Message("assistant"), id="resp_1")
    frames = sent(answer, [UsageReport(Usage()), ReplyFailed("stream", "no")])
    assert [frame.split(b"\n")[0] for frame in frames] == [
        b"event: response.created",
        b"event: response.in_progress",
        b"event: error",
    ]
    with pytest.raises(ProviderError, match="no"):
        read(frames)
    with pytest.raises(ProviderError, match="odd"):
        read([event(error="odd")])


def test_a_whole_failure() -> None:
    response = CODEC.failure(Failure(404, "no such model"))
    with pytest.raises(ProviderError) as raised:
        CODEC.read_answer(response)
    assert raised.value.failure.code == "model_not_found"
    failed = bytes_of({"status": "failed", "error": None})
    with pytest.raises(ProviderError):
        CODEC.read_answer(Response(200, (), failed))
    assert dict(CODEC.headers("req_1"))["x-request-id"] == "req_1"


HISTORY = (
    Message("user", (Text("see"), Image("https://a.test/1.png"), Image("file-1"))),
    Message("user", (Image("f-1", "application/pdf"), Image("UklG", "audio/wav"))),
    Message("assistant", (Thinking("a", "s"), Thinking(""), Text("b"), ToolCall("c", "f", {}))),
    tool_result("c", "done"),
    Message("assistant", (ToolCall("d", "sh", "ls"),)),
    Message("tool", (Text("a"), Text("b")), "d"),
    Message("system", (Text("Be brief."),)),
)


@pytest.mark.parametrize("system", ["", "Be kind."])
def test_a_request_is_read_as_it_was_written(system: str) -> None:
    tools = (ToolSchema("f", "does", {"type": "object"}), ToolSchema("sh"))
    options = {
        "tools": [
            {
                "type": "function",
                "name": "f",
                "description": "does",
                "parameters": {"type": "object"},
            },
            {"type": "custom", "name": "sh"},
            {"type": "web_search"},
        ],
        "previous_response_id": "resp_1",
    }
    history = tuple(
        [
            replace(each, content=tuple([_plain(block) for block in each.content]))
            for each in HISTORY
        ]
    )
    asked = Asked(ModelRequest("m", system, history, tools, 5, 0.5), True, options)
    request = CODEC.write(asked, base="http://127.0.0.1:9", key="k")
    assert CODEC.is_for(request)
    assert request.header("authorization") == "Bearer k"
    assert CODEC.read(request) == asked
    assert CODEC.write(CODEC.read(request), base="http://127.0.0.1:9", key="k") == request
    plain = Asked(ModelRequest("m", system, (user("Hi"),), tools[:1]))
    assert CODEC.read(CODEC.write(plain)) == plain


def _plain(block: Block) -> Block:
    """A block without the form of a file, which is not told."""
    if isinstance(block, Image) and block.media_type.startswith("application"):
        return replace(block, media_type="application/octet-stream")
    return block


def body(value: Json) -> Request:
    return Request("POST", "/v1/responses", (), bytes_of(value))


def test_short_forms_and_what_is_passed_over() -> None:
    given = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "input_file", "file_url": "u"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"type": "web_search_call", "id": "ws_1"},
        {"type": "item_reference", "id": "rs_1"},
    ]
    request = CODEC.read(body({"model": "m", "input": given, "instructions": "I."})).request
    assert request.system == "I.\n\nBe kind."
    file = Image("u", "application/octet-stream")
    refused = Message("assistant", (Text("No."),))
    assert request.messages == (Message("user", (file,)), refused)
    assert CODEC.read(body({"model": "m", "input": "Hi"})).request.messages == (user("Hi"),)


@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        ({"input": "Hi"}, "missing_required_parameter", "model"),
        ({"model": "m"}, "missing_required_parameter", "input"),
        ({"model": "m", "input": [{"type": "odd"}]}, "invalid_value", "input[0].type"),
        (
            {"model": "m", "input": [{"role": "odd", "content": ""}]},
            "invalid_value",
            "input[0].role",
        ),
        (
            {"model": "m", "input": [{"role": "user", "content": [{"type": "odd"}]}]},
            "invalid_value",
            "input[0].content[0].type",
        ),
        ({"model": "m", "input": [5]}, "invalid_type", "input[0]"),
    ],
)
def test_what_is_wrong_in_a_request_is_named(given: Json, code: str, param: str) -> None:
    with pytest.raises(Unreadable) as raised:
        CODEC.read(body(given))
    failure = raised.value.failure
    assert (failure.status, failure.code, failure.param) == (400, code, param)
    with pytest.raises(Unreadable, match="could not parse"):
        CODEC.read(Request("POST", "/v1/responses", (), b"{"))
