"""What chunks of a stream are said to say: what ends in them, in neutral words, if it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from harness.core.json_text import Json
from harness.transport.cassettes.form import Chunk, Interaction
from harness.transport.cassettes.view import said
from tests.transport.cassettes.samples import REFUSED, get, streamed, whole

COUNTED = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def words(name: str, *pieces: bytes, **more: Any) -> list[dict[str, Json]]:
    return said(replace(streamed(name, pieces), **more))


def frame(*told: Json, event: str = "") -> bytes:
    named = f"event: {event}\n" if event else ""
    return "".join(f"{named}data: {json.dumps(each)}\n\n" for each in told).encode()


def merged(name: str, word: str) -> list[Json]:
    return [view[word] for view in said(streamed(name)) if word in view]


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "anthropic"])
def test_all_kinds_of_parts_are_said(name: str) -> None:
    assert merged(name, "text") == ["Let me ", "see."]
    assert merged(name, "thinking") == ["Where?"]
    assert merged(name, "call") == ["weather", "clock"]
    assert '{"at": "Zürich"}' in merged(name, "arguments")
    assert merged(name, "stopped") == ["calls"]
    assert merged(name, "usage") == ([] if name == "openai_chat" else [COUNTED])


def test_several_calls_in_one_chunk_have_their_arguments_each() -> None:
    last = said(streamed("gemini"))[-1]
    assert last == {
        "call": ["weather", "clock"],
        "arguments": ['{"at":"Zürich"}', "{}"],
        "stopped": "calls",
        "usage": COUNTED,
    }


def test_a_chunk_says_what_ends_in_it() -> None:
    data = b"".join(chunk.data for chunk in streamed("anthropic").chunks)
    assert words("anthropic", data[:20], data[20:480], data[480:]) == [
        {},
        {"event": "message_start"},
        {
            "event": [
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
            ],
            "text": "Let me see.",
            "thinking": "Where?",
            "call": ["weather", "clock"],
            "arguments": '{"at": "Zürich"}',
            "stopped": "calls",
            "usage": COUNTED,
        },
    ]


def test_a_failure_in_the_middle_is_said_and_nothing_of_the_reply_behind_it() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    start, text = streamed("anthropic").chunks[0].data, streamed("anthropic").chunks[2].data
    assert words("anthropic", start, frame(error, event="error"), text) == [
        {"event": "message_start"},
        {"event": "error", "error": "overloaded_error: Overloaded"},
        {"event": "content_block_delta"},
    ]


def test_what_is_no_reply_has_its_events_only() -> None:
    other = frame({"type": "strange"}, {"type": 3}, [1])
    assert words("anthropic", other, b"data: {\n\n", b": ping\n\n") == [
        {"event": "strange"},
        {},
        {},
    ]
    assert words("anthropic", other, protocol="") == [{"event": "strange"}]
    assert words("anthropic", other, status=500) == [{"event": "strange"}]


def test_what_cannot_be_read_has_no_view_from_there_on() -> None:
    good = frame({"type": "ping"})
    assert words("anthropic", good, b"data: \xff\n\n", good) == [{"event": "ping"}, {}, {}]


@pytest.mark.parametrize(
    "given",
    [REFUSED, whole(), get(body=b"data: x\n\n"), replace(streamed("gemini"), headers=())],
)
def test_what_is_no_stream_has_no_view(given: Interaction) -> None:
    assert said(given) == [{} for _ in given.chunks]


def test_a_stream_that_stops_and_does_not_end_says_not_why() -> None:
    promised = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None}
    assert words("openai_chat", frame(promised)) == [{}]
    refused = {"type": "response.completed", "response": 1}
    assert words("openai_responses", frame(refused)) == [{"event": "response.completed"}]


@pytest.mark.parametrize(
    ("name", "told", "expected"),
    [
        (
            "openai_chat",
            {"tool_calls": [{"index": 0, "custom": {"name": "sh", "input": "ls"}}, {"index": 1}]},
            {"call": "sh", "arguments": "ls"},
        ),
        ("openai_chat", {"tool_calls": [{"function": {"name": 1, "arguments": None}}]}, {}),
    ],
)
def test_calls_of_other_kinds(name: str, told: Json, expected: dict[str, Json]) -> None:
    chunk = frame({"choices": [{"index": 0, "delta": told}]})
    assert words(name, chunk) == [expected]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {
                "type": "response.output_item.added",
                "item": {"type": "custom_tool_call", "name": "a"},
            },
            {"event": "response.output_item.added", "call": "a"},
        ),
        (
            {"type": "response.custom_tool_call_input.delta", "delta": "ls"},
            {"event": "response.custom_tool_call_input.delta", "arguments": "ls"},
        ),
    ],
)
def test_calls_of_responses(told: Json, expected: dict[str, Json]) -> None:
    assert words("openai_responses", frame({**told, "output_index": 0})) == [expected]


def test_halves_of_a_surrogate_pair_are_joined_or_marked() -> None:
    def delta(text: str) -> bytes:
        return frame({"choices": [{"index": 0, "delta": {"content": text}}]})

    assert words("openai_chat", delta("\ud83d") + delta("\ude00"), delta("\ud83d")) == [
        {"text": "😀"},
        {"text": "\ufffd"},
    ]


def test_parts_of_candidates_that_are_strange_are_passed_over() -> None:
    for content in ({"parts": [{"functionCall": {"name": 1}}, 3]}, {"parts": 1}, None):
        told = {"candidates": [{"content": content}]}
        assert words("gemini", frame(told)) == [{}]


def test_chunks_without_bytes_say_nothing() -> None:
    given = replace(streamed("gemini"), chunks=(Chunk(0, b""), Chunk(1, b"")))
    assert said(given) == [{}, {}]
