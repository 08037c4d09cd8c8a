"""What is written is read again, whole and streamed, however it is cut, and whatever else comes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.messages import Image, Message, ModelRequest, Text, ToolSchema
from harness.core.reply import ReplyDone, TextDelta, ThinkingDelta, UsageReport
from harness.fakes.script import Reply
from harness.testing.strategies import histories
from harness.testing.strategies_values import TEXTS
from harness.wire import sse
from harness.wire.codec import Answer, Asked, Cut, Garbled, Noise, Truncated, Unreadable
from harness.wire.http import Request
from harness.wire.openai_chat.decoder import ChatDecoder
from harness.wire.writing import bytes_of
from tests.wire.openai_chat.making import (
    ASKED,
    CODEC,
    COUNTED,
    CUTS,
    NOISES,
    given_replies,
    parts_of,
    pieces,
    read,
    sent,
)


@given(given_replies(), st.integers(0, 3), CUTS, NOISES, st.data())
def test_a_streamed_reply_is_read_as_it_was_from_any_pieces(
    given_reply: tuple[Reply, Answer], chunking: int, cut: Cut, noise: Noise, data: st.DataObject
) -> None:
    reply, answer = given_reply
    given_parts = parts_of(reply, answer, chunking)
    frames = sent(COUNTED, answer, given_parts, cut, noise)
    parts, found = read(data.draw(st.composite(pieces)(b"".join(frames))))
    assert found == answer
    deltas = [part for part in given_parts if isinstance(part, TextDelta | ThinkingDelta)]
    assert parts == [*deltas, UsageReport(answer.usage)]


@given(given_replies(), NOISES)
def test_whole_and_streamed_give_the_same(given_reply: tuple[Reply, Answer], noise: Noise) -> None:
    reply, answer = given_reply
    whole = CODEC.read_answer(CODEC.answer(ASKED, answer, noise))
    assert whole == answer
    _, unasked = read(sent(ASKED, answer, parts_of(reply, answer), noise=noise))
    assert unasked == replace(answer, usage=None)


@given(given_replies(), CUTS, NOISES, st.sampled_from(["\r\n", "\r", "\n"]), st.booleans())
def test_ends_of_lines_and_missing_spaces_change_nothing(
    given_reply: tuple[Reply, Answer], cut: Cut, noise: Noise, end: str, tight: bool
) -> None:
    reply, answer = given_reply
    whole = b"".join(sent(COUNTED, answer, parts_of(reply, answer), cut, noise))
    whole = whole.replace(b"\n", end.encode())
    if tight:
        whole = whole.replace(b"data: ", b"data:")
    assert read([whole])[1] == answer


@given(given_replies(), CUTS, st.booleans())
def test_a_stream_cut_anywhere_is_whole_or_told_to_be_cut(
    given_reply: tuple[Reply, Answer], cut: Cut, counted: bool
) -> None:
    reply, answer = given_reply
    asked = COUNTED if counted else ASKED
    frames = sent(asked, answer, parts_of(reply, answer), cut)
    wanted = answer if counted else replace(answer, usage=None)
    decoder = CODEC.decoder()
    for n, frame in enumerate(frames, 1):
        for at in range(len(frame)):
            assert end_of(decoder) == (wanted if n == len(frames) else None)
            decoder.feed(frame[at : at + 1])
    assert decoder.end() == wanted


def end_of(decoder: ChatDecoder) -> Answer | None:
    """The whole reply, or None where it is told to be cut."""
    try:
        return decoder.end()
    except Truncated:
        return None


@given(given_replies(), st.data())
def test_a_byte_that_went_wrong_is_no_other_error(
    given_reply: tuple[Reply, Answer], data: st.DataObject
) -> None:
    reply, answer = given_reply
    whole = bytearray(b"".join(sent(COUNTED, answer, parts_of(reply, answer))))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Garbled):
        read([bytes(whole)])


def test_a_stream_without_an_end_is_garbled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LONGEST", 10)
    with pytest.raises(Garbled, match="more than 10 bytes"):
        CODEC.decoder().feed(b"data: 123456")
    with pytest.raises(Garbled, match="no UTF-8"):
        CODEC.decoder().feed(b"data: \xff\n\n")


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """What the protocol can carry of a request."""
    history = list(draw(histories()))
    while history and history[0].role == "system":
        history.pop(0)
    if draw(st.booleans()):
        picture = Image("https://pictures.test/1.png")
        sound = Image("UklGRg==", "audio/wav")
        file = Image("file-1", "application/octet-stream")
        parts = draw(st.permutations([Text("see"), Text("and"), picture, sound, file]))
        history.insert(0, Message("user", tuple(parts)))
    tools = (ToolSchema("clock"), ToolSchema("mail", "sends", {"type": "object"}))
    request = ModelRequest(
        "m",
        draw(TEXTS),
        tuple([carried(message) for message in history]),
        draw(st.sampled_from([(), tools])),
        draw(st.sampled_from([None, 0, 5])),
        draw(st.sampled_from([None, 0.5, 1])),
    )
    options = draw(st.sampled_from([{}, {"n": 2, "tool_choice": "required"}]))
    return Asked(request, draw(st.booleans()), options)


def carried(message: Message) -> Message:
    """A message without what the protocol does not carry."""
    content = [
        replace(block, signature=None) if hasattr(block, "signature") else block
        for block in message.content
        if getattr(block, "text", None) != "" or message.role != "assistant"
    ]
    if message.role == "assistant" and all(hasattr(block, "signature") for block in content):
        content.append(Text(""))
    return replace(message, content=tuple(content), is_error=False)


@given(asked())
def test_a_request_is_read_as_it_was_written(asked: Asked) -> None:
    request = CODEC.write(asked, base="http://127.0.0.1:9", key="k")
    assert CODEC.is_for(request)
    assert CODEC.read(request) == asked
    again = CODEC.write(CODEC.read(request), base="http://127.0.0.1:9", key="k")
    assert again == request


KEYS = ["role", "content", "type", "text", "tool_calls", "id", "function", "name"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)


@given(JSON)
def test_whatever_comes_is_read_or_refused(value: object) -> None:
    told = set()
    for body in (
        value,
        {"model": "m", "messages": value},
        {"model": "m", "messages": [value]},
        {"model": "m", "messages": [{"role": "assistant", "tool_calls": [value]}]},
        {"model": "m", "messages": [{"role": "user", "content": [value]}]},
        {"model": "m", "messages": [], "tools": [value]},
    ):
        try:
            CODEC.read(Request("POST", "/v1/chat/completions", (), bytes_of(body)))
        except Unreadable as error:
            told.add((error.failure.status, error.failure.kind))
    assert told <= {(400, "invalid_request_error")}


def test_a_second_end_comes_after_the_end() -> None:
    answer = Answer(Message("assistant", (Text("hi"),)), stopped="end", model="m")
    frames = sent(ASKED, answer, [TextDelta("hi"), ReplyDone(answer.message)])
    assert read(frames * 2)[1] == answer
