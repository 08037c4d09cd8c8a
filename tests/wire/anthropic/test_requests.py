"""A request is read to the neutral form, and written from it."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.core.messages import (
    Image,
    Message,
    ModelRequest,
    Text,
    Thinking,
    ToolCall,
    ToolSchema,
    assistant,
    tool_result,
    user,
)
from harness.testing.strategies import TEXTS
from harness.wire.anthropic_words import OTHERS, redacted
from harness.wire.codec import Asked, Unreadable
from harness.wire.http import Request
from harness.wire.strict.anthropic import RULES
from harness.wire.strict.rule import Case, Issued, refusal
from tests.wire.anthropic.answers import CODEC, OBJECTS, RAWS, THOUGHTS, altered

VERSION = ("anthropic-version", "2026-10-21")
IMAGES = st.sampled_from(
    [
        Image("data:image/png;base64,iVBORw0KGgo=", "image/png"),
        Image("https://example.com/cat.png"),
        Image("file_011CNha8iCJcU1wXNR6q4V8w"),
    ]
)
SAID = st.one_of(st.builds(Text, TEXTS), IMAGES)
CALLS = st.one_of(
    st.builds(ToolCall, st.just("toolu_1"), st.just("f"), OBJECTS),
    st.builds(ToolCall, st.just("toolu_1"), st.just("f"), st.none(), RAWS),
)
MESSAGES = st.one_of(
    st.builds(Message, st.sampled_from(["user", "system"]), st.lists(SAID, max_size=3).map(tuple)),
    st.lists(st.one_of(SAID, THOUGHTS, CALLS), max_size=3).map(
        lambda blocks: Message("assistant", tuple(blocks))
    ),
    st.builds(
        Message,
        st.just("tool"),
        st.lists(SAID, max_size=2).map(tuple),
        st.sampled_from(["toolu_1", "toolu_2"]),
        st.booleans(),
    ),
)
TOOLS = st.builds(ToolSchema, st.just("f"), TEXTS, OBJECTS)
OPTIONS = st.fixed_dictionaries(
    {"anthropic-version": st.sampled_from(["2023-06-01", "2026-10-21"])},
    optional={
        "anthropic-beta": st.just("one,two"),
        "thinking": st.just({"type": "enabled", "budget_tokens": 1024}),
        "tool_choice": st.just({"type": "any"}),
        "metadata": st.just({"user_id": "7"}),
        "stop_sequences": st.just(["END"]),
        "tools": st.just([{"type": "web_search_20250305", "name": "web_search"}]),
    },
)
ASKED = st.builds(
    Asked,
    st.builds(
        ModelRequest,
        st.just("claude-x"),
        TEXTS,
        st.lists(MESSAGES, max_size=5).map(tuple),
        st.lists(TOOLS, max_size=2).map(tuple),
        st.integers(0, 99),
        st.none() | st.just(0.5),
    ),
    st.booleans(),
    OPTIONS,
)


def request(headers: tuple[tuple[str, str], ...] = (VERSION,), **body: object) -> Request:
    whole = {"model": "m", "max_tokens": 9, "messages": []} | body
    return Request("POST", "/v1/messages?beta=true", headers, json.dumps(whole).encode())


def read(*messages: object, **body: object) -> tuple[Message, ...]:
    return CODEC.read(request(messages=list(messages), **body)).request.messages


def refused(of: Request) -> str:
    with pytest.raises(Unreadable) as raised:
        CODEC.read(of)
    failure = raised.value.failure
    assert (failure.status, failure.kind) == (400, "invalid_request_error")
    return failure.message


@given(ASKED)
def test_what_is_written_is_read(asked: Asked) -> None:
    assert CODEC.read(CODEC.write(asked)) == asked


@given(ASKED, st.data())
def test_a_request_that_was_mangled_is_refused_or_read(asked: Asked, data: st.DataObject) -> None:
    """Whatever stands in it, the provider has an answer: so have its rules."""
    body = json.loads(CODEC.write(asked).body)
    for _ in range(data.draw(st.integers(1, 3))):
        body = data.draw(altered(body))
    sent = Request("POST", "/v1/messages", (VERSION,), json.dumps(body).encode())
    with contextlib.suppress(Unreadable):
        assert isinstance(CODEC.read(sent), Asked)
    if isinstance(body, dict):
        refusal(Case(body, VERSION[1], Issued()), RULES, pedantic=True)


def test_what_the_protocol_needs_and_nobody_says() -> None:
    asked = Asked(ModelRequest("m", "", (user("Hi"),)))
    read = CODEC.read(CODEC.write(asked))
    assert read.request == replace(asked.request, max_tokens=4096)
    assert read.options == {"anthropic-version": "2023-06-01"}
    bare = replace(asked.request, tools=(ToolSchema("now"),))
    [tool] = CODEC.read(CODEC.write(Asked(bare))).request.tools
    assert tool == ToolSchema("now", "", {"type": "object"})
    thinking = Message("assistant", (Thinking("why"), ToolCall("a b", "f", None, "")))
    result = Message("tool", (Thinking("no"), Text("x")))
    asked = replace(asked, request=replace(asked.request, messages=(thinking, result)))
    assert CODEC.read(CODEC.write(asked)).request.messages == (
        Message("assistant", (Thinking("why"), ToolCall("a b", "f", {}))),
        Message("tool", (Text("x"),), ""),
    )


def test_the_body_and_headers_of_a_request() -> None:
    calls = ToolCall("toolu_1", "f", {"a": 1}), ToolCall("toolu_2", "g", None, "{")
    said = Message("assistant", (Thinking("why", "sig=="), redacted("EmwK"), Text("Hi"), *calls))
    messages = (
        user("Go"),
        said,
        tool_result("toolu_1", "sunny"),
        Message("tool", (), "toolu_2", True),
        user("And?"),
        assistant("Yes."),
    )
    tools = (ToolSchema("f", "Look.", {"type": "object"}), ToolSchema("g", "", {}))
    asked = ModelRequest("claude-x", "Be brief.", messages, tools, 99, 0.5)
    options = {"tool_choice": {"type": "auto"}, "anthropic-beta": "one"}
    sent = CODEC.write(Asked(asked, True, options), base="http://here:1", key="secret")
    assert (sent.method, sent.url) == ("POST", "http://here:1/v1/messages")
    assert sent.headers == (
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "one"),
        ("x-api-key", "secret"),
    )
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
    bad = {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {"INVALID_JSON": "{"}}
    assert json.loads(sent.body) == {
        "model": "claude-x",
        "max_tokens": 99,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "why", "signature": "sig=="},
                    {"type": "redacted_thinking", "data": "EmwK"},
                    {"type": "text", "text": "Hi"},
                    use,
                    bad,
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": True},
                ],
            },
            {"role": "user", "content": "And?"},
            {"role": "assistant", "content": "Yes."},
        ],
        "tools": [
            {"name": "f", "description": "Look.", "input_schema": {"type": "object"}},
            {"name": "g", "input_schema": {}},
        ],
        "temperature": 0.5,
        "tool_choice": {"type": "auto"},
        "stream": True,
    }


def test_a_key_goes_where_the_version_wants_it() -> None:
    asked = Asked(ModelRequest("m", "", ()), options={"anthropic-version": "2026-10-21"})
    sent = CODEC.write(asked, key="secret")
    assert sent.header("authorization") == "Bearer secret"
    assert sent.header("x-api-key") is None
    assert {"authorization", "x-api-key"} <= CODEC.secrets.headers
    assert "authorization" not in dict(CODEC.write(asked).headers)


def test_a_users_message_is_one_or_its_results_and_what_is_around() -> None:
    text = {"type": "text", "text": "a"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text, text]}
    bare = {"type": "tool_result", "tool_use_id": "u", "is_error": True}
    assert read({"role": "user", "content": [text, result, bare, text, text]}) == (
        user("a"),
        Message("tool", (Text("a"), Text("a")), "t"),
        Message("tool", (), "u", True),
        Message("user", (Text("a"), Text("a"))),
    )
    assert read({"role": "user", "content": [result]}) == (
        Message("tool", (Text("a"), Text("a")), "t"),
    )
    assert read({"role": "user", "content": []}) == (Message("user"),)


@pytest.mark.parametrize("kind", sorted(OTHERS))
def test_what_the_neutral_form_has_no_room_for_is_left_out(kind: str) -> None:
    text = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    assert read({"role": "assistant", "content": [{"type": kind}, text]}) == (assistant("a"),)
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": kind}]}
    assert read({"role": "user", "content": [result]}) == (Message("tool", (), "t"),)


def test_system_and_tools_in_all_their_spellings() -> None:
    blocks = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    own = {"type": "custom", "name": "f", "description": None, "input_schema": {"type": "object"}}
    theirs = {"type": "bash_20250124", "name": "bash"}
    headers = (VERSION, ("anthropic-beta", "one"), ("anthropic-beta", "two"))
    asked = CODEC.read(request(headers, system=blocks, tools=[theirs, own], top_k=3, stream=True))
    assert asked.request.system == "One.\n\nTwo."
    assert asked.request.tools == (ToolSchema("f", "", {"type": "object"}),)
    assert asked.stream
    assert asked.options == {
        "tools": [theirs],
        "top_k": 3,
        "anthropic-version": "2026-10-21",
        "anthropic-beta": "one,two",
    }
    assert CODEC.read(request(system=None)).request.system == ""


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (request(headers=()), "anthropic-version: header is required"),
        (
            request(headers=(VERSION, VERSION)),
            'anthropic-version: "2026-10-21,2026-10-21" is not a valid version',
        ),
        (Request("POST", "/", (VERSION,), b'{"max_tokens": 1}'), "messages: Field required"),
        (Request("POST", "/", (VERSION,), b"{}"), "max_tokens: Field required"),
        (request(max_tokens=None), "max_tokens: Input should be a valid integer"),
        (request(max_tokens="9"), "max_tokens: Input should be a valid integer"),
        (request(model=9), "model: Input should be a valid string"),
        (request(messages={}), "messages: Input should be a valid list"),
        (request(temperature="hot"), "temperature: Input should be a valid number"),
        (request(stream=1), "stream: Input should be a valid boolean"),
        (request(tools=[1]), "tools.0.custom: Input should be a valid dictionary"),
        (request(tools=[{}]), "tools.0.custom.name: Field required"),
        (request(tools=[{"name": "f"}]), "tools.0.custom.input_schema: Field required"),
        (Request("POST", "/v1/messages", (VERSION,), b"{"), "The request body is not valid JSON"),
        (Request("POST", "/v1/messages", (VERSION,), b"[]"), "Input should be a valid dictionary"),
    ],
)
def test_a_body_of_a_wrong_form_is_refused(wrong: Request, told: str) -> None:
    assert refused(wrong) == told


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"role": "tool", "content": ""}, "role: Input should be 'user', 'assistant' or 'system'"),
        ({"role": "user"}, "content: Field required"),
        ({"role": "user", "content": 1}, "content: Input should be a valid list"),
        ({"role": "user", "content": ["a"]}, "content.0: Input should be a valid dictionary"),
        ({"role": "user", "content": [{}]}, "content.0.type: Field required"),
        (
            {"role": "user", "content": [{"type": "text"}]},
            "content.0.text.text: Field required",
        ),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]},
            "content.0.thinking.signature: Field required",
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}],
            },
            "content.0.tool_use.input: Input should be a valid dictionary",
        ),
        (
            {"role": "user", "content": [{"type": "image", "source": {"type": "disk"}}]},
            "content.0.image.source: Input tag 'disk' found using 'type' does not match any of "
            "the expected tags: 'base64', 'file', 'url'",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result"}]},
            "content.0.tool_result.tool_use_id: Field required",
        ),
    ],
)
def test_a_message_of_a_wrong_form_is_refused(message: object, told: str) -> None:
    assert refused(request(messages=[message])) == f"messages.0.{told}"


def test_a_block_that_nobody_knows_is_refused() -> None:
    told = refused(request(messages=[{"role": "user", "content": [{"type": "image_url"}]}]))
    tags = "Input tag 'image_url' found using 'type' does not match any of the expected tags: "
    assert told.startswith(f"messages.0.content.0: {tags}'bash_code_execution_tool_result', ")


def test_which_requests_are_for_this_protocol() -> None:
    assert CODEC.is_for(request())
    assert CODEC.is_for(Request("POST", "http://here/proxy/v1/messages"))
    assert not CODEC.is_for(Request("GET", "/v1/messages"))
    assert not CODEC.is_for(Request("POST", "/v1/messages/count_tokens"))
    assert CODEC.stream_type() == "text/event-stream; charset=utf-8"
