"""The one form of a request: what counts, and what does not."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.core.json_plain import dumps
from harness.core.json_text import Json
from harness.wire import CODECS
from harness.wire.canonical import (
    FORMS,
    PLAINLY,
    VARIES,
    Canonical,
    Reading,
    at_once,
    canonical,
    continued,
    normal,
)
from harness.wire.http import Request

JSON = (("content-type", "application/json"),)
URLS = {
    "openai_chat": "https://api.openai.com/v1/chat/completions",
    "openai_responses": "https://api.openai.com/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/models/gemini-3:generateContent",
}
EACH = pytest.mark.parametrize("protocol", URLS)


def form_of(body: Json, url: str = URLS["openai_chat"], reading: Reading = PLAINLY) -> Canonical:
    return canonical(Request("POST", url, JSON, dumps(body).encode()), reading)


def same(one: Json, other: Json, protocol: str = "openai_chat", reading: Reading = PLAINLY) -> bool:
    found = [form_of(each, URLS[protocol], reading) for each in (one, other)]
    assert (found[0] == found[1]) == (found[0].digest == found[1].digest)
    return found[0] == found[1]


def test_every_protocol_says_what_is_particular_about_it() -> None:
    assert set(FORMS) == {codec.name for codec in CODECS}


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://127.0.0.1:9/v1/chat/completions", "/chat/completions"),
        ("https://proxy.test/x/v1/chat/completions", "/chat/completions"),
        ("/v1/responses", "/responses"),
        ("https://proxy.test/anthropic/v1/messages", "/v1/messages"),
        (
            "https://a.openai.azure.test/openai/deployments/gpt-5/chat/completions",
            "/deployments/gpt-5/chat/completions",
        ),
        (
            "https://g.test/v1beta/models/gemini-3:generateContent",
            "/models/gemini-3:generateContent",
        ),
        (
            "https://v.test/v1/projects/p/locations/l/publishers/google/models/gemini-3%3AgenerateContent",
            "/models/gemini-3:generateContent",
        ),
        ("https://files.test/v1/files", "/v1/files"),
        ("https://files.test", "/"),
        ("https://files.test/a%0Ab/c", "/a\nb/c"),
    ],
)
def test_only_the_protocols_own_part_of_a_path_counts(url: str, path: str) -> None:
    assert form_of({}, url).path == path


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("/projects/a%2Fb", "/projects/a/b", False),
        ("/projects/a%2fb", "/projects/a%2Fb", True),
        ("/projects/a%252Fb", "/projects/a%2Fb", False),
        ("/models/a%3Ab%20c", "/models/a:b c", True),
    ],
)
def test_how_a_path_is_spelled_does_not_count_but_where_it_parts_does(
    one: str, other: str, are_same: bool
) -> None:
    forms = [canonical(Request("GET", f"http://x.test{path}")) for path in (one, other)]
    assert (forms[0] == forms[1]) == are_same


def test_the_model_in_a_path_counts() -> None:
    other = URLS["gemini"].replace("gemini-3", "gemini-2.5")
    assert form_of({}, URLS["gemini"]).digest != form_of({}, other).digest


def test_methods_and_protocols_and_kinds_of_bodies_count() -> None:
    url = "https://x.test/a"
    get, post = [canonical(Request(method, url)) for method in ("get", "POST")]
    assert (get.method, get.kind, get.body) == ("GET", "none", None)
    assert get.digest != post.digest
    text = canonical(Request("POST", url, (("content-type", "text/plain"),), b"a=1"))
    form = (("content-type", "application/x-www-form-urlencoded"),)
    assert text.digest != canonical(Request("POST", url, form, b"a=1")).digest


def test_what_is_said_to_be_a_form_may_be_json() -> None:
    form = (("content-type", "application/x-www-form-urlencoded"),)  # as curl and urllib say
    body = {"messages": [{"role": "user", "content": "1 + 1 = 2 & so on"}]}
    spaced = Request("POST", URLS["openai_chat"], form, dumps(body).replace(",", ", ").encode())
    assert canonical(spaced) == form_of(body)
    odd = canonical(Request("POST", "https://x.test/a", form, b"{a=1&b=2"))
    assert (odd.kind, odd.body) == ("form", {"{a": "1", "b": "2"})


def test_a_query_counts_sorted_and_without_secrets() -> None:
    base = URLS["gemini"]
    one = form_of({}, f"{base}?b=2&alt=sse&key=AIzaSecret")
    assert one.query == (("alt", "sse"), ("b", "2"))
    assert one == form_of({}, f"{base}?alt=sse&b=2")
    assert one != form_of({}, f"{base}?alt=json&b=2")
    assert form_of({}, f"{base}?a=1&a=2") != form_of({}, f"{base}?a=2&a=1")
    hiding = Reading(placeholder="[hidden]")
    assert form_of({}, f"{base}?b=%5Bhidden%5D&alt=sse", hiding).query == (("alt", "sse"),)


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("https://en.wiki.test/page", "https://de.wiki.test/page", False),
        ("https://en.wiki.test/page", "http://EN.wiki.test:8080/page", True),
        ("https://en.wiki.test/page", "http://127.0.0.1:9/page", False),
        ("https://api.test/v1/embeddings", "http://localhost:9/v1/embeddings", True),
        ("http://127.0.0.1:8/v1/embeddings", "http://[::1]:9/v1/embeddings", True),
        ("/v1/embeddings", "https://api.test/v1/embeddings", True),
    ],
)
def test_the_host_of_what_is_of_no_protocol_counts(one: str, other: str, are_same: bool) -> None:
    reading = Reading(homes=frozenset({"api.test"}))
    forms = [canonical(Request("GET", url), reading) for url in (one, other)]
    assert (forms[0].digest == forms[1].digest) == are_same


@EACH
@pytest.mark.parametrize("host", ["http://127.0.0.1:8080", "https://other.test"])
def test_hosts_and_headers_do_not_count(protocol: str, host: str) -> None:
    path = Request("POST", URLS[protocol]).path
    other = Request("POST", host + path, (*JSON, ("authorization", "Bearer x")), b"{}")
    assert canonical(other) == form_of({}, URLS[protocol])


@EACH
def test_how_json_is_spelled_does_not_count(protocol: str) -> None:
    spelled = b'{\n  "temperature": 1.0,\n "b": [1e2, 0.5, -0.0], "a": "\\u00fc"}'
    other = canonical(Request("POST", URLS[protocol], (), spelled))
    assert other == form_of({"a": "ü", "b": [100, 0.5, 0], "temperature": 1}, URLS[protocol])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 0.1}, {"a": 0.2}),
        ({"a": None}, {}),
        ({"a": ""}, {"a": None}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": [[]]}, {"a": [{}]}),
        ({"stream": True}, {}),
        ({"temperature": 0}, {}),
        ({"seed": 1}, {"seed": 2}),
        ({"stream_options": {"include_usage": True}}, {}),
        ({"service_tier": "flex"}, {}),
    ],
)
@EACH
def test_what_may_change_the_answer_counts(protocol: str, one: Json, other: Json) -> None:
    assert not same(one, other, protocol)


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("openai_chat", {"user": "u", "safety_identifier": "s", "prompt_cache_key": "k"}),
        ("openai_chat", {"metadata": {"run": "1"}, "store": True}),
        ("openai_responses", {"user": "u", "metadata": {}, "prompt_cache_retention": "24h"}),
        ("anthropic", {"metadata": {"user_id": "u"}}),
        ("gemini", {"labels": {"team": "a"}}),
    ],
)
def test_what_says_nothing_to_the_model_does_not_count(protocol: str, body: dict[str, Any]) -> None:
    assert same(body | {"x": 1}, {"x": 1}, protocol)


def test_whether_a_response_can_be_gone_on_from_counts() -> None:
    assert not same({"store": False}, {}, "openai_responses")


def chat(first: str, second: str, answered: tuple[str, str]) -> Json:
    calls = [
        {"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for each in (first, second)
    ]
    results = [
        {"role": "tool", "tool_call_id": each, "content": str(n)} for n, each in enumerate(answered)
    ]
    return {"messages": [{"role": "assistant", "tool_calls": calls}, *results]}


def responses(first: str, second: str, answered: tuple[str, str]) -> Json:
    calls = [
        {"type": "function_call", "id": f"fc_{each}", "call_id": each, "name": "f", "arguments": ""}
        for each in (first, second)
    ]
    results = [
        {"type": "function_call_output", "call_id": each, "output": str(n)}
        for n, each in enumerate(answered)
    ]
    return {"input": [*calls, *results]}


def messages(first: str, second: str, answered: tuple[str, str]) -> Json:
    calls = [{"type": "tool_use", "id": each, "name": "f", "input": {}} for each in (first, second)]
    results = [
        {"type": "tool_result", "tool_use_id": each, "content": str(n)}
        for n, each in enumerate(answered)
    ]
    return {
        "messages": [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    }


def contents(first: str, second: str, answered: tuple[str, str]) -> Json:
    calls = [{"functionCall": {"id": each, "name": "f"}} for each in (first, second)]
    results = [
        {"function_response": {"id": each, "name": "f", "response": {"n": n}}}
        for n, each in enumerate(answered)
    ]
    return {"contents": [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]}


HISTORIES = {
    "openai_chat": chat,
    "openai_responses": responses,
    "anthropic": messages,
    "gemini": contents,
}


@EACH
def test_the_names_of_calls_do_not_count_but_which_is_which_does(protocol: str) -> None:
    history = HISTORIES[protocol]
    one = history("call_a", "call_b", ("call_a", "call_b"))
    assert same(one, history("toolu_9", "toolu_8", ("toolu_9", "toolu_8")), protocol)
    assert same(one, history("call_b", "call_a", ("call_b", "call_a")), protocol)
    assert not same(one, history("call_a", "call_b", ("call_b", "call_a")), protocol)
    assert not same(one, history("call_a", "call_a", ("call_a", "call_a")), protocol)


@given(st.permutations(["a", "b", "c", "d"]), st.sampled_from(sorted(URLS)))
def test_any_other_names_for_the_same_calls_are_the_same(names: list[str], protocol: str) -> None:
    history = HISTORIES[protocol]
    new = dict(zip(["a", "b"], names, strict=False))
    renamed = history(new["a"], new["b"], (new["b"], new["a"]))
    assert same(history("a", "b", ("b", "a")), renamed, protocol)


def test_an_empty_name_names_nothing() -> None:
    assert not same(chat("", "b", ("", "b")), chat("a", "b", ("a", "b")))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"previous_response_id": "resp_1"}, {"previous_response_id": "resp_2"}),
        ({"conversation": "conv_1"}, {"conversation": {"id": "conv_2"}}),
        (
            {"input": [{"type": "item_reference", "id": "msg_1"}]},
            {"input": [{"type": "item_reference", "id": "msg_2"}]},
        ),
        ({"input": [{"id": "msg_1"}]}, {"input": [{"id": "msg_2"}]}),
        (
            {"input": [{"type": "image_generation_call", "id": "ig_1"}]},
            {"input": [{"type": "image_generation_call", "id": "ig_2"}]},
        ),
        (
            {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]},
            {"input": [{"type": "reasoning", "id": "rs_2", "summary": []}]},
        ),
    ],
)
def test_what_stands_for_what_was_said_before_counts(one: Json, other: Json) -> None:
    assert not same(one, other, "openai_responses")


SIGNED: dict[str, Any] = {
    "openai_responses": lambda sign: {
        "input": [{"type": "reasoning", "id": f"rs_{sign}", "encrypted_content": sign}]
    },
    "anthropic": lambda sign: {
        "messages": [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm", "signature": sign},
                    {"type": "redacted_thinking", "data": sign},
                ],
            }
        ]
    },
    "gemini": lambda sign: {
        "contents": [{"parts": [{"functionCall": {"name": "f"}, "thoughtSignature": sign}]}]
    },
}


@pytest.mark.parametrize("protocol", SIGNED)
def test_reasoning_that_is_signed_counts_unless_seals_are_left_out(protocol: str) -> None:
    one, other = SIGNED[protocol]("one"), SIGNED[protocol]("two")
    assert not same(one, other, protocol)
    assert same(one, other, protocol, Reading(unsealed=True))


def test_arguments_are_compared_as_the_json_that_they_are() -> None:
    def calling(arguments: str) -> Json:
        function = {"name": "f", "arguments": arguments}
        return {"messages": [{"tool_calls": [{"id": "a", "function": function}]}]}

    assert same(calling('{"a": 1, "b": 2.0}'), calling('{"b":2,"a":1}'))
    assert not same(calling('{"a": 1}'), calling('{"a": 2}'))
    assert not same(calling("[1, 2]"), calling("[1,2]"))
    assert not same(calling("{"), calling("{ "))
    inner = Reading(ignore=("messages[*].tool_calls[*].function.arguments.run",))
    assert same(calling('{"run": 1, "a": 1}'), calling('{"run": 2, "a": 1}'), reading=inner)


def test_other_texts_are_texts_whatever_they_hold() -> None:
    one = {"messages": [{"role": "user", "content": '{"a": 1}'}]}
    assert not same(one, {"messages": [{"role": "user", "content": '{"a":1}'}]})


@pytest.mark.parametrize(
    ("ignore", "one", "other"),
    [
        ("run.id", {"run": {"id": 1, "a": 2}}, {"run": {"id": 2, "a": 2}}),
        ("run", {"run": 1}, {}),
        ("a[*].t", {"a": [{"t": 1}, {"t": 2, "x": 0}]}, {"a": [{"t": 5}, {"x": 0}]}),
        ("a[0]", {"a": [1, 2]}, {"a": [9, 2]}),
        ("a[*]", {"a": [1, 2]}, {"a": [3, 4]}),
        ("**.now", {"a": {"b": [{"now": 1}]}}, {"a": {"b": [{"now": 2}]}}),
        ('["a.b"]', {"a.b": 1}, {"a.b": 2}),
    ],
)
def test_users_leave_out_what_says_nothing(ignore: str, one: Json, other: Json) -> None:
    assert same(one, other, reading=Reading(ignore=(ignore,)))
    assert not same(one, other)


def test_what_is_left_out_of_a_list_leaves_its_place() -> None:
    reading = Reading(ignore=("a[1]",))
    assert not same({"a": [1, 2, 3]}, {"a": [1, 2, 4]}, reading=reading)
    assert not same({"a": [1, 2, 3]}, {"a": [1, 3]}, reading=reading)


def test_the_random_id_of_a_tool_that_gets_into_a_prompt_can_be_taken_as_equal() -> None:
    reading = Reading(volatile=(r"[0-9a-f]{8}-[0-9a-f-]{27}", r"took \d+ms"))
    one = {"a": ["id 123e4567-e89b-12d3-a456-426614174000 took 7ms"]}
    other = {"a": ["id 00000000-0000-0000-0000-000000000000 took 81ms"]}
    assert not same(one, other)
    assert same(one, other, reading=reading)
    assert form_of(one, reading=reading).body == {"a": [f"id {VARIES} {VARIES}"]}
    query = form_of({}, f"{URLS['gemini']}?at=took%207ms", reading)
    assert query.query == (("at", VARIES),)


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'\(' is no regular expression: missing \)"):
        form_of({}, reading=Reading(volatile=("(",)))


def upload(mark: str, said: str = "hello", file: bytes = b"\x89PNG\x00") -> Request:
    lines = [
        f'--{mark}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n{said}\r\n',
        f'--{mark}\r\nContent-Disposition: form-data; name="about"\r\n',
        f'Content-Type: application/json\r\n\r\n{{"b": 1, "a": "{said}"}}\r\n',
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n',
        "Content-Type: image/png\r\n\r\n",
    ]
    body = "".join(lines).encode() + file + f"\r\n--{mark}--\r\n".encode()
    headers = (("content-type", f"multipart/form-data; boundary={mark}"),)
    return Request("POST", "https://x.test/v1/files", headers, body)


def test_where_a_form_is_cut_does_not_count() -> None:
    one = canonical(upload("aaa"))
    assert one == canonical(upload("bbb-bbb"))
    assert one.kind == "parts"
    assert one.body[1]["content"] == {"a": "hello", "b": 1}
    assert one.digest != canonical(upload("aaa", "bye")).digest
    assert one.digest != canonical(upload("aaa", file=b"\x89PNG\x01")).digest


def test_a_part_that_says_it_is_json_and_is_none_is_text() -> None:
    broken = upload("aaa", said='"')
    assert canonical(broken).body[1]["content"] == '{"b": 1, "a": """}'


@pytest.mark.parametrize("mark", ["boundary=zzz", ""])
def test_a_form_that_cannot_be_taken_apart_counts_as_it_is(mark: str) -> None:
    headers = (("content-type", f"multipart/form-data; {mark}"),)
    given = Request("POST", "https://x.test/f", headers, b"--aaa\r\n")
    assert (canonical(given).kind, canonical(given).body) == ("text", "--aaa\r\n")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_how_a_body_is_compressed_does_not_count(coding: str) -> None:
    text = b'{"a": 1}'
    bodies = [zlib.compress(text, 1), zlib.compress(text, 9)]
    if coding == "gzip":
        bodies = [gzip.compress(text, mtime=n) for n in (1, 2)]
    one, other = [
        canonical(Request("POST", URLS["openai_chat"], (("content-encoding", coding),), body))
        for body in bodies
    ]
    assert one == other == form_of({"a": 1})
    for broken in (bodies[0][:-5], b"no " + bodies[0]):
        given = Request("POST", URLS["openai_chat"], (("content-encoding", coding),), broken)
        assert canonical(given).kind == "bytes"


def test_a_form_is_its_names_and_values() -> None:
    def form(text: bytes) -> Canonical:
        kind = (("content-type", "application/x-www-form-urlencoded"),)
        return canonical(Request("POST", "https://x.test/t", kind, text))

    assert form(b"a=1&b=2&a=3") == form(b"b=2&a=1&a=3")
    assert form(b"a=1&b=2&a=3").body == {"a": ["1", "3"], "b": "2"}
    assert form(b"a=1&a=3") != form(b"a=3&a=1")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"hello", "text"),
        (b"{broken", "text"),
        (b'{"a": 1, "a": 2}', "text"),
        (b"[1]", "json"),
        (b"\xff\xfe", "bytes"),
        (b"a\0b", "bytes"),
        (b"", "none"),
        (b"[" * 300 + b"]" * 300, "text"),
    ],
)
def test_any_body_has_a_form(body: bytes, kind: str) -> None:
    for url in ("https://x.test/a", URLS["openai_chat"]):
        assert canonical(Request("POST", url, (), body)).kind == kind


def test_what_is_nested_as_deep_as_it_may_be_has_a_form() -> None:
    deep = "[" * 199 + "]" * 199
    arguments = '{"a":' * 199 + "1" + "}" * 199
    body = f'{{"x": {deep}, "input": [{{"arguments": {dumps(arguments)}}}]}}'
    found = canonical(Request("POST", URLS["openai_responses"], (), body.encode()))
    assert found.kind == "json"
    assert isinstance(found.body["input"][0]["arguments"], dict)


@EACH
def test_whether_an_answer_is_streamed_can_be_left_out(protocol: str) -> None:
    whole, url = form_of({"x": 1}, URLS[protocol]), URLS[protocol]
    if protocol == "gemini":
        url = url.replace(":generate", ":streamGenerate") + "?alt=sse"
        streamed = form_of({"x": 1}, url)
    else:
        streamed = form_of({"x": 1, "stream": True, "stream_options": {}}, url)
    assert streamed.digest != whole.digest
    assert at_once(streamed).digest == at_once(whole).digest == whole.digest
    text = canonical(Request("POST", URLS[protocol], (), b"x"))
    assert at_once(text) == text


def test_a_response_that_is_gone_on_from_can_have_another_name() -> None:
    names = {"resp_1": "the first"}
    body = {"previous_response_id": "resp_1", "input": "Go"}
    one = form_of(body, URLS["openai_responses"])
    told = continued(one, names)
    assert told.body["previous_response_id"] == "the first"
    assert told.digest == form_of(told.body, URLS["openai_responses"]).digest
    assert continued(told, names) is told
    text = canonical(Request("POST", URLS["openai_responses"], (), b"x"))
    assert continued(text, names) is text


def test_json_of_no_protocol_has_its_form_too() -> None:
    reading = Reading(volatile=("[0-9]+",))
    assert normal({"b": 1.0, "a": ["x 12"]}, reading) == {"a": [f"x {VARIES}"], "b": 1}


LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)
NAMES = st.sampled_from(["a", "b", "c", "d.e", ""])
VALUES = st.recursive(
    LEAVES.filter(lambda leaf: leaf not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=4)


def shuffled(value: Json, by: random.Random) -> Json:
    if isinstance(value, dict):
        keys = list(value)
        by.shuffle(keys)
        return {key: shuffled(value[key], by) for key in keys}
    return [shuffled(each, by) for each in value] if isinstance(value, list) else value


@given(BODIES, st.randoms(use_true_random=False), st.sampled_from(sorted(URLS)))
def test_the_order_of_keys_never_counts(body: Json, by: random.Random, protocol: str) -> None:
    assert same(body, shuffled(body, by), protocol)


def leaves(value: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, each in pairs for found in leaves(each, (*path, key))]
    return [path] if path else []


def changed(value: Json, path: tuple[Any, ...], leaf: Json) -> Json:
    if not path:
        return leaf
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], leaf)
    return copy


@given(BODIES.filter(leaves), st.data(), st.sampled_from(sorted(URLS)))
def test_any_other_leaf_is_another_request(body: Json, data: st.DataObject, protocol: str) -> None:
    path = data.draw(st.sampled_from(leaves(body)))
    for leaf in ("a text of its own", 77.25, [["one"], {}], {"e": None}):
        assert not same(body, changed(body, path, leaf), protocol)
