"""Streams as servers and gateways mangle them: what is no word of the reply changes nothing in it,
what is one is not lost, and an error is never an empty reply.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.core.messages import Message, ModelRequest, Text, ToolCall, Usage
from harness.core.reply import ReplyDone, TextDelta
from harness.wire import CODECS, sse
from harness.wire.codec import Answer, Asked, Codec, Failure, Garbled, ProviderError, Truncated

EACH = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
ASKED = Asked(ModelRequest("m-1", "", ()), True, {"stream_options": {"include_usage": True}})
MESSAGE = Message(
    "assistant", (Text("Let me see."), ToolCall("a", "f", {"x": 1}), ToolCall("b", "g", {}))
)
ANSWER = Answer(MESSAGE, Usage(9, 5, 14), "calls", None, "reply-1", "m-1")


def frames(codec: Codec, answer: Answer = ANSWER) -> list[bytes]:
    """A reply as the provider sends it, frame by frame."""
    encoder = codec.encoder(ASKED, answer, cut=lambda text: [text[:4], text[4:]])
    parts = [TextDelta(answer.message.text), ReplyDone(answer.message)]
    return [*[frame for part in parts for frame in encoder.part(part)], *encoder.end()]


def read(codec: Codec, *sent: bytes) -> Answer:
    decoder = codec.decoder()
    for piece in sent:
        decoder.feed(piece)
    return decoder.end()


@EACH
@pytest.mark.parametrize(
    "noise",
    [b": ping\n\n", b":\n", b"\n\n\n", b"id: 7\n\n", b"retry: 3000\n\n", b"event: ping\n\n"],
)
def test_what_says_nothing_changes_nothing_wherever_it_stands(codec: Codec, noise: bytes) -> None:
    sent = frames(codec)
    plain = read(codec, *sent)
    assert (plain.message.text, plain.message.calls) == (MESSAGE.text, MESSAGE.calls)
    for place in range(len(sent) + 1):
        assert read(codec, *sent[:place], noise, *sent[place:]) == plain
    assert read(codec, b"".join([piece for each in sent for piece in (noise, each)])) == plain


@EACH
def test_a_ping_without_data_is_one_where_the_protocol_has_pings(codec: Codec) -> None:
    ping = b"event: ping\ndata: \n\n"
    if codec.name == "anthropic":
        assert read(codec, ping, *frames(codec), ping) == read(codec, *frames(codec))
    else:
        with pytest.raises(Garbled, match="no JSON: ''"):
            read(codec, ping, *frames(codec))


@EACH
def test_an_error_as_the_first_event_is_the_providers_error(codec: Codec) -> None:
    sent = list(codec.encoder(ASKED, ANSWER).failure(Failure(429, "Slow down.")))
    with pytest.raises(ProviderError, match=r"Slow down\.") as raised:
        read(codec, *sent)
    assert raised.value.failure.kind or raised.value.failure.code  # told by its words


@EACH
@pytest.mark.parametrize("tail", [b"", b"\n", b"<html>Bad gateway</html>"])
def test_an_error_that_is_no_event_is_no_empty_reply(codec: Codec, tail: bytes) -> None:
    bare = b'{"error": {"message": "no", "type": "server_error"}}'
    for sent in (bare + tail, tail):
        with pytest.raises(Truncated, match="the stream ended before the reply did"):
            read(codec, sent)


@EACH
def test_what_no_empty_line_closes_at_the_end_is_no_success(codec: Codec) -> None:
    for sent in ([], list(codec.encoder(ASKED, ANSWER).part(TextDelta("Let me")))):
        error = b"".join(codec.encoder(ASKED, ANSWER).failure(Failure(500, "no"))).rstrip()
        with pytest.raises(Truncated):
            read(codec, *sent, error)


@EACH
def test_a_call_without_arguments_is_the_same_whole_and_streamed(codec: Codec) -> None:
    alone = Answer(
        Message("assistant", (ToolCall("a", "clock", {}),)), Usage(1, 1, 2), "calls", None, "r", "m"
    )
    whole = codec.read_answer(codec.answer(ASKED, alone))
    assert whole.message.calls == [ToolCall("a", "clock", {})]
    encoder = codec.encoder(ASKED, alone)
    sent = [*encoder.part(ReplyDone(alone.message)), *encoder.end()]
    assert read(codec, *sent).message == whole.message


# --- calls in OpenAI's Chat Completions, as compatible servers send them


CHAT = next(codec for codec in CODECS if codec.name == "openai_chat")
DONE = sse.frame("[DONE]")


def chunk(*fragments: Any, choices: Any = None, reason: str | None = None, **more: Any) -> bytes:
    delta = {"tool_calls": list(fragments)} if fragments else {}
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return sse.frame(json.dumps({"choices": [choice] if choices is None else choices, **more}))


def piece(index: int, arguments: str | None, **head: str) -> Any:
    name = {"name": head.pop("name")} if "name" in head else {}
    return {"index": index, **head, "function": {**name, "arguments": arguments}}


def called(*sent: bytes, reason: str = "tool_calls") -> list[ToolCall]:
    return read(CHAT, *sent, chunk(reason=reason), DONE).message.calls


def test_two_pieces_of_one_call_may_come_in_one_chunk() -> None:
    first = chunk(piece(0, "", id="a", name="f"), piece(0, '{"x"'))
    assert called(first, chunk(piece(0, ": 1}"))) == [ToolCall("a", "f", {"x": 1})]


@pytest.mark.parametrize("more", ["", " ", "\n"])
def test_a_call_whose_arguments_could_be_whole_already_is_one_call(more: str) -> None:
    begun = chunk(piece(0, '{"x": 1}', id="a", name="f"))
    assert called(begun, chunk(piece(0, more))) == [ToolCall("a", "f", {"x": 1})]
    number = chunk(piece(0, "1", id="a", name="f"))
    assert called(number, chunk(piece(0, "2")), chunk(piece(0, more))) == [ToolCall("a", "f", 12)]


def test_arguments_that_are_null_are_a_call_with_nothing_in_it() -> None:
    assert called(chunk(piece(0, None, id="a", name="f"))) == [ToolCall("a", "f", None, "")]
    body = {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
    choice = {"index": 0, "message": {"role": "assistant", "tool_calls": [body]}}
    response = CHAT.answer(ASKED, ANSWER)
    whole = type(response)(200, (), json.dumps({"choices": [choice]}).encode())
    assert CHAT.read_answer(whole).message.calls == [ToolCall("a", "f", None, "")]


def test_no_piece_of_arguments_is_dropped_though_nobody_knows_whose_it_is() -> None:
    sent = [chunk(piece(0, '{"x"', id="a", name="f"))]
    sent += [chunk(piece(n, each)) for n, each in enumerate((": ", "1", "}"), 1)]
    assert [call.raw for call in called(*sent)] == ['{"x"', ": ", None, "}"]
    assert [call.name for call in called(*sent)] == ["f", "", "", ""]


def test_a_reply_that_says_stop_and_has_calls_asks_for_them() -> None:
    assert called(chunk(piece(0, "{}", id="a", name="f")), reason="stop") == [
        ToolCall("a", "f", {})
    ]


@pytest.mark.parametrize("extra", [{}, {"usage": {"prompt_tokens": 3}}, {"x_filter": []}])
def test_chunks_without_choices_may_stand_anywhere(extra: Any) -> None:
    sent = [
        chunk(piece(0, '{"x"', id="a", name="f")),
        chunk(piece(0, ": 1}")),
        chunk(reason="tool_calls"),
        DONE,
    ]
    for place in range(len(sent)):
        found = read(CHAT, *sent[:place], chunk(choices=[], **extra), *sent[place:])
        assert found.message.calls == [ToolCall("a", "f", {"x": 1})]
        assert (found.usage == Usage(3)) is ("usage" in extra)


def test_a_stream_without_done_is_whole_with_its_reason_alone() -> None:
    text = sse.frame('{"choices": [{"delta": {"content": "Hi"}}]}')
    assert read(CHAT, text, chunk(reason="stop")).message.text == "Hi"
    with pytest.raises(Truncated, match="no finish_reason came"):
        read(CHAT, text)
