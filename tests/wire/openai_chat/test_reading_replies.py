"""Replies of servers that keep to the protocol more or less, and errors that they tell."""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.json_text import Json, dumps
from harness.core.messages import Message, Text, Thinking, ToolCall
from harness.wire import sse
from harness.wire.codec import Answer, Failure, Garbled, ProviderError
from harness.wire.http import Response
from tests.wire.openai_chat.making import CODEC, read

A, B = ToolCall("a", "f", {"x": 1}), ToolCall("b", "g", {})


def chunk(delta: Json = None, reason: str | None = None, **more: Json) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return sse.frame(dumps({"id": "c1", "choices": [choice], **more}))


def calls(*fragments: Json) -> list[bytes]:
    """A stream of fragments, each in a delta for itself."""
    return [*[chunk({"tool_calls": [each]}) for each in fragments], chunk(reason="tool_calls")]


def piece(index: int | None, call_id: str | None, name: str | None, arguments: str) -> Json:
    """A fragment of a call, without what is None."""
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    rest: dict[str, Any] = {"index": index, "id": call_id}
    return {key: value for key, value in rest.items() if value is not None} | {"function": function}


@pytest.mark.parametrize(
    "fragments",
    [
        pytest.param(
            [
                piece(0, "a", "f", ""),
                piece(1, "b", "g", ""),
                piece(0, None, None, '{"x"'),
                piece(1, None, None, "{}"),
                piece(0, None, None, ": 1}"),
            ],
            id="interleaved",
        ),
        pytest.param([piece(0, "a", "f", '{"x": 1}'), piece(1, "b", "g", "{}")], id="whole"),
        pytest.param([piece(3, "b", "g", "{}"), piece(1, "a", "f", '{"x": 1}')], id="gap"),
        pytest.param(
            [
                piece(None, "a", "f", '{"x"'),
                piece(None, None, None, ": 1}"),
                piece(None, "b", "g", "{}"),
            ],
            id="without index",
        ),
        pytest.param(
            [
                piece(0, "a", "f", '{"x"'),
                piece(0, "a", "f", ": 1}"),
                piece(1, "b", "g", ""),
                piece(1, "b", "g", "{}"),
            ],
            id="id and name repeated",
        ),
        pytest.param(
            [
                piece(0, "a", "f", '{"x"'),
                piece(0, "other", None, ": 1}"),
                piece(0, "b", "g", "{}"),
            ],
            id="one index for all",
        ),
    ],
)
def test_calls_of_odd_servers(fragments: list[Json]) -> None:
    _, answer = read(calls(*fragments))
    assert (answer.message.calls, answer.stopped) == ([A, B], "calls")


def test_calls_are_what_a_reply_stopped_for_whatever_it_says() -> None:
    *rest, _ = calls(piece(0, "a", "f", '{"x": 1}'))
    ends = ("stop", "tool_calls", "function_call", "length", "content_filter")
    found = [read([*rest, chunk({"tool_calls": None}, each)])[1].stopped for each in ends]
    assert found == ["calls", "calls", "calls", "length", "filtered"]


def test_a_call_without_an_id_is_named_after_its_place() -> None:
    _, answer = read(calls(piece(2, None, "f", '{"x": 1'), {"index": 5, "type": "function"}))
    assert answer.message.calls == [
        ToolCall("call_0", "f", None, '{"x": 1'),
        ToolCall("call_1", "", None, ""),
    ]


def test_what_else_odd_servers_do() -> None:
    frames = [
        chunk(
            {"role": "assistant", "reasoning": "Hm", "content": None}, usage={"prompt_tokens": 1}
        ),
        chunk({"role": "assistant", "content": "H"}, usage=None),
        sse.frame(dumps({"choices": [{"index": 1, "delta": {"content": "other"}}]})),
        sse.frame(dumps({"choices": [{"delta": {"content": "i", "reasoning": {"a": 1}}}]})),
        sse.frame(dumps({"object": "unknown", "created": 1.5})),
        sse.frame(dumps({"choices": [{"finish_reason": "new_reason"}]})),
        sse.frame("[DONE]"),
        sse.frame("{}"),
        b"data: after the end\n\n",
    ]
    for pieces in (frames, [b"".join(frames)]):
        _, answer = read(pieces)
        assert answer.message == Message("assistant", (Thinking("Hm"), Text("Hi")))
        assert (answer.stopped, answer.created) == ("end", 1)
        assert answer.usage is not None
        assert answer.usage.prompt_tokens == 1


def test_halves_of_a_character_are_joined() -> None:
    _, answer = read([chunk({"content": "\ud83d"}), chunk({"content": "\ude00"}, "stop")])
    assert answer.message.text == "😀"


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (b"data: null\n\n", "the reply: expected an object, but got null instead"),
        (b"data: {\n\n", "a chunk is no JSON"),
        (b"data:\n\n", "a chunk is no JSON"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "a chunk is no JSON"),
        (chunk({"content": 5}), r"choices\[0\].delta.content: expected a string"),
        (chunk({"tool_calls": [{"index": "0"}]}), r"tool_calls\[0\].index: expected an integer"),
        (chunk({"tool_calls": 1}), r"tool_calls: expected an array"),
        (chunk(usage={"prompt_tokens": "9"}), r"usage.prompt_tokens: expected an integer"),
        (b'data: {"choices": {}}\n\n', r"choices: expected an array"),
        (b'data: {"id": 1}\n\n', r"id: expected a string"),
        (b'data: {"created": 1e999}\n\n', "a chunk is no JSON"),
    ],
)
def test_what_is_no_chunk_is_garbled(frame: bytes, told: str) -> None:
    with pytest.raises(Garbled, match=told):
        CODEC.decoder().feed(frame)


def test_an_error_in_the_middle() -> None:
    error = {"message": "slow", "type": "tokens", "code": "rate_limit_exceeded", "param": None}
    decoder = CODEC.decoder()
    decoder.feed(chunk({"content": "Hi"}))
    with pytest.raises(ProviderError, match="slow") as raised:
        decoder.feed(sse.frame(dumps({"error": error})))
    assert raised.value.failure == Failure(200, "slow", "tokens", "rate_limit_exceeded")


def body(value: Json, status: int = 200) -> Response:
    return Response(status, (("x-request-id", "r1"),), dumps(value).encode())


@pytest.mark.parametrize(
    ("response", "failure"),
    [
        (
            body({"error": {"message": "m", "type": "t", "param": "p", "code": 5}}, 400),
            Failure(400, "m", "t", "5", "p"),
        ),
        (body({"error": {}}, 500), Failure(500, "status 500")),
        (body({"error": "broken"}), Failure(200, "broken")),
        (body([], 404), Failure(404, "status 404")),
        (Response(502, (("x-request-id", "r1"),), b"<html>"), Failure(502, "status 502")),
    ],
)
def test_an_error_as_a_whole_response(response: Response, failure: Failure) -> None:
    with pytest.raises(ProviderError) as raised:
        CODEC.read_answer(response)
    found = raised.value.failure
    assert found.headers == (("x-request-id", "r1"),)
    words = (found.status, found.message, found.kind, found.code, found.param)
    assert words == (failure.status, failure.message, failure.kind, failure.code, failure.param)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "the reply: expected an object"),
        ({}, "choices: expected an array, but got nothing instead"),
        ({"choices": []}, "no choices"),
        ({"choices": [{"index": 1}]}, "no choices"),
        ({"choices": [{}]}, r"choices\[0\].message: expected an object, but got nothing"),
        ({"choices": [{"message": {"content": []}}]}, "content: expected a string"),
    ],
)
def test_what_is_no_reply_is_garbled(value: Json, told: str) -> None:
    with pytest.raises(Garbled, match=told):
        CODEC.read_answer(body(value))
    with pytest.raises(Garbled):
        CODEC.read_answer(Response(200, (), b"no JSON"))


def test_the_least_of_a_reply() -> None:
    found = CODEC.read_answer(body({"choices": [{"message": {"content": "Hi"}}]}))
    assert found == Answer(Message("assistant", (Text("Hi"),)))
