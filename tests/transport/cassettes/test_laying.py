"""What was recorded, at other times, in other pieces, and with faults laid over it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.durations import SECOND as S
from harness.core.errors import UsageError
from harness.core.messages import Message, ModelRequest, Text, user
from harness.core.reply import ReplyDone, TextDelta
from harness.fakes.script import (
    DoneTwice,
    Fault,
    GenerateFails,
    Hang,
    LateThinking,
    StreamFails,
    Torn,
)
from harness.fakes.wire_faults import (
    BadJson,
    BadUtf8,
    Comments,
    CutAt,
    CutLine,
    Dropped,
    EmptyChoices,
    ErrorFrame,
    Http,
    Incomplete,
    JsonError,
    NoIndex,
    OddIndex,
    Refused,
    RepeatedIds,
    Reset,
    Split,
    Stall,
)
from harness.transport.cassettes.form import Chunk, Interaction
from harness.transport.cassettes.laying import frames, laid_over, resized, scaled
from harness.wire import CODECS
from harness.wire.codec import Answer, Asked, Garbled, ProviderError, Truncated
from harness.wire.http import Request, first

ASKED = Request("POST", "/v1/x")
STREAM = (("content-type", "text/event-stream; charset=utf-8"),)
JSON = (("content-type", "application/json"), ("content-length", "10"))


def heard(*chunks: tuple[float, bytes], **how: Any) -> Interaction:
    """A recorded answer, whose chunks came at these seconds."""
    return Interaction(
        request=ASKED,
        status=200,
        chunks=tuple([Chunk(round(at * S), data) for at, data in chunks]),
        head_at=S,
        ended_at=9 * S,
        **({"headers": STREAM} | how),
    )


THREE = heard((2, b"data: 1\n\ndata: 2\n"), (3, b"\ndata: "), (4, b"3\n\n"))
WHOLE = heard((2, b'{"a": '), (3, b"123}"), headers=JSON)


def parts(given: Interaction) -> list[tuple[float, bytes]]:
    return [(chunk.at / S, chunk.data) for chunk in given.chunks]


def test_times_are_multiplied() -> None:
    twice = scaled(THREE, 2)
    assert [at for at, _data in parts(twice)] == [4, 6, 8]
    assert (twice.head_at, twice.ended_at) == (2 * S, 18 * S)
    assert scaled(THREE, 1) is THREE
    assert {at for at, _data in parts(scaled(THREE, 0))} == {0}


@pytest.mark.parametrize("size", [1, 7, 8, 100])
def test_a_piece_comes_when_its_last_byte_did(size: int) -> None:
    made = resized(THREE, size)
    assert made.body == THREE.body
    assert {len(data) for _at, data in parts(made)[:-1]} <= {size}
    at = 0
    for came, data in parts(made):
        at += len(data)
        assert came == (2 if at <= 17 else 3 if at <= 24 else 4)


def test_frames_are_found_however_lines_end() -> None:
    assert parts(replace(THREE, chunks=frames(THREE))) == [
        (2, b"data: 1\n\n"),
        (3, b"data: 2\n\n"),
        (4, b"data: 3\n\n"),
    ]
    for end in (b"\r\n", b"\r"):
        given = heard((2, b"data: 1" + end), (3, end + b"data: 2" + end + end + b"data: 3"))
        assert [chunk.data for chunk in frames(given)] == [
            b"data: 1" + end + end,
            b"data: 2" + end + end,
            b"data: 3",
        ]
    assert frames(heard()) == ()


ONE = (2, b"data: 1\n\n")
TWO = (3, b"data: 2\n\n")


@pytest.mark.parametrize(
    ("fault", "chunks", "ended", "at"),
    [
        (Incomplete(1), [ONE], "torn", 3),
        (Incomplete(0), [], "torn", 2),
        (Incomplete(9), [ONE, TWO, (4, b"data: 3\n\n")], "torn", 9),
        (Reset(2), [ONE, TWO], "reset", 4),
        (StreamFails(1), [ONE], "reset", 3),
        (Torn(1), [ONE], "complete", 3),
        (CutLine(1), [ONE, (3, b"data: 2")], "complete", 3),
        (CutLine(9), [ONE, TWO, (4, b"data: 3\n\n"), (9, b'data: {"id"')], "complete", 9),
        (BadUtf8(0), [(2, b"data:\xff 1\n\n")], "complete", 2),
        (Hang(1), [ONE], "timeout", 9),
        (CutAt(12, "end"), [(2, b"data: 1\n\ndat")], "complete", 2),
        (CutAt(18, "incomplete"), [(2, b"data: 1\n\ndata: 2\n"), (3, b"\n")], "torn", 3),
        (
            CutAt(25, "reset"),
            [(2, b"data: 1\n\ndata: 2\n"), (3, b"\ndata: "), (4, b"3")],
            "reset",
            4,
        ),
        (CutAt(0, "reset"), [], "reset", 1),
        (Stall(1, 5 * S), [ONE, (8, b"data: 2\n\n"), (9, b"data: 3\n\n")], "complete", 14),
        (Split(9), [ONE, TWO, (4, b"data: 3\n\n")], "complete", 9),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, (list, str, int)) else "",
)
def test_a_stream_breaks_after_so_many_frames(
    fault: Fault, chunks: list[tuple[float, bytes]], ended: str, at: float
) -> None:
    made = laid_over(THREE, fault)
    assert parts(made) == chunks
    assert (made.ended, made.ended_at) == (ended, at * S)
    assert (made.status, made.head_at) == (200, S)


@pytest.mark.parametrize(
    ("fault", "body", "ended"),
    [
        (Incomplete(1), b'{"a":', "torn"),
        (Reset(1), b'{"a":', "reset"),
        (CutLine(1), b'{"a":', "complete"),
        (BadJson(1), b'{"a": 123', "complete"),
        (BadUtf8(1), b'{"a": 123\xff}', "complete"),
        (CutAt(3, "end"), b'{"a', "complete"),
        (CutAt(3, "reset"), b'{"a', "reset"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_body_that_is_no_stream_is_spoiled_as_a_whole(
    fault: Fault, body: bytes, ended: str
) -> None:
    made = laid_over(WHOLE, fault)
    assert (made.body, made.ended) == (body, ended)
    assert first(made.headers, "content-length") == (
        str(len(body)) if ended == "complete" else "10"
    )


def test_an_answer_that_is_no_stream_stalls_or_hangs_as_a_whole() -> None:
    late = laid_over(WHOLE, Stall(1, 5 * S))
    assert [at for at, _data in parts(late)] == [7, 8]
    assert (late.head_at, late.ended_at) == (6 * S, 14 * S)
    hung = laid_over(WHOLE, Hang(1))
    assert (hung.status, hung.ended) == (None, "timeout")
    assert (laid_over(WHOLE, Torn(1)).status, laid_over(WHOLE, Torn(1)).ended) == (None, "dropped")
    assert laid_over(WHOLE, Split(4)).body == WHOLE.body


def test_a_cut_behind_the_end_changes_nothing() -> None:
    assert laid_over(THREE, CutAt(10_000)) is THREE


@pytest.mark.parametrize(
    ("fault", "ended"), [(Refused(), "refused"), (Dropped(), "dropped"), (Hang(None), "timeout")]
)
def test_no_answer_comes_when_the_recorded_one_began(fault: Fault, ended: str) -> None:
    made = laid_over(THREE, fault)
    assert (made.status, made.chunks, made.headers) == (None, (), ())
    assert (made.ended, made.ended_at) == (ended, S)


# --- in the words of a protocol


def recorded(protocol: str) -> Interaction:
    """A streamed reply, each frame at its own second."""
    codec = next(each for each in CODECS if each.name == protocol)
    asked = Asked(ModelRequest("m", "", (user("Go."),), ()), stream=True)
    answer = Answer(Message("assistant", (Text("Hello there."),)), id="id_1", model="m")
    encoder = codec.encoder(asked, answer)
    told = [*encoder.part(TextDelta("Hello ")), *encoder.part(TextDelta("there."))]
    told += [*encoder.part(ReplyDone(answer.message)), *encoder.end()]
    chunks = [(2 + at, frame) for at, frame in enumerate(told)]
    made = heard(*chunks, headers=(("content-type", codec.stream_type()),))
    return replace(made, request=codec.write(asked, base="http://x", key="k"), protocol=protocol)


def read(given: Interaction) -> Answer:
    codec = next(each for each in CODECS if each.name == given.protocol)
    decoder = codec.decoder()
    for chunk in given.chunks:
        decoder.feed(chunk.data)
    return decoder.end()


PROTOCOLS = [codec.name for codec in CODECS]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_tells_of_an_error_in_the_words_of_its_protocol(protocol: str) -> None:
    given = recorded(protocol)
    assert read(given).message.text == "Hello there."
    for fault in (ErrorFrame(2, "too busy"), StreamFails(0, "too busy", reported=True)):
        made = laid_over(given, fault)
        with pytest.raises(ProviderError, match="too busy"):
            read(made)
        assert made.ended == "complete"
        assert made.chunks[: fault.after] == given.chunks[: fault.after]
    assert len(laid_over(given, ErrorFrame(2)).chunks) == 3
    told = laid_over(given, ErrorFrame(2, "too busy", flat=True)).chunks[-1].data
    assert b'"message": "too busy"' in told
    assert b'"error": {' not in told


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_spoiled_frame_is_no_reply(protocol: str) -> None:
    for fault in (BadJson(1), BadUtf8(1)):
        with pytest.raises(Garbled):
            read(laid_over(recorded(protocol), fault))
    with pytest.raises(Truncated):
        read(laid_over(recorded(protocol), Torn(1)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_noise_changes_nothing_of_what_is_said(protocol: str) -> None:
    given = recorded(protocol)
    for fault in (Comments(), EmptyChoices()):
        made = laid_over(given, fault)
        assert read(made).message == read(given).message
    assert laid_over(given, Comments()).body.count(b": keep-alive") == len(given.chunks)


CALLS = heard(
    (2, b'data: {"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "a", "type": "function", '
        b'"function": {"name": "f", "arguments": ""}}]}}]}\n\n'),
    (3, b'data: {"choices": [{"delta": {"tool_calls": [{"index": 1, '
        b'"function": {"arguments": "{}"}}]}}]}\n\n'),
    (4, b"data: [DONE]\n\n"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "has"),
    [
        (RepeatedIds(), b'"name": "f", "arguments": "{}"'),
        (NoIndex(), b'"tool_calls": [{"function"'),
        (OddIndex(), b'"index": 3'),
    ],
    ids=lambda each: type(each).__name__,
)
def test_fragments_of_calls_are_written_otherwise(fault: Fault, has: bytes) -> None:
    made = laid_over(replace(CALLS, protocol="openai_chat"), fault)
    assert has in made.chunks[1].data
    with pytest.raises(UsageError, match=r"anthropic has no such fragments; choose another fault"):
        laid_over(replace(CALLS, protocol="anthropic"), fault)


@pytest.mark.parametrize("given", [THREE, WHOLE])
def test_a_request_fails_in_the_words_of_its_protocol(given: Interaction) -> None:
    given = replace(given, protocol="anthropic")
    made = laid_over(given, Http(429, "slow down", retry_after=2 * S))
    assert (made.status, first(made.headers, "retry-after")) == (429, "2")
    assert b'"rate_limit_error"' in made.body
    assert (made.head_at, made.ended_at, made.chunks[0].at, made.ended) == (S, S, S, "complete")
    assert laid_over(given, JsonError("no")).status == 200
    assert first(laid_over(given, GenerateFails("no")).headers, "x-should-retry") == "false"
    dated = laid_over(given, Http(503, retry_after=S, retry_as="date"), now=1_700_000_000)
    assert first(dated.headers, "retry-after") == "Tue, 14 Nov 2023 22:13:21 GMT"


def test_an_answer_that_is_no_stream_tells_of_an_error_instead() -> None:
    given = replace(WHOLE, protocol="gemini")
    for fault in (ErrorFrame(1, "too busy"), StreamFails(1, "too busy", reported=True)):
        made = laid_over(given, fault)
        assert made.status in (500, 503)
        assert b"too busy" in made.body


LOST = replace(THREE, status=None, headers=(), chunks=(), ended="dropped")


@pytest.mark.parametrize(
    ("given", "fault", "why"),
    [
        (THREE, DoneTwice(), "what was recorded ends only once"),
        (THREE, LateThinking(), "what was recorded ends only once"),
        (LOST, Reset(1), "there was no answer that it could happen to"),
        (LOST, Split(1), "there was no answer that it could happen to"),
        (THREE, Http(500), "it is of no protocol that is known"),
        (THREE, ErrorFrame(1), "it is of no protocol that is known"),
        (THREE, NoIndex(), "its protocol has no such fragments"),
        (WHOLE, Comments(), "its answer is no stream"),
        (replace(THREE, protocol="openai_chat"), ErrorFrame(1), "the request cannot be read ("),
        (
            heard((2, b"data: {1}\n\n"), protocol="openai_chat"),
            EmptyChoices(),
            "its frames are not as the protocol has them (",
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_makes_no_sense_is_refused(given: Interaction, fault: Fault, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        laid_over(given, fault)
    named = str(fault.__struct_config__.tag)
    assert str(caught.value).startswith(
        f"the fault {named} cannot happen to the recorded POST /v1/x: {why}"
    )
