"""What clients ask for, in every form in which they say it, and what the provider will not read."""

from __future__ import annotations

from typing import Any

import pytest

from harness.core.json_text import Json, dumps, loads
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
from harness.wire.codec import Asked, Unreadable
from harness.wire.http import Request
from tests.wire.openai_chat.making import CODEC


def request(body: Json) -> Request:
    return Request("POST", "/v1/chat/completions", (), dumps(body).encode())


def read(*messages: Json, **rest: Json) -> Asked:
    return CODEC.read(request({"model": "m", "messages": list(messages), **rest}))


def called(**more: Json) -> Json:
    function = {"name": "f", "arguments": '{"x": 1}'}
    return {"id": "a", "type": "function", "function": function, **more}


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ({"role": "user", "content": "Hi", "name": "ann"}, user("Hi")),
        (
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            user("Hi"),
        ),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]},
            Message("user", (Image("u"),)),
        ),
        (
            {"role": "user", "content": [{"type": "file", "file": {"file_data": "JVBE"}}]},
            Message("user", (Image("JVBE", "application/octet-stream"),)),
        ),
        ({"role": "user", "content": []}, Message("user")),
        ({"role": "assistant", "content": "Hi", "x_new": 1}, assistant("Hi")),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}, assistant("No")),
        ({"role": "assistant", "content": None, "refusal": "No"}, assistant("No")),
        (
            {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "reasoning_content": "Hm",
                "tool_calls": [called()],
            },
            Message("assistant", (Thinking("Hm"), ToolCall("a", "f", {"x": 1}))),
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "b", "type": "custom", "custom": {"name": "g", "input": "ls"}}
                ],
            },
            Message("assistant", (Text(""), ToolCall("b", "g", "ls"))),
        ),
        ({"role": "tool", "content": "r", "tool_call_id": "a"}, tool_result("a", "r")),
        (
            {"role": "tool", "content": [{"type": "text", "text": "r"}], "tool_call_id": ""},
            tool_result("", "r"),
        ),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{"}},
            assistant("", ToolCall("f", "f", None, "{")),
        ),
        ({"role": "function", "name": "f", "content": "r"}, tool_result("f", "r")),
    ],
)
def test_messages(message: Json, wanted: Message) -> None:
    assert read(message).request == ModelRequest("m", "", (wanted,))


def test_messages_that_begin_a_conversation_are_the_system_prompt() -> None:
    found = read(
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "Now."},
    )
    assert found.request.system == "Be kind.\n\nBe brief."
    assert found.request.messages == (user("Hi"), Message("system", (Text("Now."),)))
    assert read({"role": "system", "content": "Be kind."}).request.system == "Be kind."


def test_what_stands_beside_the_messages() -> None:
    options = {
        "n": 2,
        "stream_options": {"include_usage": True},
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_object"},
        "max_output_tokens": 5,
    }
    found = read(stream=True, temperature=0.5, max_tokens=7, **options)
    assert (found.stream, found.options) == (True, options)
    assert (found.request.temperature, found.request.max_tokens) == (0.5, 7)
    assert read(max_tokens=7, max_completion_tokens=0).request.max_tokens == 0
    assert read(stream=None).stream is False


def test_tools() -> None:
    plain = {"name": "f", "description": "does", "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": plain}]
    found = read(tools=tools)
    assert found.request.tools == (ToolSchema("f", "does", {"type": "object"}),)
    assert found.options == {}
    strict: Json = [{"type": "function", "function": {**plain, "strict": True}}]
    custom: Json = [{"type": "custom", "custom": {"name": "g", "format": {"type": "text"}}}]
    history = [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "b", "type": "custom", "custom": {"name": "g", "input": "ls"}}],
        },
    ]
    found = read(*history, tools=strict + custom)
    assert found.request.tools[1] == ToolSchema("g")
    assert found.options == {"tools": strict + custom}
    written = loads(CODEC.write(found).body)
    assert (written["tools"], written["messages"]) == (strict + custom, history)
    assert read(tools=None).request.tools == ()


def test_the_body_that_is_written() -> None:
    history = (
        Message("user", (Text("a"), Text("b"))),
        assistant("", ToolCall("a", "f", {"x": 1}), ToolCall("b", "g", None, "{")),
        tool_result("a", "r", is_error=True),
        Message("tool", (), "b"),
        Message("assistant"),
    )
    asked = Asked(ModelRequest("m", "s", history, (ToolSchema("f"),), 5, 1.0), True, {"n": 1})
    request = CODEC.write(asked, base="http://h", key="k")
    assert (request.method, request.url) == ("POST", "http://h/v1/chat/completions")
    assert request.header("authorization") == "Bearer k"
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{"}},
    ]
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert loads(request.body) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": texts},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "r"},
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "assistant", "content": ""},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "max_completion_tokens": 5,
        "temperature": 1,
        "stream": True,
        "n": 1,
    }
    assert CODEC.write(asked).header("authorization") is None


def test_which_requests_are_for_it() -> None:
    assert CODEC.is_for(Request("POST", "http://h/openai/v1/chat/completions?api-version=1"))
    assert not CODEC.is_for(Request("GET", "/v1/chat/completions"))
    assert not CODEC.is_for(Request("POST", "/v1/messages"))
    assert "authorization" in CODEC.secrets.headers


MISSING = "missing_required_parameter"
TYPE = "invalid_type"
VALUE = "invalid_value"


@pytest.mark.parametrize(
    ("message", "param", "code"),
    [
        (5, "messages[0]", TYPE),
        ({}, "messages[0].role", MISSING),
        ({"role": None}, "messages[0].role", TYPE),
        ({"role": "robot", "content": "Hi"}, "messages[0].role", VALUE),
        ({"role": "user"}, "messages.[0].content", None),
        ({"role": "user", "content": None}, "messages.[0].content", None),
        ({"role": "user", "content": 5}, "messages[0].content", TYPE),
        ({"role": "user", "content": [5]}, "messages[0].content[0]", TYPE),
        ({"role": "user", "content": [{}]}, "messages[0].content[0].type", MISSING),
        ({"role": "user", "content": [{"type": "x"}]}, "messages[0].content[0].type", VALUE),
        (
            {"role": "user", "content": [{"type": "text"}]},
            "messages[0].content[0].text",
            MISSING,
        ),
        (
            {"role": "user", "content": [{"type": "file", "file": {}}]},
            "messages[0].content[0].file.file_id",
            MISSING,
        ),
        ({"role": "tool", "content": "r"}, "messages.[0].tool_call_id", None),
        ({"role": "tool", "content": None, "tool_call_id": "a"}, "messages.[0].content", None),
        ({"role": "assistant", "tool_calls": {}}, "messages[0].tool_calls", TYPE),
        ({"role": "assistant", "tool_calls": [{}]}, "messages[0].tool_calls[0].id", MISSING),
        (
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
            "messages[0].tool_calls[0].function.arguments",
            MISSING,
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "a"}]},
            "messages[0].tool_calls[0].function",
            MISSING,
        ),
    ],
)
def test_a_message_that_is_none_is_refused(message: Json, param: str, code: str | None) -> None:
    check_refused({"model": "m", "messages": [message]}, param, code)


@pytest.mark.parametrize(
    ("more", "param", "code"),
    [
        ({"model": None}, None, None),
        ({"model": 5}, "model", TYPE),
        ({"messages": None}, "messages", TYPE),
        ({"messages": "Hi"}, "messages", TYPE),
        ({"stream": "yes"}, "stream", TYPE),
        ({"temperature": "hot"}, "temperature", TYPE),
        ({"max_tokens": 1.5}, "max_tokens", TYPE),
        ({"max_completion_tokens": True}, "max_completion_tokens", TYPE),
        ({"tools": {}}, "tools", TYPE),
        ({"tools": [{}]}, "tools[0].type", MISSING),
        ({"tools": [{"type": "x"}]}, "tools[0].type", VALUE),
        ({"tools": [{"type": "function"}]}, "tools[0].function", MISSING),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom.name", MISSING),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
            "tools[0].function.parameters",
            TYPE,
        ),
    ],
)
def test_a_body_that_is_none_is_refused(more: Any, param: str | None, code: str | None) -> None:
    check_refused({"model": "m", "messages": [], **more}, param, code)


def test_what_is_no_body_at_all_is_refused() -> None:
    check_refused({"model": "m"}, "messages", MISSING)
    check_refused([], None, None)
    for text in (b"", b"{", b"\xff", b"[" * 100_000, b'{"model": NaN}'):
        with pytest.raises(Unreadable, match="could not parse") as raised:
            CODEC.read(Request("POST", "/v1/chat/completions", (), text))
        assert raised.value.failure.status == 400


def check_refused(body: Json, param: str | None, code: str | None) -> None:
    with pytest.raises(Unreadable) as raised:
        CODEC.read(request(body))
    failure = raised.value.failure
    assert (failure.status, failure.kind) == (400, "invalid_request_error")
    assert (failure.param, failure.code) == (param, code)
    assert failure.message == str(raised.value) != ""
    told = loads(CODEC.failure(failure).body)["error"]
    assert (told["param"], told["code"]) == (param, code)
