"""Requests are read in either spelling, and come back as they were written."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from harness.core.messages import (
    Block,
    Image,
    Message,
    ModelRequest,
    Text,
    Thinking,
    ToolCall,
    ToolSchema,
    tool_result,
    user,
)
from harness.wire.codec import Asked, Failure, Unreadable
from harness.wire.http import Request
from tests.wire.anthropic.answers import OBJECTS, altered
from tests.wire.gemini.answers import CODEC, IMAGES, NEW, OLD, WORDS, contents

PATH = f"/v1/models/{NEW}:generateContent"


def asked(body: Any, path: str = PATH) -> Asked:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return CODEC.read(Request("POST", f"http://provider.test{path}", (), sent))


def history(*contents: Any) -> tuple[Message, ...]:
    return asked({"contents": list(contents)}).request.messages


def said(*parts: Any, role: str = "model") -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **more}}


def response(name: str, given: Any = None, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": given or {"output": name}, **more}}


GO = said({"text": "Go"}, role="user")


@pytest.mark.parametrize(
    ("path", "model", "stream"),
    [
        (PATH, NEW, False),
        (f"/v1beta/models/{OLD}:streamGenerateContent?alt=sse", OLD, True),
        ("/v1beta/tunedModels/mine:generateContent?key=secret", "mine", False),
        (f"/v1/projects/p/locations/l/publishers/google/models/{NEW}:generateContent", NEW, False),
        ("/v1/models/gemini%2D3:generateContent", "gemini-3", False),
        ("/v1/models/local:4b:streamGenerateContent?alt=sse&x=1", "local:4b", True),
    ],
)
def test_the_path_tells_model_and_verb(path: str, model: str, stream: bool) -> None:
    assert CODEC.is_for(Request("POST", f"http://provider.test{path}"))
    found = asked({"contents": [GO]}, path)
    assert found == Asked(ModelRequest(model, "", (user("Go"),)), stream)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        f"/v1/models/{NEW}",
        f"/v1/models/{NEW}:countTokens",
        "generateContent",
        "/",
        "",
    ],
)
def test_other_paths_are_not_this_protocols(path: str) -> None:
    request = Request("POST", path)
    assert not CODEC.is_for(request)
    with pytest.raises(Unreadable, match="expected a model and a verb"):
        CODEC.read(request)
    assert not CODEC.is_for(Request("GET", PATH))


def test_a_stream_is_one_of_events() -> None:
    with pytest.raises(Unreadable, match="ask with alt=sse") as raised:
        asked({"contents": [GO]}, f"/v1/models/{NEW}:streamGenerateContent")
    message = "Invalid value at 'alt': streams are given as server-sent events only: "
    wanted = Failure(400, f"{message}ask with alt=sse", "INVALID_ARGUMENT", None, "alt")
    assert raised.value.failure == wanted


def test_where_secrets_are() -> None:
    assert CODEC.secrets.headers == {"x-goog-api-key", "authorization"}
    assert CODEC.secrets.query == {"key"}
    written = CODEC.write(Asked(ModelRequest("m", "", ())), base="http://fake", key="secret")
    assert written.url == "http://fake/v1beta/models/m:generateContent"
    assert written.header("x-goog-api-key") == "secret"
    assert CODEC.write(Asked(ModelRequest("m", "", ()))).header("x-goog-api-key") is None


SCHEMA = {"type": "object", "properties": {"type": {"type": "string", "enum": ["A"]}}}
CAMEL = {
    "contents": [said(call("f", id="a") | {"thoughtSignature": "c2ln"}), GO],
    "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]},
    "tools": [
        {
            "functionDeclarations": [
                {"name": "f", "description": "does", "parametersJsonSchema": SCHEMA},
                {"name": "g"},
            ],
            "codeExecution": {},
        },
        {"googleSearch": {}},
    ],
    "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5, "topK": 3},
    "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
}
SNAKE = {
    "contents": [
        said({"function_call": {"name": "f", "args": {}, "id": "a"}, "thought_signature": "c2ln"}),
        GO,
    ],
    "system_instruction": CAMEL["systemInstruction"],
    "tools": [
        {
            "function_declarations": [
                {"name": "f", "description": "does", "parameters_json_schema": SCHEMA},
                {"name": "g"},
            ],
            "codeExecution": {},
        },
        {"googleSearch": {}},
    ],
    "generation_config": {"max_output_tokens": 9, "temperature": 0.5, "topK": 3},
    "toolConfig": CAMEL["toolConfig"],
}


@pytest.mark.parametrize("body", [CAMEL, SNAKE], ids=["camel", "snake"])
def test_both_spellings_are_read(body: dict[str, Any]) -> None:
    messages = (Message("assistant", (Thinking("", "c2ln"), ToolCall("a", "f", {}))), user("Go"))
    tools = (ToolSchema("f", "does", SCHEMA), ToolSchema("g"))
    wanted = ModelRequest(NEW, "Be brief.\n\nBe kind.", messages, tools, 9, 0.5)
    options = {
        "generationConfig": {"topK": 3},
        "tools": [{"codeExecution": {}}, {"googleSearch": {}}],
        "toolConfig": CAMEL["toolConfig"],
    }
    found = asked(body)
    assert found == Asked(wanted, False, options)
    assert CODEC.read(CODEC.write(found)) == found


def test_the_providers_own_schemas_become_json_schemas() -> None:
    own = {
        "type": "OBJECT",
        "properties": {"type": {"type": "ARRAY", "items": {"type": "STRING"}}},
        "anyOf": [{"type": "NULL"}, True],
        "required": ["TYPE"],
        "nullable": True,
    }
    declared = {"name": "f", "parameters": own}
    body = {"contents": [GO], "tools": [{"functionDeclarations": [declared]}]}
    [tool] = asked(body).request.tools
    assert tool.parameters == {
        "type": "object",
        "properties": {"type": {"type": "array", "items": {"type": "string"}}},
        "anyOf": [{"type": "null"}, True],
        "required": ["TYPE"],
        "nullable": True,
    }


def test_a_reply_that_was_kept_frame_by_frame_is_one_message() -> None:
    frames = [
        said({"text": "Let me ", "thought": True}),
        said({"text": "see.", "thought": True}),
        said({"text": "Bo"}),
        said({"text": "th."}),
        said(call("f", id="a") | {"thoughtSignature": "c2ln"}, call("g", id="b")),
        said({"text": ""}),
    ]
    content = (
        Thinking("Let me see.", "c2ln"),
        Text("Both."),
        ToolCall("a", "f", {}),
        ToolCall("b", "g", {}),
    )
    assert history(GO, *frames, GO) == (user("Go"), Message("assistant", content), user("Go"))


def test_results_without_ids_are_of_the_calls_in_order_and_by_name() -> None:
    messages = history(
        GO,
        said(call("f"), call("g"), call("f")),
        said(response("g"), response("f", {"output": "1"}), response("f", {"output": "2"})),
        said(call("f")),
        said(response("f"), {"text": "And now?"}, role="user"),
    )
    calls = [each.id for message in messages for each in message.calls]
    assert calls == ["call_0", "call_1", "call_2", "call_3"]
    # The model's own contents hold no results: these are passed over, and all calls are one turn's.
    assert [each.tool_call_id for each in messages if each.role == "tool"] == ["call_0"]
    turns = history(
        said(call("f"), call("g"), call("f")),
        said(response("g"), response("f"), role="function"),
        said(response("f"), role="user"),
        said(response("f"), role="user"),
        said(call("f"), call("f", id="x")),
        said(response("f", id="x"), response("f", id="other"), response("f"), role="user"),
        said(call("f", id="y"), call("f")),
        said(response("f", id="y"), response("f"), role="user"),
    )
    found = [each.tool_call_id for each in turns if each.role == "tool"]
    assert found == ["call_1", "call_0", "call_2", "f", "x", "other", "call_3", "y", "call_6"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"output": "sunny"}, tool_result("a", "sunny")),
        ({"result": 7}, tool_result("a", "7")),
        ({"error": "no"}, tool_result("a", "no", is_error=True)),
        ({"error": "no", "output": 1}, tool_result("a", '{"error": "no", "output": 1}')),
        ({"sunny": True}, tool_result("a", '{"sunny": true}')),
        ({}, Message("tool", (), "a")),
    ],
)
def test_what_a_function_gave(given: dict[str, Any], wanted: Message) -> None:
    bare = {"functionResponse": {"name": "f", "id": "a", "response": given}}
    assert history(said(bare, role="user")) == (wanted,)


def test_what_users_send() -> None:
    data = {"inline_data": {"mime_type": "image/png", "data": "AA=="}}
    file = {"fileData": {"fileUri": "gs://x"}}
    picture = {"functionResponse": {"name": "f", "id": "a", "parts": [data, {"x": 1}]}}
    parts = [{"text": "Look:"}, data, file, {"videoMetadata": {}}, picture, {"text": "And?"}]
    png = Image("data:image/png;base64,AA==", "image/png")
    assert history({"parts": parts}) == (
        Message("user", (Text("Look:"), png, Image("gs://x"))),
        Message("tool", (png,), "a"),
        user("And?"),
    )
    assert history({}) == (Message("user"),)
    assert asked({}).request.messages == ()


@st.composite
def requests(draw: DrawFn) -> Asked:
    """A request in the form that reading gives."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(0, 3))):
        users = st.lists(st.one_of(st.builds(Text, WORDS), IMAGES), min_size=1, max_size=3)
        messages.append(Message("user", tuple(draw(users))))
        reply = Message("assistant", _numbered(draw(contents(NEW)), turn))
        messages.append(reply)
        for each in draw(st.permutations(reply.calls)):
            result = st.lists(st.builds(Text, WORDS), max_size=1).map(tuple)
            pictures = tuple(draw(st.lists(IMAGES, max_size=1)))
            content = (*draw(result), *pictures)
            messages.append(Message("tool", content, each.id, draw(st.booleans())))
    tools = draw(st.lists(st.builds(ToolSchema, WORDS, WORDS, st.none() | OBJECTS), max_size=2))
    limit, warmth = draw(st.none() | st.integers(1, 9)), draw(st.none() | st.floats(0, 2))
    system = draw(st.just("") | WORDS)
    request = ModelRequest(NEW, system, tuple(messages), tuple(tools), limit, warmth)
    options = draw(st.sampled_from([{}, {"generationConfig": {"topK": 1}, "safetySettings": []}]))
    return Asked(request, draw(st.booleans()), options)


def _numbered(content: tuple[Block, ...], turn: int) -> tuple[Block, ...]:
    return tuple(
        ToolCall(f"{turn}_{each.id}", each.name, each.args) if isinstance(each, ToolCall) else each
        for each in content
    )


@given(requests())
def test_a_request_is_read_as_it_was_written(given: Asked) -> None:
    written = CODEC.write(given)
    assert CODEC.is_for(written)
    assert CODEC.read(written) == given


def test_what_has_no_place_is_written_as_the_nearest() -> None:
    odd = (ToolCall("a", "f", None, "{"), ToolCall("b", "g", [1]))
    messages = (
        Message("system", (Text("Now."),)),
        Message("assistant", odd),
        tool_result("a", "no"),
        tool_result("stray", "?"),
    )
    body = json.loads(CODEC.write(Asked(ModelRequest(NEW, "", messages))).body)
    assert body["contents"] == [
        said({"text": "Now."}, role="user"),
        said(
            call("f", id="a", args={"INVALID_JSON": "{"}),
            call("g", id="b", args={"INVALID_JSON": "[1]"}),
        ),
        said(
            response("f", {"output": "no"}, id="a"),
            response("stray", {"output": "?"}, id="stray"),
            role="user",
        ),
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "Invalid JSON payload received."),
        ([], "expected an object, but got an array instead"),
        ({"contents": "Go"}, "'contents': expected an array, but got a string instead"),
        ({"contents": [{"role": "tool"}]}, "'contents[0].role': Please use a valid role"),
        ({"contents": [said(call("f", args="{}"))]}, "functionCall.args': expected an object"),
        ({"contents": [GO], "generationConfig": 1}, "'generationConfig': expected an object"),
        ({"tools": [{"functionDeclarations": [{}]}]}, "functionDeclarations[0].name': expected"),
    ],
)
def test_a_wrong_form_is_refused(body: Any, message: str) -> None:
    with pytest.raises(Unreadable) as raised:
        asked(body)
    failure = raised.value.failure
    assert message in failure.message
    assert (failure.status, failure.kind) == (400, "INVALID_ARGUMENT")


@given(st.sampled_from([CAMEL, SNAKE]).flatmap(altered))
def test_whatever_is_sent_is_read_or_refused(body: Any) -> None:
    with contextlib.suppress(Unreadable):
        assert isinstance(asked(body), Asked)
